"""Make one axis of several, for the one parallel axis of a phase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Symbol

from ..lower.views import unflatten_index
from .emitter import Reduce
from .flat import Flat, affine, analyse, indices_of, substitute
from .groups import axis_symbol

__all__ = ["flat_rows"]


def flat_rows(flat: Flat, rows: list[Symbol], number: int) -> tuple[Flat, Symbol]:
    """Replace several axes by one, with divisions in the indices."""
    if len(rows) == 1:
        return flat, rows[0]
    extent = flat.extent(rows)
    row = axis_symbol(number, extent)
    places = unflatten_index(row, tuple([flat.sizes[axis] for axis in rows]))
    mapping: dict[Any, Any] = dict(zip(rows, places, strict=True))
    together: dict[Any, Any] = dict.fromkeys(rows, 0) | {rows[-1]: row}
    statements = [
        replace(s, axes=frozenset([row if a in mapping else a for a in s.axes]))
        if type(s) is Reduce
        else substitute(s, together if _walks_as_one(s, rows, flat) else mapping)
        for s in flat.statements
    ]
    axes = [row, *[a for a in flat.axes if a not in mapping]]
    sizes: dict[Symbol, Any] = {row: extent}
    for axis, size in flat.sizes.items():  # a size may depend on a row: the last tile is shorter
        if axis not in mapping:
            sizes[axis] = size if type(size) is int else size.substitute(mapping)
    return analyse(statements, axes, sizes, flat.inner), row


def _walks_as_one(stmt: Any, rows: list[Symbol], flat: Flat) -> bool:
    """Does the statement's index step over the rows as over one axis?"""
    indices = indices_of(stmt)
    if not indices:
        return False
    steps = affine(indices[0], frozenset(rows))
    if steps is None:
        return False
    step: Any = steps.get(rows[-1], 0)
    for axis, inner in zip(reversed(rows[:-1]), reversed(rows[1:]), strict=True):
        step = step * flat.sizes[inner]
        if not bool(steps.get(axis, 0) == step):
            return False
    return True
