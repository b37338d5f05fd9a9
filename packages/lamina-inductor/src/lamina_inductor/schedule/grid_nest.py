"""Loops for a grid of programs: one parallel axis over tiles of everything kept, one vector axis over what is reduced.

A pointwise group is ``parallel simd x``. A group with reductions is ``parallel x`` with a ``simd r`` loop for each pass
over the reduced elements and the values of a row between them; nothing is kept in local arrays, so a backend may hold
the whole row in a tile (then the passes are one straight line) or walk it in blocks (then they are computed again).

    x[R, C] - x.mean(1):   parallel i2 < R                       (i3: what is reduced)
                             simd i3 < C, r2 = sum:  v1 = x[..];  r2 <- v1
                             v3 = div(r2, C)
                             simd i3 < C:            v1 = x[..];  v4 = sub(v1, v3);  out[..] = v4

Few long reductions are split: one phase makes a partial result per block, the next one combines them, in order.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.kernel import Loop
from .blocks import as_index
from .coalesce import coalesce, order_axes
from .emitter import Reduce, Unfusable
from .flat import analyse
from .groups import axis_symbol
from .row_nest import Partial

__all__ = ["grid_nest", "grid_scatter"]

BLOCK = 4096
"""Elements that one program adds up when a reduction is split."""

FEW = 512
"""Fewer results than these leave most of the machine idle, so their reductions are split when they are long."""


def grid_nest(
    statements: list[Any],
    axes: list[Symbol],
    sizes: dict[Symbol, Any],
    inner: frozenset[Symbol] | None,
    columns: Any = None,
) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """(phases, partial buffers, what was chosen) for a group's statements; as ``nests.build_nest``."""
    inner = inner or frozenset()
    rows = order_axes(statements, [a for a in axes if a not in inner])
    within = order_axes(statements, [a for a in axes if a in inner])
    flat = analyse(*coalesce(statements, [*rows, *within], sizes, inner))
    if any(type(s) is int and s == 0 for s in flat.sizes.values()):
        return (Loop(axis_symbol(0, 1), as_index(0), "parallel", ()),), [], "nothing"
    flat, x = _one_axis(flat, flat.rows, len(flat.axes))
    if not any(type(s) is Reduce for s in flat.statements):
        if flat.inner:
            flat, x = _one_axis(flat, flat.axes, len(flat.axes) + 2)
        body = tuple([i.stmt for i in flat.info.values()])
        return (Loop(x, as_index(flat.sizes.get(x, 1)), "parallel simd", body),), [], "pointwise"
    flat, r = _one_axis(flat, [a for a in flat.axes if a in flat.inner], x.lower_number + 1)
    flat = analyse(flat.statements, flat.axes, flat.sizes, frozenset((r,)))
    if any(type(s) is Reduce and s.axes != flat.inner for s in flat.statements):
        raise Unfusable("a reduction over the rows of a row reduction")
    if _wants_split(flat, r):
        return _split(flat, x, r)
    return (Loop(x, as_index(flat.sizes.get(x, 1)), "parallel", tuple(_passes(flat, r))),), [], "rows in a tile"
