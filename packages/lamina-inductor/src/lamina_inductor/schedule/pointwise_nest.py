"""Loops for groups without reductions: one parallel axis over everything outside, a vector loop inside."""

from __future__ import annotations

from lamina_fx.symbolic import Integer

from ..ir.kernel import Loop
from .blocks import as_index, grain, in_order, nest
from .flat import Flat
from .groups import axis_symbol
from .rows import flat_rows

__all__ = ["pointwise_nest"]

SHORT = 8
"""An innermost axis shorter than this is merged with its neighbour, with divisions in the indices."""


def pointwise_nest(flat: Flat) -> tuple[Loop, ...]:
    """The one phase of a pointwise group."""
    axes = flat.axes
    infos = in_order(flat, set(flat.info))
    cost = sum(i.cost for i in infos)
    if any(type(s) is int and s == 0 for s in flat.sizes.values()):
        return (Loop(axis_symbol(0, 1), Integer(0), "parallel", (), grain=Integer(1)),)
    if not axes:
        axis = axis_symbol(0, 1)
        body = tuple([i.stmt for i in infos])
        return (Loop(axis, Integer(1), "parallel", body, grain=Integer(1024)),)  # many of them: no work for a pool
    if len(axes) == 1:
        body = nest([], flat, infos)
        return (Loop(axes[0], as_index(flat.sizes[axes[0]]), "parallel simd", body, grain=grain(cost)),)
    last = flat.sizes[axes[-1]]
    flat, row = flat_rows(flat, axes[:-1], len(axes))
    infos = in_order(flat, set(flat.info))
    body = nest([axes[-1]], flat, infos)
    work = cost * last if type(last) is int else None
    return (Loop(row, as_index(flat.sizes[row]), "parallel", body, grain=grain(work)),)
