"""Whether the indices of a kernel need 64 bits: those into its buffers, and those that become values.

>>> from lamina_fx.symbolic import Symbol
>>> i = Symbol("i0", 0, 1023)
>>> passes_31_bits(i * 4 + 3), passes_31_bits(i * 2**22)
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lamina_fx.symbolic import Expr, Integer, Sum, Symbol, as_expr

from ...ir.kernel import BindIndex, IndexValue, Kernel, Load, Loop, Store, walk
from ...ir.program import Buffer
from .tiles import constant

__all__ = ["is_large", "needs_64_bits", "passes_31_bits"]

_SPARE = 1 << 16
"""How far beyond the last element the tile of the last program reaches."""


def is_large(buffer: Buffer) -> bool:
    """May an index into the buffer need more than 31 bits? A size without a bound may be that large."""
    extent: Any = 1
    for size, stride in zip(buffer.shape, buffer.strides, strict=True):
        extent = extent + (size - 1) * stride
    upper = constant(extent.range()[1] if isinstance(extent, Expr) else extent)
    return upper is None or upper + _SPARE >= 1 << 31


def needs_64_bits(kernel: Kernel, sizes: Sequence[Expr | int] = ()) -> bool:
    """Does an index that the kernel computes pass 31 bits when it is called with these sizes, whatever its buffers are?

    The positions of an ``arange`` do, in memory that is small or none at all.
    """
    given = {s: as_expr(v) for s, v in zip(kernel.sizes, sizes, strict=True)}
    axes = {s.axis: _in_call(s.axis, given) for s in walk(kernel.body) if type(s) is Loop}
    return any(
        passes_31_bits(expr.substitute(axes | given) if isinstance(expr, Expr) else expr)  # type: ignore[arg-type]
        for stmt in walk(kernel.body)
        for expr in _indices(stmt)
    )


def _in_call(axis: Symbol, given: dict[Symbol, Expr]) -> Symbol:
    """The axis with the bound that it has for these sizes."""
    upper = axis.upper.substitute(given) if isinstance(axis.upper, Expr) else axis.upper  # type: ignore[arg-type]
    return Symbol(axis.name, axis.lower, upper, axis.divisor)


def passes_31_bits(expr: Any) -> bool:
    """Is a bound of the expression or of a part of it known, and beyond 31 bits? What has no bound is no index."""
    if not isinstance(expr, Expr):
        return type(expr) is int and not _fits(expr)
    parts = [Integer(expr.constant), *[term * c for term, c in expr.terms]] if type(expr) is Sum else []
    known = [b for part in (expr, *parts) for b in map(constant, part.range()) if b is not None]
    return not all(map(_fits, known)) or any(passes_31_bits(part) for part in expr.children())


def _fits(bound: int) -> bool:
    return -(1 << 31) <= bound < (1 << 31) - _SPARE


def _indices(stmt: Any) -> Iterator[Any]:
    if type(stmt) is Loop:
        yield from (stmt.axis, stmt.extent)
    elif type(stmt) is Load or type(stmt) is Store:
        yield stmt.index
    elif type(stmt) is IndexValue:
        yield stmt.expr
    elif type(stmt) is BindIndex and stmt.size is not None:
        yield stmt.size
