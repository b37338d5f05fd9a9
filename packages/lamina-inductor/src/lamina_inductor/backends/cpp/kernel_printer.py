"""Kernel IR as C++: one function per phase, over a range of the phase's axis.

Assumes SSA names that are unique in the kernel. A phase function has the signature of ``lm_body``: the context is an
``lm_call`` (pointers, sizes, error word). Everything that GCC needs to vectorise is said by ``#pragma omp simd`` with
reduction clauses; a maximum carries its NaN in a flag of its own, because a reduction over ``max`` would lose it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lamina_fx import DType
from lamina_fx.dtype import bool_, int64
from lamina_fx.symbolic import Expr, to_c

from ...ir.kernel import (
    Accumulate,
    Accumulator,
    BindIndex,
    BufferParam,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Operand,
    Stmt,
    Store,
    walk,
)
from .accumulators import CLAUSE, STORE_MODES, combine, identity
from .elementwise import convert, expression
from .literals import literal, memory_type, value_type
from .mentions import mentioned
from .names import c_name, symbol_name
from .random_blocks import FillRandom
from .streams import StreamOut
from .transposes import TransposeTile

__all__ = ["phase_names", "print_kernel"]


def phase_names(kernel: Kernel) -> tuple[str, ...]:
    """The functions that ``print_kernel`` defines, one per phase."""
    return tuple(f"{kernel.name}_p{i}" for i in range(len(kernel.body)))


def print_kernel(kernel: Kernel, *, linkage: str = "static") -> str:
    """The C++ of all phases of ``kernel``.

    Raises:
        NotImplementedError: an operator the backend has no code for.
    """
    return "\n".join(_PhasePrinter(kernel, i, linkage).text() for i in range(len(kernel.body)))


@dataclass(frozen=True)
class _Scan:
    """An accumulator's pieces in C++: the variable, its NaN flag or its best value."""

    accumulator: Accumulator
    flag: str = ""
    best: str = ""


