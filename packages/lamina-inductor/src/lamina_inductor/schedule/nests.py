"""Choose the loops of a group: pointwise, rows, columns, or rows with everything reduced late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Integer, Min, Symbol

from ..ir.kernel import Loop, Store
from .coalesce import coalesce, fast_axis, order_axes
from .column_nest import column_nest
from .emitter import Reduce, Scan, Unfusable
from .flat import Flat, analyse, substitute
from .groups import axis_symbol
from .pointwise_nest import pointwise_nest
from .row_nest import Partial, row_nest
from .row_passes import KEEP_LIMIT
from .scan_nest import scan_nest
from .split_reduction import split_reduction
from .trace import rows_of

__all__ = ["build_nest"]

SMALL = 1 << 13
"""A full reduction of at most this many elements is one serial loop."""

SPLIT = 4096
"""Elements of one block of a long full reduction."""

SEARCHED = 1 << 15
"""Elements that one thread searches for an extremum's place at a time."""

COLUMN_LIMIT = 1 << 14
"""Columns up to which partial sums per chunk of rows are kept rather than tiles of columns."""

LONG = 128
"""Fewer rows than these to add up are not worth partial sums."""


def build_nest(
    statements: list[Any],
    axes: list[Symbol],
    sizes: dict[Symbol, Any],
    inner: frozenset[Symbol] | None,
    columns: Any = None,
) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """(phases, partial buffers, what was chosen) for a group's statements."""
    inner = inner or frozenset()
    if any(type(s) is Scan for s in statements):
        return scan_nest(statements, order_axes(statements, axes), sizes), [], "scan"
    if columns is None:  # an epilogue keeps the order of its product
        axes = _ordered(statements, axes, inner)
    fast = fast_axis(statements, axes)
    statements, axes, sizes, inner, fast = _coalesced(statements, axes, sizes, inner, fast)
    flat = analyse(statements, axes, sizes, inner)
    if not any(type(s) is Reduce for s in statements):
        return pointwise_nest(_by_rows(flat, columns)), [], "pointwise"
    return _reduced(flat, fast)


def _by_rows(flat: Flat, columns: Any) -> Flat:
    """One axis cut into rows of ``columns`` elements."""
    if columns is None or len(flat.axes) != 1:
        return flat
    (axis,) = flat.axes
    rows = rows_of(flat.sizes[axis], columns)
    if rows is None or any(type(n) is int and n < 2 for n in (rows, columns)):
        return flat
    row, place = axis_symbol(0, rows), axis_symbol(1, columns)
    statements = [substitute(s, {axis: row * columns + place}) for s in flat.statements]
    return analyse(statements, [row, place], {row: rows, place: columns}, frozenset())


def _ordered(statements: list[Any], axes: list[Symbol], inner: frozenset[Symbol]) -> list[Symbol]:
    if not inner:
        return order_axes(statements, axes)
    rows = order_axes(statements, [a for a in axes if a not in inner])
    within = order_axes(statements, [a for a in axes if a in inner])
    places = iter(rows), iter(within)
    return [next(places[1]) if a in inner else next(places[0]) for a in axes]


def _coalesced(statements: list[Any], axes: Any, sizes: Any, inner: Any, fast: Any) -> Any:
    before = list(axes)
    statements, axes, sizes, inner = coalesce(statements, before, sizes, inner)
    fast = fast_axis(statements, axes)
    return statements, axes, sizes, inner, fast


def _reduced(flat: Flat, fast: Symbol | None) -> tuple[tuple[Loop, ...], list[Partial], str]:
    feeds_main = any(
        i.level > (1 if type(i.stmt) is Reduce else 0) and ((i.axes & flat.inner) or type(i.stmt) is Reduce)
        for i in flat.info.values()
        if not i.late
    )
    has_arg = any(type(s) is Reduce and s.kind.startswith("arg") for s in flat.statements)
    has_late = any(type(s) is Reduce and s.axes != flat.inner for s in flat.statements)
    if not flat.rows and not feeds_main and not has_arg:
        return _full(flat)
    if has_arg and not flat.rows and not feeds_main and len(flat.axes) == 1:
        total = flat.extent(flat.axes)
        if type(total) is not int or total > SEARCHED:
            return _searched(flat)
    if fast is None or fast in flat.inner or has_arg:
        return (*row_nest(flat if has_arg else _long_rows(flat)), "rows")
    if has_late:
        return (*row_nest(flat), "rows, strided")
    kept = flat.extent(flat.rows)
    reduced = flat.extent(_inner(flat))
    long = type(reduced) is not int or reduced >= LONG
    if not feeds_main and long and type(kept) is int and kept <= COLUMN_LIMIT:
        turned = analyse(flat.statements, [*_inner(flat), *flat.rows], flat.sizes, frozenset(flat.rows))
        return (*row_nest(turned), "columns by partial sums")
    return column_nest(flat, fast), [], "columns by tiles"


def _searched(flat: Flat) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """The place of an extremum of everything: each block's, then the first of the best."""
    phases, partials, _ = split_reduction(flat, axis_symbol(1, 1), flat.axes[0], SEARCHED, 2)
    return tuple([replace(phase, grain=Integer(1)) for phase in phases]), partials, "all by partial results"


def _long_rows(flat: Flat) -> Flat:
    """Cut a very long inner axis in two, so that float sums are added up block by block (the error grows with the
    block)."""
    inner = _inner(flat)
    size = flat.sizes[inner[0]]
    if len(inner) != 1 or type(size) is not int or size <= KEEP_LIMIT:
        return flat
    (axis,) = inner
    blocks = -(-size // SPLIT)
    block, place = axis_symbol(len(flat.axes), blocks), axis_symbol(len(flat.axes) + 1, SPLIT)
    statements = [substitute(s, {axis: block * SPLIT + place}) for s in flat.statements]
    sizes = {a: s for a, s in flat.sizes.items() if a is not axis}
    sizes |= {block: blocks, place: Min(SPLIT, size - block * SPLIT)}
    axes = [*flat.rows, block, place]
    return analyse(statements, axes, sizes, frozenset((block, place)))


def _inner(flat: Flat) -> list[Symbol]:
    return [a for a in flat.axes if a in flat.inner]


def _full(flat: Flat) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """Everything is reduced: by blocks, unless it is small."""
    total = flat.extent(flat.axes)
    if type(total) is int and total <= SMALL:
        return (*row_nest(flat), "one loop")
    if len(flat.axes) > 1:
        turned = analyse(flat.statements, flat.axes, flat.sizes, frozenset(flat.axes[-1:]))
        return (*row_nest(turned), "all by partial results")
    (axis,) = flat.axes
    size = flat.sizes[axis]
    blocks = (size + SPLIT - 1) // SPLIT
    block, place = axis_symbol(1, blocks), axis_symbol(2, SPLIT)
    statements = [substitute(s, {axis: block * SPLIT + place}) for s in flat.statements]
    statements = [replace(s, axes=frozenset((block, place))) if type(s) is Reduce else s for s in statements]
    sizes = {block: blocks, place: Min(SPLIT, size - block * SPLIT)}
    turned = analyse(statements, [block, place], sizes, frozenset((place,)))
    if any(type(i.stmt) is Store and (i.axes & turned.inner) and i.late for i in turned.info.values()):
        raise Unfusable("an element of a full reduction's operand waits for its result")
    return (*row_nest(turned), "all by partial results")
