"""One phase of a kernel as a ``@triton.jit`` function.

The kernel IR must have the loops of ``schedule.grid_nest``: a phase over ``x``, in it loops over ``r`` that one program
runs. A scalar of the IR becomes a tile with those of the two dimensions that it depends on: ``[XBLOCK, 1]``,
``[1, RBLOCK]``, ``[XBLOCK, RBLOCK]``, or a scalar; a phase without ``r`` has one-dimensional tiles.

When the tile holds whole rows, the loops over ``r`` are one straight line and a value that several of them compute is
computed once; otherwise each is a ``for`` over blocks with accumulators of a tile's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, bool_
from lamina_fx.symbolic import BooleanConstant, Comparison, Expr, Symbol

from ...ir.kernel import (
    Accumulate,
    Accumulator,
    BindIndex,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Sort,
    Stmt,
    Store,
    walk,
)  # fmt: skip
from .axis_tiles import tile_loops
from .block_printer import block_loop, write_block
from .bound_indices import ERROR, write_bind
from .chunk_printer import chunk_loop, load_local, store_local, write_chunk
from .elementwise import convert, expression, has_atomic, wants_types
from .indices import address_text, index_text
from .literals import language_type, literal, typed_literal
from .narrow import narrow_names, summed_names
from .online import Beside, OnlineLoop, merge_passes
from .peepholes import rounded, shorter
from .row_loads import rows_first, stores_last, streaming
from .row_loops import write_accumulate, write_axis, write_loop
from .sorting import write_sort
from .tile_printer import write_tiles
from .tiles import Tile, constant

__all__ = ["PhaseWriter", "PrintedPhase", "print_phase"]

Shape = frozenset[str]
_NONE: Shape = frozenset()


@dataclass(frozen=True, slots=True)
class PrintedPhase:
    """Text of a function, and the names of its parameters in order: buffers, sizes, and whether it has ``error``."""

    name: str
    source: str
    buffers: tuple[str, ...]
    sizes: tuple[str, ...]
    checks: bool


def size_names(kernel: Kernel) -> dict[Symbol, str]:
    """How the kernel's sizes are called: apart from ``n``, with a prefix, so that they hide no value."""
    return {s: s.name if s.name == "n" else f"n_{s.name}" for s in kernel.sizes}


def print_phase(kernel: Kernel, phase: Loop, name: str, tile: Tile, wide: bool, filled: bool = False) -> PrintedPhase:
    """The function of ``phase``. ``wide``: indices need 64 bits. ``filled``: every call fills its tiles along ``x``.

    Raises:
        NotImplementedError: the phase has an operator, dtype or statement that cannot be printed.
    """
    writer = PhaseWriter(kernel, phase, tile, wide, filled)
    body = writer.write()
    buffers = tuple([p.name for p in kernel.params if p.name in writer.buffers])
    sizes = tuple([n for s, n in size_names(kernel).items() if s in writer.used])
    checks = any(type(s) is BindIndex and s.size is not None for s in walk(phase.body))
    blocks = [f"{name}: tl.constexpr" for name in tile.blocks]
    parameters = ", ".join([*buffers, *sizes, *([ERROR] if checks else []), *blocks])
    comments = [f"# {text}" for text in _origins(kernel)]
    lines = "\n".join([f"    {line}" for line in (*comments, *body)])
    return PrintedPhase(name, f"@triton.jit\ndef {name}({parameters}):\n{lines}\n", buffers, sizes, checks)


def _origins(kernel: Kernel) -> list[str]:
    """What was fused, by the user's line."""
    lines: dict[str, list[str]] = {}
    for _, op, line in kernel.origins:
        lines.setdefault(line, []).append(op)
    return [", ".join(dict.fromkeys(ops)) + (f" at {line}" if line else "") for line, ops in lines.items()]