class _PhasePrinter:
    def __init__(self, kernel: Kernel, number: int, linkage: str) -> None:
        self.kernel = kernel
        self.loop = kernel.body[number]
        self.number = number
        self.linkage = linkage
        self.lines: list[str] = []
        self.depth = 1
        self.types: dict[str, DType] = {p.name: p.dtype for p in kernel.params}
        self.scans: dict[str, _Scan] = {}
        self.vector = 0
        self.checked = any(type(s) is BindIndex and s.size is not None for s in walk(self.loop.body))

    # -- layout ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        name = phase_names(self.kernel)[self.number]
        self.write("const lm_call *call = (const lm_call *)context;")
        used = mentioned(self.loop)
        for i, param in enumerate(self.kernel.params):
            if param.name in used:
                self.write(self.pointer(i, param))
        for i, symbol in enumerate(self.kernel.sizes):
            if symbol.name in used:
                self.write(f"const i64 {c_name(symbol.name)} = call->s[{i}];")
        if self.checked:
            self.write("i64 lm_error = 0;")
        self.phase()
        if any(type(s) is StreamOut for s in walk(self.loop.body)):
            self.write("lm_stream_end();")  # other threads must see it before the phase is over
        if self.checked:
            self.write("if (lm_error) lm_raise(call->error, lm_error);")
        body = "\n".join(self.lines)
        return (
            f"{self.linkage} __attribute__((noinline)) void {name}(void *context, i64 begin, i64 end) {{\n{body}\n}}\n"
        )

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def pointer(self, i: int, param: BufferParam) -> str:
        kind = memory_type(param.dtype)
        const = "const " if param.role == "in" else ""
        aliased = param.aliased is not None or any(p.aliased == param.name for p in self.kernel.params)
        restrict = "" if aliased else "__restrict "
        return f"{const}{kind} *{restrict}{c_name(param.name)} = ({const}{kind} *)call->p[{i}];"

    def phase(self) -> None:
        loop, axis = self.loop, c_name(self.loop.axis.name)
        simd = loop.kind == "parallel simd"
        if simd:
            self.simd_pragma(loop)
        if loop.step == 1:
            self.write(f"for (i64 {axis} = begin; {axis} < end; ++{axis}) {{")
        else:
            self.write(f"for (i64 {axis} = begin * {loop.step}; {axis} < end * {loop.step}; {axis} += {loop.step}) {{")
        self.inside(loop.body, simd)

    def inside(self, body: tuple[Stmt, ...], simd: bool) -> None:
        self.depth += 1
        self.vector += simd
        for stmt in body:
            self.stmt(stmt)
        self.vector -= simd
        self.depth -= 1
        self.write("}")

    # -- loops and reductions --------------------------------------------------------------------------------------

    def inner_loop(self, loop: Loop) -> None:
        simd = loop.kind == "simd"
        for accumulator in loop.accumulators:
            self.declare(accumulator)
        if simd and not any(a.kind in ("argmax", "argmin") or a.dtype.kind == "complex" for a in loop.accumulators):
            self.simd_pragma(loop)
        elif loop.kind == "unroll":
            self.write("#pragma GCC unroll 64")
        axis, extent = c_name(loop.axis.name), self.index(loop.extent)
        step = f"++{axis}" if loop.step == 1 else f"{axis} += {loop.step}"
        self.write(f"for (i64 {axis} = 0; {axis} < {extent}; {step}) {{")
        self.inside(loop.body, simd)
        for accumulator in loop.accumulators:
            self.finish(accumulator)

    def simd_pragma(self, loop: Loop) -> None:
        clauses: dict[str, list[str]] = {}
        for accumulator in loop.accumulators:
            scan = self.scans[accumulator.name]
            sign = CLAUSE[accumulator.kind]
            if accumulator.dtype.is_floating_point:
                sign = {"max": "LM_GREATEST", "min": "LM_LEAST"}.get(sign, sign)
            elif accumulator.dtype.kind == "bool":
                sign = {"+": "|", "*": "&", "max": "|", "min": "&"}.get(sign, sign)
            clauses.setdefault(sign, []).append(c_name(accumulator.name))
            if scan.flag:
                clauses.setdefault("|", []).append(scan.flag)
        if any(type(s) is BindIndex and s.size is not None for s in walk(loop.body)):
            clauses.setdefault("max", []).append("lm_error")
        text = "".join(f" reduction({sign}:{', '.join(names)})" for sign, names in clauses.items())
        self.write(f"#pragma omp simd{text}")

    def declare(self, accumulator: Accumulator) -> None:
        name, dtype, kind = c_name(accumulator.name), accumulator.dtype, accumulator.kind
        self.types[accumulator.name] = int64 if kind in ("argmax", "argmin") else dtype
        start = identity(accumulator) if accumulator.init is None else self.operand(accumulator.init, dtype)
        if kind in ("argmax", "argmin"):
            best = f"{name}_best"
            self.scans[accumulator.name] = _Scan(accumulator, best=best)
            self.write(f"i64 {name} = 0;")
            self.write(f"{value_type(dtype)} {best} = {start}; bool {name}_first = true;")
            return
        flag = f"{name}_nan" if kind in ("max", "min") and dtype.is_floating_point else ""
        self.scans[accumulator.name] = _Scan(accumulator, flag)
        register = "i32" if dtype.kind == "bool" else value_type(dtype)
        self.write(f"{register} {name} = {start};")
        if flag:
            self.write(f"i32 {flag} = {name} != {name};")

    def finish(self, accumulator: Accumulator) -> None:
        scan, name = self.scans[accumulator.name], c_name(accumulator.name)
        if scan.flag:
            self.write(f"{name} = {scan.flag} ? {literal(float('nan'), accumulator.dtype)} : {name};")

    def accumulate(self, stmt: Accumulate) -> None:
        if stmt.running is not None:
            raise NotImplementedError("scans of a grid's loops are no C++: the loops of a CPU have serial ones")
        scan = self.scans[stmt.accumulator]
        accumulator, name = scan.accumulator, c_name(stmt.accumulator)
        dtype, kind = accumulator.dtype, accumulator.kind
        value = self.operand(stmt.value, dtype)
        if scan.best:
            index = self.operand(0 if stmt.index is None else stmt.index, int64)
            sign = ">" if kind == "argmax" else "<"
            nan = f" || ({value} != {value} && {scan.best} == {scan.best})" if dtype.kind == "float" else ""
            self.write(f"if ({name}_first || {value} {sign} {scan.best}{nan}) "
                       f"{{ {scan.best} = {value}; {name} = {index}; {name}_first = false; }}")  # fmt: skip
            return
        if kind in ("max", "min") and dtype.kind != "bool":
            sign = ">" if kind == "max" else "<"
            self.write(f"{name} = {value} {sign} {name} ? {value} : {name};")
            if scan.flag:
                self.write(f"{scan.flag} |= {value} != {value};")
            return
        self.write(f"{name} = {combine(kind, dtype, name, value)};")

    # -- statements ------------------------------------------------------------------------------------------------

    def stmt(self, stmt: Stmt) -> None:
        kind = type(stmt)
        if kind is Let:
            self.let(stmt)  # type: ignore[arg-type]
        elif kind is Load:
            self.load(stmt)  # type: ignore[arg-type]
        elif kind is Store:
            self.store(stmt)  # type: ignore[arg-type]
        elif kind is Loop:
            self.inner_loop(stmt)  # type: ignore[arg-type]
        elif kind is Accumulate:
            self.accumulate(stmt)  # type: ignore[arg-type]
        elif kind is IndexValue:
            self.define(stmt.name, stmt.dtype, self.index_value(stmt))  # type: ignore[union-attr]
        elif kind is Local:
            self.types[stmt.name] = stmt.dtype  # type: ignore[union-attr]
            self.write(f"alignas(64) {memory_type(stmt.dtype)} {c_name(stmt.name)}[{stmt.size}];")  # type: ignore[union-attr]
        elif kind is FillRandom:
            self.fill_random(stmt)  # type: ignore[arg-type]
        elif kind is TransposeTile:
            self.transpose(stmt)  # type: ignore[arg-type]
        elif kind is StreamOut:
            self.stream(stmt)  # type: ignore[arg-type]
        elif kind is BindIndex:
            self.bind(stmt)  # type: ignore[arg-type]
        elif kind is If:
            self.write(f"if ({c_name(stmt.condition)}) {{")  # type: ignore[union-attr]
            self.inside(stmt.body, False)  # type: ignore[union-attr]
        else:
            raise TypeError(f"kernel {self.kernel.name}: {kind.__name__} is no statement")

    def define(self, name: str, dtype: DType, text: str) -> None:
        self.types[name] = dtype
        self.write(f"const {value_type(dtype)} {c_name(name)} = {text};")

    def let(self, stmt: Let) -> None:
        if stmt.op == "convert_element_type":
            source = self.dtype_of(stmt.args[0], stmt.dtype)
            self.define(stmt.name, stmt.dtype, convert(self.operand(stmt.args[0], source), source, stmt.dtype))
            return
        operand = self.compute_dtype(stmt)
        args = [self.operand(a, operand) for a in stmt.args]
        if stmt.op == "where":
            args[0] = self.operand(stmt.args[0], bool_)
        elif stmt.op == "philox":
            args = [self.operand(a, int64) for a in stmt.args]
        elif stmt.op == "constant":
            self.define(stmt.name, stmt.dtype, self.operand(stmt.args[0], stmt.dtype))
            return
        power = stmt.args[1] if stmt.op == "pow" else None
        exponent = float(power) if isinstance(power, (int, float)) else None
        self.define(stmt.name, stmt.dtype, expression(stmt.op, stmt.dtype, operand, args, exponent))

    def compute_dtype(self, stmt: Let) -> DType:
        names = stmt.args[1:] if stmt.op == "where" else stmt.args
        known = [self.types[a] for a in names if type(a) is str]
        return known[0] if known else stmt.dtype

    def load(self, stmt: Load) -> None:
        text = f"{c_name(stmt.buffer)}[{self.index(stmt.index)}]"
        if stmt.dtype.kind == "bool":
            text += " != 0"
        if stmt.mask is not None:
            text = f"{c_name(stmt.mask)} ? {text} : {self.operand(stmt.other, stmt.dtype)}"
        self.define(stmt.name, stmt.dtype, text)

    def store(self, stmt: Store) -> None:
        dtype = self.types[stmt.buffer]
        place = f"{c_name(stmt.buffer)}[{self.index(stmt.index)}]"
        value = self.operand(stmt.value, dtype)
        if stmt.mode != "set":
            if stmt.atomic:
                body = combine(STORE_MODES[stmt.mode], dtype, "lm_old", value)
                kind = memory_type(dtype)
                text = f"lm_atomic(&{place}, [&]({kind} lm_old) {{ return ({kind})({body}); }});"
                self.write(f"if ({c_name(stmt.mask)}) {text}" if stmt.mask is not None else text)
                return
            value = combine(STORE_MODES[stmt.mode], dtype, place, value)
        text = f"{place} = {value};"
        self.write(f"if ({c_name(stmt.mask)}) {text}" if stmt.mask is not None else text)

    def bind(self, stmt: BindIndex) -> None:
        name, value = c_name(stmt.symbol.name), f"(i64){c_name(stmt.value)}"
        if stmt.size is None:
            self.write(f"const i64 {name} = {value};")
            return
        size, raw = self.index(stmt.size), f"{name}_raw"
        if stmt.wrap:
            self.write(f"const i64 {raw} = {value} + ({value} < 0 ? {size} : 0);")
        else:
            self.write(f"const i64 {raw} = {value};")
        bad = f"(u64){raw} >= (u64)({size})"
        self.write(f"const bool {name}_bad = {bad};")
        hit = f"{name}_bad" if stmt.mask is None else f"{name}_bad & {c_name(stmt.mask)}"
        error = f"({hit}) ? lm_bad_index({stmt.check}, {value}) : (i64)0"
        self.write(f"const i64 {name}_error = {error};")
        self.write(f"lm_error = {name}_error > lm_error ? {name}_error : lm_error;")
        self.write(f"const i64 {name} = {name}_bad ? 0 : {raw};")

    def fill_random(self, stmt: FillRandom) -> None:
        seed, offset = (self.operand(o, int64) for o in (stmt.seed, stmt.offset))
        place = f"{self.index(stmt.first)}, {self.index(stmt.count)}"
        self.write(f"lm_philox_fill({c_name(stmt.target)}, {seed}, {offset}, {place});")

    def transpose(self, stmt: TransposeTile) -> None:
        places = [f"{c_name(n)} + {self.index(i)}" for n, i in ((stmt.target, stmt.start), (stmt.buffer, stmt.first))]
        sizes = [self.index(i) for i in (stmt.pitch, stmt.stride, stmt.rows, stmt.columns)]
        self.write(f"lm_transpose({places[0]}, {sizes[0]}, {places[1]}, {', '.join(sizes[1:])});")

    def stream(self, stmt: StreamOut) -> None:
        size = f"({self.index(stmt.count)}) * (i64)sizeof(*{c_name(stmt.source)})"
        self.write(f"lm_stream({c_name(stmt.buffer)} + {self.index(stmt.index)}, {c_name(stmt.source)}, {size});")

    # -- operands --------------------------------------------------------------------------------------------------

    def dtype_of(self, operand: Operand, otherwise: DType) -> DType:
        return self.types[operand] if type(operand) is str else otherwise

    def operand(self, operand: Operand, dtype: DType) -> str:
        return c_name(operand) if type(operand) is str else literal(operand, dtype)

    def index(self, expr: Expr | int) -> str:
        return str(expr) if type(expr) is int else to_c(expr, symbol_name)  # type: ignore[arg-type]

    def index_value(self, stmt: IndexValue) -> str:
        text = self.index(stmt.expr)
        return f"({text})" if stmt.dtype.kind == "bool" else convert(f"({text})", int64, stmt.dtype)
