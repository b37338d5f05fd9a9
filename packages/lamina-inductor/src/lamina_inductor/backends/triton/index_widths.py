"""Whether the indices of a kernel need 64 bits: those into its buffers, and those that become values.

Sizes that are symbols have no bound. A *narrow* program takes them for small enough: ``largest_indices`` lists what
must stay below ``LIMIT`` for that, and the launcher asks it of the sizes of each call (``GpuArtifact``).

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
from ...ir.program import Buffer, KernelCall, Launch, Program
from .index_reach import most_of, reached
from .tiles import constant

__all__ = ["LIMIT", "is_large", "largest_indices", "needs_64_bits", "passes_31_bits"]

_SPARE = 1 << 16
"""How far beyond the last element the tile of the last program reaches."""

LIMIT = (1 << 31) - _SPARE
"""Indices of 32 bits stay below."""


def is_large(buffer: Buffer, narrow: bool = False) -> bool:
    """May an index into the buffer need more than 31 bits? A size without a bound may be that large.

    ``narrow``: such sizes are taken for small.
    """
    extent = _extent(buffer)
    upper = constant(extent.range()[1] if isinstance(extent, Expr) else extent)
    return not narrow if upper is None else upper >= LIMIT


def _extent(buffer: Buffer) -> Any:
    extent: Any = 1
    for size, stride in zip(buffer.shape, buffer.strides, strict=True):
        extent = extent + (size - 1) * stride
    return extent


def needs_64_bits(kernel: Kernel, sizes: Sequence[Expr | int] = (), narrow: bool = False) -> bool:
    """Does an index that the kernel computes pass 31 bits when it is called with these sizes, whatever its buffers are?

    The positions of an ``arange`` do, in memory that is small or none at all. ``narrow``: numbers of the caller's,
    whose bounds are those of an int, are taken for small.
    """
    return any(map(passes_31_bits, _indices_in(kernel, [_opened(s) for s in sizes] if narrow else sizes)))


def _opened(size: Any) -> Any:
    """The size with symbols without bounds in place of those whose bounds say nothing."""
    if not isinstance(size, Expr):
        return size
    found = {symbol: Symbol(symbol.name) for symbol in size.free_symbols if passes_31_bits(symbol)}
    return size.substitute(found) if found else size  # type: ignore[arg-type]


def _indices_in(kernel: Kernel, sizes: Sequence[Expr | int]) -> Iterator[Any]:
    """Every index, with the axes' bounds for these sizes."""
    given = {s: as_expr(v) for s, v in zip(kernel.sizes, sizes, strict=True)}
    axes = {s.axis: _in_call(s.axis, given) for s in walk(kernel.body) if type(s) is Loop}
    for stmt in walk(kernel.body):
        for expr in _indices(stmt):
            yield expr.substitute(axes | given) if isinstance(expr, Expr) else expr  # type: ignore[arg-type]


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
    return -(1 << 31) <= bound < LIMIT


def _indices(stmt: Any) -> Iterator[Any]:
    if type(stmt) is Loop:
        yield from (stmt.axis, stmt.extent)
    elif type(stmt) is Load or type(stmt) is Store:
        yield stmt.index
    elif type(stmt) is IndexValue:
        yield stmt.expr
    elif type(stmt) is BindIndex and stmt.size is not None:
        yield stmt.size


# -- sizes without a bound -------------------------------------------------------------------------------


def largest_indices(program: Program) -> tuple[Expr, ...]:
    """What the indices of a program's kernels reach at most, where no number bounds it; each is below ``LIMIT`` where
    32 bits do for all."""
    found = [_extent(b) for b in program.buffers.values()]
    asked: set[tuple[Kernel, tuple[Any, ...]]] = set()
    for call in _calls(program):
        if (call.kernel, call.sizes) not in asked:
            asked.add((call.kernel, call.sizes))
            sizes = [_opened(size) for size in call.sizes]
            found.extend([i for i in _indices_in(call.kernel, sizes) if not passes_31_bits(i)])
    open_ = dict.fromkeys([e for e in found if isinstance(e, Expr) and None in e.range()])
    numbers: dict[Any, Any] = {Symbol(s.symbol.name): s.symbol for s in program.sizes}
    return most_of([bound.substitute(numbers) for e in open_ for bound in reached(e)])


def _calls(program: Program) -> Iterator[KernelCall]:
    for step in program.steps:
        epilogue = getattr(step, "epilogue", None)
        yield from step.parts if type(step) is Launch else () if epilogue is None else (epilogue,)
