"""How large the tiles of kernels over several axes are (``schedule.tiled_nest``)."""

from __future__ import annotations

import math
from typing import Any

from lamina_fx.symbolic import Symbol, as_expr

from ...ir.kernel import Let, Load, Loop, Store, walk
from ...lower.pointwise import COSTS
from ...schedule.coalesce import walked_axis
from ...schedule.flat import affine
from .tiles import FEW_PROGRAMS, Tile, power, upper

__all__ = ["choose_axis_tile", "tile_loops"]

SIDE, SHORT_SIDE, FEW_SIDE = 64, 16, 32
"""Elements of a tile along an axis that accesses walk memory by: of two such axes, of three, and of two where there are
so few tiles that the machine would be idle."""

NARROW_SIDE, LONG, CHEAP = 128, 1024, 8
"""The same of two long axes where all elements have at most two bytes and little is computed of them: operators of
about as much work as so many additions."""

AREA, THREE_AREA, FEW_AREA = 4096, 8192, 1024
"""Elements of a tile, in the same cases."""

FEW_ACCESSES, MANY_ACCESSES = 3, 6
"""A thread has 16 elements of so few operands and results, with the registers that they take; 4 of more than so
many."""


def tile_loops(phase: Loop) -> list[Loop]:
    """The loops of a phase over tiles of several axes, outermost first; none in another phase."""
    found: list[Loop] = []
    inner: Any = phase.body[0] if phase.body else None
    while type(inner) is Loop and inner.kind == "tile":
        found.append(inner)
        inner = inner.body[0]
    return found


def choose_axis_tile(phase: Loop, batch: int | None) -> Tile | None:
    """The tile of a phase over several axes: a square, or a cube, of those that accesses walk memory by, as near as
    their extents allow; what is left of its elements goes to the others, or to the last ones. None: it has one axis.

    ``batch``: as ``extent`` of ``tiles.choose_tile``."""
    loops = tile_loops(phase)
    if not loops:
        return None
    axes = [loop.axis for loop in loops]
    extents = [upper(loop.extent) for loop in loops]
    known = [n for n in (batch, *extents) if n is not None]
    few = len(known) > len(extents) and math.prod(known) < FEW_PROGRAMS * AREA
    accesses = [s for s in walk(phase.body) if isinstance(s, (Load, Store))]
    walked = {axes[-1], *[walked_axis(affine(s.index, frozenset(axes)), axes[-1]) for s in accesses]} - {None}
    count = len({(s.buffer, s.index, type(s)) for s in accesses if _along(s, axes) > 1})
    each = 16 if count <= FEW_ACCESSES else 8 if count <= MANY_ACCESSES else 4
    start, area = (SIDE, AREA) if len(walked) == 2 else (SHORT_SIDE, AREA if each < 8 else THREE_AREA)
    if few or each < 8:
        small = few or count > 2 * MANY_ACCESSES
        start, area = min(start, FEW_SIDE), FEW_AREA if small else AREA // 2
    elif each > 8 and len(walked) == 2 and _is_narrow(phase) and all(e is None or e >= LONG for e in extents):
        start, area, each = NARROW_SIDE, NARROW_SIDE**2, 32
    elif len(walked) > 2:
        each *= 2
    most = [area if e is None else power(e) for e in extents]
    sides = [_side(e, start) if a in walked else 1 for a, e in zip(axes, extents, strict=True)]
    for k in sorted(range(len(axes)), key=lambda k: axes[k] in walked):
        while math.prod(sides) < area and sides[k] < most[k]:
            sides[k] *= 2
    y, x = sides[-2:]
    warps = max(1, min(16, math.prod(sides) // (32 * each)))
    return Tile(x, y=y, z=sides[0] if len(sides) == 3 else 0, warps=warps)


def _along(access: Load | Store, axes: list[Symbol]) -> int:
    """How many axes an access depends on."""
    return len(as_expr(access.index).free_symbols & set(axes))


def _is_narrow(phase: Loop) -> bool:
    """Has every element that is read or written along several axes at most two bytes, and is little done with it?"""
    inside = list(walk(phase.body))
    axes = [loop.axis for loop in tile_loops(phase)]
    dtypes = {s.name: s.dtype for s in inside if isinstance(s, (Load, Let))}
    full = [s for s in inside if isinstance(s, (Load, Store)) and _along(s, axes) > 1]
    named = [s.name if type(s) is Load else s.value for s in full]  # type: ignore[union-attr]
    work = sum([COSTS.get(s.op, 1) for s in inside if type(s) is Let and s.op != "convert_element_type"])
    return work <= CHEAP and all(n in dtypes and dtypes[n].itemsize <= 2 for n in named)  # type: ignore[index]


def _side(extent: int | None, side: int) -> int:
    """The side, or half of it where an axis ends soon behind a tile."""
    if extent is None:
        return side
    side = min(side, power(extent))
    whole, half = (-(-extent // n) * n for n in (side, max(1, side // 2)))
    return side // 2 if side > SHORT_SIDE and 4 * whole > 5 * half else side
