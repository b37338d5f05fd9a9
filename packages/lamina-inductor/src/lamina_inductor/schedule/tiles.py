"""Square tiles for pointwise groups in which one access walks memory along another axis than the rest (a transpose)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Min, Symbol

from ..ir.kernel import Load, Local, Loop, Stmt, Store
from .blocks import as_index, grain, in_order, nest
from .flat import Flat, affine, analyse, substitute
from .groups import axis_symbol
from .rows import flat_rows

__all__ = ["crossing_axis", "tiled_nest"]

TILE, ACROSS = 32, 128
"""Sides of a tile, along the last axis and along the crossing one. The latter is longer: each of its rows lies on a
page of its own, so a
short one would cost a page look-up for a few elements."""


def crossing_axis(flat: Flat) -> Symbol | None:
    """An axis along which some access walks memory element by element while it jumps along the last one."""
    known, last = frozenset(flat.axes), flat.axes[-1]
    for stmt in flat.statements:
        if type(stmt) is Load or type(stmt) is Store:
            steps = affine(stmt.index, known) or {}
            if steps.get(last, 0) in (0, 1):
                continue
            for axis in flat.axes[:-1]:
                if steps.get(axis) == 1 and _long(flat.sizes[axis]) and _long(flat.sizes[last]):
                    return axis
    return None


def _long(size: Any) -> bool:
    return type(size) is not int or size >= 2 * TILE


def tiled_nest(flat: Flat, crossing: Symbol, cost: int) -> Loop:
    """Square tiles over ``crossing`` and the last axis, so that both directions of access stay in cache."""
    last = flat.axes[-1]
    outer = [a for a in flat.axes if a is not crossing and a is not last]
    spare = len(flat.axes) + 1
    sizes: dict[Symbol, Any] = {a: flat.sizes[a] for a in outer}
    mapping: dict[Any, Any] = {}
    tiles, places = [], []
    for number, (axis, side) in enumerate(((crossing, ACROSS), (last, TILE))):
        size = flat.sizes[axis]
        count = (size + side - 1) // side
        tile, place = axis_symbol(spare + 2 * number, count), axis_symbol(spare + 2 * number + 1, side)
        sizes |= {tile: count, place: Min(side, size - tile * side)}
        mapping[axis] = tile * side + place
        tiles.append(tile)
        places.append(place)
    statements = [substitute(s, mapping) for s in flat.statements]
    split = analyse(statements, [*outer, *tiles, *places], sizes, flat.inner)
    split, row = flat_rows(split, [*outer, *tiles], spare + 4)
    staged, setup = _stage(split, places)
    body = nest(places, staged, in_order(staged, set(staged.info)))
    return Loop(row, as_index(split.sizes[row]), "parallel", (*setup, *body), grain=grain(cost * TILE * ACROSS))


def _stage(flat: Flat, places: list[Symbol]) -> tuple[Flat, list[Stmt]]:
    """Loads that jump along the last axis go through a local tile, filled along the axis in which memory lies.

    (Rows whose distance is a power of two would otherwise fall into few sets of the cache.)
    """
    first, last = places
    known = frozenset(places)
    setup: list[Stmt] = []
    statements: list[Any] = []
    for stmt in flat.statements:
        steps = affine(stmt.index, known) if type(stmt) is Load else None
        crosses = steps is not None and steps.get(first) == 1 and steps.get(last, 0) not in (0, 1)
        if not crosses or stmt.mask is not None or flat.info[stmt.name].needs:
            statements.append(stmt)
            continue
        array, spot = f"tile{len(setup) // 2}", first * (TILE + 1) + last
        setup.append(Local(array, stmt.dtype, ACROSS * (TILE + 1)))
        name = f"{stmt.name}_t"
        fill = (replace(stmt, name=name), Store(array, spot, name))
        inner = Loop(first, as_index(flat.sizes[first]), "simd", fill)
        setup.append(Loop(last, as_index(flat.sizes[last]), "serial", (inner,)))
        statements.append(replace(stmt, buffer=array, index=spot))
    return analyse(statements, flat.axes, flat.sizes, flat.inner), setup
