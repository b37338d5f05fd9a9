"""The text of one template kernel while it is written: lines, pointers with what they are given, sizes, block sizes.

>>> from lamina_fx import float32
>>> from lamina_fx.symbolic import Symbol
>>> text = KernelText()
>>> text.pointer("left", float32, "arg0")
>>> text.add(f"rows = {text.size(Symbol('s0', 1) * 4)}")
>>> kernel, buffers, sizes = text.finish(warps=4)
>>> print(kernel.source, buffers, sizes)
@triton.jit
def KERNEL(left, n_s0):
    rows = 4*n_s0
 ('arg0',) (s0,)
"""

from __future__ import annotations

from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr, Symbol, as_expr

from ....ir.program import Operand
from ..indices import index_text
from ..literals import pointer_type
from ..program import Scratch, TensorDescriptor, TritonKernel
from ..tiles import Tile, constant

__all__ = ["ANONYMOUS", "KernelText", "is_multiple", "is_stride"]

ANONYMOUS = "KERNEL"
"""Name of a kernel before a program gives it one; equal kernels have equal texts until then."""


def is_multiple(size: Any, factor: int) -> bool:
    """Is the size known to be a multiple?"""
    known = constant(size)
    if known is not None:
        return known % factor == 0
    return isinstance(size, Expr) and constant(size % factor) == 0


def is_stride(step: Any, factor: int) -> bool:
    """May a descriptor step by so much: a multiple, and not backwards (a flip)?"""
    lower = as_expr(step).range()[0]
    return is_multiple(step, factor) and lower is not None and lower >= 0


class KernelText:
    """Lines of a kernel and its arguments.

    wide: integers and indices need 64 bits. language: what the text is written in, ``triton`` or ``gluon``.
    """

    def __init__(self, wide: bool = False, language: str = "triton") -> None:
        self.wide, self.language = wide, language
        self.lines: list[str] = []
        self.depth = 0
        self.pointers: dict[str, tuple[str, Any]] = {}
        self.unaligned: set[str] = set()
        self.symbols: dict[Symbol, str] = {}
        self.numbers: dict[str, tuple[str, Any]] = {}
        self.blocks: dict[str, Any] = {}

    def add(self, *lines: str) -> None:
        """Lines at the depth of the loops that are open."""
        self.lines.extend("    " * self.depth + line for line in lines)

    def block(self, **values: Any) -> None:
        """Constants of the kernel with a name: ``tl.constexpr`` parameters."""
        self.blocks.update(values)

    # -- arguments -------------------------------------------------------------------------------------

    def pointer(self, name: str, dtype: DType, value: str | Operand | Scratch) -> None:
        """A pointer parameter and the buffer, operand or scratch memory that it is given."""
        self.pointers[name] = (pointer_type(dtype), value)
        if isinstance(value, Operand) and not is_multiple(value.offset * dtype.itemsize, 16):
            self.unaligned.add(name)

    def descriptor(self, name: str, operand: Operand, block: tuple[int, ...], layout: str = "") -> None:
        """A tensor descriptor of an operand, made by the host. layout: of its tiles in shared memory, in Gluon."""
        tile = f"{pointer_type(operand.dtype)[1:]}[{', '.join(map(str, block))}]"
        kind = f"tensordesc<{tile},{layout}>" if layout else f"tensordesc<{tile}>"
        self.pointers[name] = (kind, TensorDescriptor(operand, block))
        self.unaligned.add(name)

    def number(self, name: str, kind: str, value: Any) -> str:
        """A parameter that is a number, of type ``kind`` (``fp32``, ``i32``)."""
        self.numbers[name] = (kind, value)
        return name

    def size(self, expr: Any) -> str:
        """An index expression as text; its symbols become parameters."""
        if isinstance(expr, Expr):
            self.use(expr.free_symbols)
        return index_text(expr, self.symbols)

    def atom(self, expr: Any) -> str:
        """As ``size``, in brackets where it is not one word."""
        text = self.size(expr)
        return text if text.isalnum() or text.isidentifier() else f"({text})"

    def use(self, symbols: Any) -> None:
        """Make these size symbols parameters, numbered: kernels over other sizes have the same text."""
        for symbol in sorted(symbols, key=str):
            self.symbols.setdefault(symbol, f"n_s{len(self.symbols)}")

    # -- the end ---------------------------------------------------------------------------------------

    def finish(
        self,
        *,
        warps: int,
        stages: int | None = None,
        registers: int | None = None,
        origins: tuple[Any, ...] = (),
        checks: bool = False,
    ) -> tuple[TritonKernel, tuple[Any, ...], tuple[Any, ...]]:
        """(kernel without a name, buffers and sizes of a launch)."""
        integer = "i64" if self.wide else "i32"
        parameters = [(name, kind) for name, (kind, _) in self.pointers.items()]
        parameters += [(name, integer) for name in self.symbols.values()]
        parameters += [(name, kind) for name, (kind, _) in self.numbers.items()]
        parameters += [("error", "*i32")] if checks else []
        names = [name for name, _ in parameters] + [f"{name}: tl.constexpr" for name in self.blocks]
        body = "\n".join(["    " + line for line in (*_comments(origins), *self.lines)])
        source = f"@{self.language}.jit\ndef {ANONYMOUS}({', '.join(names)}):\n{body}\n"
        even = [name for symbol, name in self.symbols.items() if is_multiple(symbol, 16)]
        aligned = frozenset((*(p for p in self.pointers if p not in self.unaligned), *even))
        blocks = tuple(self.blocks.items())
        tile = Tile(1, warps=warps)
        kernel = TritonKernel(ANONYMOUS, source, tuple(parameters), tile, aligned, origins, blocks, stages, registers)
        values = (*self.symbols, *(value for _, value in self.numbers.values()))
        return kernel, tuple([value for _, value in self.pointers.values()]), values


def _comments(origins: tuple[Any, ...]) -> list[str]:
    """What is computed, by the user's line."""
    lines: dict[str, list[str]] = {}
    for _, op, line in origins:
        lines.setdefault(line, []).append(op)
    return ["# " + ", ".join(dict.fromkeys(ops)) + (f" at {line}" if line else "") for line, ops in lines.items()]