class PhaseWriter:
    """Writes the statements of a phase; knows shape and dtype of every name. ``row_loops`` has the loops over ``r``.

    masks: dimension -> the mask along it and that mask's shape; none where the tiles fit. locals, summed: see
    ``chunk_printer``. walked: buffers that the last pass read from start to end; turned: this pass goes over
    them the other way; went_back: the last one began at the end. following: statements behind this one.
    repeated: see ``row_loads``. turns: see ``block_printer``.
    """

    def __init__(self, kernel: Kernel, phase: Loop, tile: Tile, wide: bool, filled: bool = False) -> None:
        self.phase, self.tile, self.wide, self.filled = phase, tile, wide, filled
        self.names = size_names(kernel)
        self.dtypes: dict[str, DType] = {}
        self.shapes: dict[str, Shape] = {}
        self.declared: dict[str, DType] = {p.name: p.dtype for p in kernel.params}
        self.buffers: dict[str, DType] = {}
        self.used: set[Symbol] = set()
        self.masks: dict[str, tuple[str, Shape]] = {}
        self.accumulators: dict[str, Accumulator] = {}
        self.turns = [p is phase for p in kernel.body if block_loop(p) is not None][1::2].count(True) == 1
        self.narrow, self.only_added = narrow_names(phase.body), summed_names(phase.body)
        self.values: dict[str, Let] = {}
        self.locals: dict[str, Local] = {}
        self.summed = False
        self.walked: frozenset[str] = frozenset()
        self.turned = self.went_back = False
        self.following: list[Any] = []
        self.repeated = -1
        self.lines: list[str] = []
        self.depth = 0
        self.dims = tile.dims

    # -- text ------------------------------------------------------------------------------------------

    def add(self, line: str) -> None:
        """A line at the depth of the loops that are open."""
        self.lines.append("    " * self.depth + line)

    def index(self, expr: Any) -> str:
        """Text of an index expression; remembers the sizes in it."""
        if isinstance(expr, Expr):
            self.used |= expr.free_symbols
        return index_text(expr, self.names)

    def shape_of(self, expr: Any) -> Shape:
        """Dimensions of an index expression or an operand."""
        if isinstance(expr, Expr):
            return frozenset().union(
                *[self.shapes.get(s.name, _NONE) for s in expr.free_symbols if s not in self.names]
            )
        return self.shapes.get(expr, _NONE) if type(expr) is str else _NONE

    def tile_text(self, shape: Shape) -> str:
        """A tile's sizes."""
        if self.dims == "x":
            return "[XBLOCK]"
        return f"[{', '.join([f'{d.upper()}BLOCK' if d in shape else '1' for d in self.dims])}]"

    def across(self, dim: str) -> str:
        """What makes numbers along a dimension a tile: ``[:, None]``, or nothing where there is no other."""
        return "" if self.dims == dim else f"[{', '.join([':' if d == dim else 'None' for d in self.dims])}]"

    def widened(self, text: str, have: Shape, want: Shape) -> str:
        """An index with the dimensions ``want``."""
        if have == want:
            return text
        zeros = f"tl.zeros({self.tile_text(want)}, tl.int32)"
        return zeros if text == "0" else f"{text} + {zeros}"

    def operand(self, value: Any, dtype: DType, typed: bool = False) -> str:
        """A name, or a constant; ``typed``: one that has a type of its own."""
        if type(value) is str:
            return value
        return typed_literal(value, dtype) if typed else literal(value, dtype)

    def mask(self, shape: Shape, extra: str | None = None) -> tuple[str, Shape]:
        """The mask of an access with this shape, and the shape of the mask; "" when there is none."""
        parts = [self.masks[d] for d in self.dims if d in shape and d in self.masks]
        if extra is not None:
            parts.append((extra, self.shapes[extra]))
        return " & ".join([text for text, _ in parts]), frozenset().union(*[s for _, s in parts])

    # -- the phase -------------------------------------------------------------------------------------

    def write(self) -> list[str]:
        """All lines of the function's body."""
        phase = self.phase
        serial = chunk_loop(phase)
        if serial is not None:
            write_chunk(self, phase, serial)
            return self.lines
        blocks = block_loop(phase)
        if blocks is not None:
            write_block(self, phase, blocks)
            return self.lines
        if tile_loops(phase):
            write_tiles(self, phase)
            return self.lines
        self.begin("tl.program_id(0).to(tl.int64)" if self.wide else "tl.program_id(0)")
        if self.tile.whole:
            rows_first(self)
        self.all_of(phase.body)
        return self.lines

    def all_of(self, body: tuple[Stmt, ...]) -> None:
        """The statements, as they are printed."""
        ordered = self._order(body)
        for number, stmt in enumerate(ordered):
            self.following = ordered[number + 1 :]
            if type(stmt) is OnlineLoop:
                write_loop(self, stmt.loop, stmt.beside)
            else:
                self.statement(stmt)

    def begin(self, program: str) -> None:
        """The index along the kept axis for a program's number, and its mask."""
        axis = self.phase.axis.name
        self.add(f"{axis} = {program} * XBLOCK + tl.arange(0, XBLOCK){self.across('x')}")
        self.shapes[axis] = frozenset("x")
        extent = constant(self.phase.extent)
        if self.tile.x > 1 and not self.filled and (extent is None or extent % self.tile.x):
            self.add(f"inside_x = {axis} < {self.index(self.phase.extent)}")
            self.masks["x"] = ("inside_x", frozenset("x"))

    def begin_row(self, loop: Loop) -> None:
        """The index along the row, and its mask, which every pass over it has."""
        write_axis(self, loop, "")

    def _order(self, body: tuple[Stmt, ...]) -> list[Any]:
        if self.dims == "x":
            return stores_last(body)
        return list(body) if self.tile.whole else merge_passes(body)

    def statement(self, stmt: Stmt, beside: tuple[Beside, ...] = ()) -> None:
        """Any statement of kernel IR that has a meaning in a tile. ``beside``: what is reduced with it."""
        if beside and type(stmt) is Accumulate:
            write_accumulate(self, stmt, beside)
            return
        writer = _STATEMENTS.get(type(stmt))
        if writer is None:
            raise NotImplementedError(f"the Triton backend cannot print a {type(stmt).__name__} in a kernel")
        writer(self, stmt)

    def define(self, name: str, text: str, dtype: DType, shape: Shape) -> None:
        """Give a value a name."""
        self.dtypes[name], self.shapes[name] = dtype, shape
        self.add(f"{name} = {text}")

    # -- statements ------------------------------------------------------------------------------------

    def _let(self, stmt: Let) -> None:
        named = [a for a in stmt.args if type(a) is str]
        shape = frozenset().union(*[self.shapes[a] for a in named])
        if stmt.op == "constant":
            self.define(stmt.name, typed_literal(stmt.args[0], stmt.dtype), stmt.dtype, shape)
            return
        own = self.dtypes[named[0]]
        if stmt.op == "convert_element_type":
            language_type(own)
            self.values[stmt.name] = stmt
            text = rounded(stmt, own, self.values, self._in_pairs(shape)) or convert(named[0], own, stmt.dtype)
            self.define(stmt.name, text, stmt.dtype, shape)
            return
        if stmt.op == "where":
            own = stmt.dtype
            texts = [self.operand(stmt.args[0], bool_)]
            texts += [self.operand(a, own, typed=not any(type(b) is str for b in stmt.args[1:])) for a in stmt.args[1:]]
        else:
            texts = [self.operand(a, own, typed=wants_types(stmt.op, own)) for a in stmt.args]
        self.values[stmt.name] = stmt
        by_row = self.shapes.get(named[-1], shape) < self.shapes[named[0]] and named[-1] == stmt.args[-1]
        short = shorter(stmt, self.values, self._shortest(stmt.name, by_row), by_row) if own is stmt.dtype else None
        if short is not None:
            self.define(stmt.name, short, stmt.dtype, shape)
            return
        last = stmt.args[-1]
        exponent = float(last) if stmt.op == "pow" and type(last) in (int, float) else None  # type: ignore[arg-type]
        fast = self.narrow.get(stmt.name)
        self.define(stmt.name, expression(stmt.op, stmt.dtype, own, texts, exponent, fast), stmt.dtype, shape)

    def _shortest(self, name: str, by_row: bool) -> bool | None:
        """As ``narrow_names`` has it; also where a quotient by a number of the row is only added up."""
        return False if by_row and name in self.only_added else self.narrow.get(name)

    def _in_pairs(self, shape: Shape) -> bool:
        """Does a thread have at least two neighbours of a value with this shape?"""
        return shape == frozenset(self.dims) and self.tile.area >= 64 * self.tile.warps

    def _index_value(self, stmt: IndexValue) -> None:
        text, shape = self.index(stmt.expr), self.shape_of(stmt.expr)
        if not isinstance(stmt.expr, (Comparison, BooleanConstant)) or stmt.dtype is not bool_:
            text = f"tl.cast({text}, {language_type(stmt.dtype)})"
        self.define(stmt.name, text, stmt.dtype, shape)

    def _load(self, stmt: Load) -> None:
        if stmt.buffer in self.locals:
            load_local(self, stmt)
            return
        dtype = self.buffers[stmt.buffer] = self.declared[stmt.buffer]
        language_type(dtype)
        shape = self.shape_of(stmt.index)
        mask, of_mask = self.mask(shape, stmt.mask)
        want = shape | of_mask
        if want != shape:
            mask, _ = self.mask(want, stmt.mask)
        text = address_text(stmt.buffer, self.widened(self.index(stmt.index), shape, want))
        if mask:
            text += f", {mask}, other={self.operand(stmt.other, dtype)}"
        self.define(stmt.name, f"tl.load({text}{streaming(self, stmt)})", dtype, want)

    def _store(self, stmt: Store) -> None:
        if stmt.buffer in self.locals:
            store_local(self, stmt)
            return
        dtype = self.buffers[stmt.buffer] = self.declared[stmt.buffer]
        language_type(dtype)
        shape = self.shape_of(stmt.index)
        _, of_mask = self.mask(shape, stmt.mask)
        want = shape | of_mask | self.shape_of(stmt.value)
        mask, _ = self.mask(want, stmt.mask)
        place = address_text(stmt.buffer, self.widened(self.index(stmt.index), shape, want))
        call = "store" if stmt.mode == "set" else _atomic(stmt.mode, dtype)
        value = self.operand(stmt.value, dtype, typed=True)
        # what a kernel adds up is read by later ones only: no update waits for others
        hint = streaming(self, stmt) if stmt.mode == "set" else ', sem="relaxed"'
        self.add(f"tl.{call}({place}, {value}{f', {mask}' if mask else ''}{hint})")


def _atomic(mode: str, dtype: DType) -> str:
    """The function that combines with what is in memory."""
    if not has_atomic(mode, dtype):
        raise NotImplementedError(f"Triton has no atomic {mode} on {dtype}")
    return f"atomic_{mode}"


_STATEMENTS: dict[type, Any] = {
    Loop: write_loop, Let: PhaseWriter._let, Load: PhaseWriter._load, Store: PhaseWriter._store,
    IndexValue: PhaseWriter._index_value, BindIndex: write_bind, Accumulate: write_accumulate, Sort: write_sort,
}  # fmt: skip
