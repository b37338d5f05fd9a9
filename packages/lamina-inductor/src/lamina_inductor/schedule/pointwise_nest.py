"""Loops for groups without reductions: one parallel axis over everything outside, a vector loop inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Integer, Symbol

from ..ir.kernel import Loop
from .blocks import as_index, grain, in_order, nest
from .flat import Flat, analyse, substitute
from .groups import axis_symbol

__all__ = ["flat_rows", "pointwise_nest"]

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
        return (Loop(axis, Integer(1), "parallel", tuple([i.stmt for i in infos]), grain=Integer(1)),)
    if len(axes) == 1:
        body = nest([], flat, infos)
        return (Loop(axes[0], as_index(flat.sizes[axes[0]]), "parallel simd", body, grain=grain(cost)),)
    last = flat.sizes[axes[-1]]
    flat, row = flat_rows(flat, axes[:-1], len(axes))
    infos = in_order(flat, set(flat.info))
    body = nest([axes[-1]], flat, infos)
    work = cost * last if type(last) is int else None
    return (Loop(row, as_index(flat.sizes[row]), "parallel", body, grain=grain(work)),)


def flat_rows(flat: Flat, rows: list[Symbol], number: int) -> tuple[Flat, Symbol]:
    """Replace several axes by one, with divisions in the indices."""
    if len(rows) == 1:
        return flat, rows[0]
    extent = flat.extent(rows)
    row = axis_symbol(number, extent)
    mapping: dict[Any, Any] = {}
    rest: Any = row
    for axis in reversed(rows[1:]):
        mapping[axis] = rest % flat.sizes[axis]
        rest = rest // flat.sizes[axis]
    mapping[rows[0]] = rest
    statements = [substitute(s, mapping) for s in flat.statements]
    statements = [replace(s, axes=_moved(s.axes, mapping)) if hasattr(s, "axes") else s for s in statements]
    axes = [row, *[a for a in flat.axes if a not in mapping]]
    sizes = {row: extent} | {a: s for a, s in flat.sizes.items() if a not in mapping}
    return analyse(statements, axes, sizes, flat.inner), row


def _moved(axes: frozenset[Symbol], mapping: dict[Any, Any]) -> frozenset[Symbol]:
    return frozenset().union(*[mapping[a].free_symbols if a in mapping else {a} for a in axes])


