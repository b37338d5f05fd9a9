"""How large the tiles of kernels over several axes are (``schedule.tiled_nest``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lamina_fx.symbolic import Symbol, as_expr

from ...ir.kernel import Let, Load, Loop, Store, walk
from ...lower.pointwise import COSTS
from ...schedule.coalesce import walked_axis
from ...schedule.flat import affine
from .tiles import FEW_PROGRAMS, Tile, power, upper

__all__ = ["choose_axis_tile", "tile_loops"]

SIDE, AREA = 64, 4096
"""Elements of a tile along an axis that accesses walk memory by, and of all of it."""

FEW_SIDE, FEW_AREA = 32, 1024
"""The same where there are so few tiles that the machine would be idle, or more operands than registers."""

NARROW_SIDE, LONG, CHEAP = 128, 1024, 8
"""The same of long axes where all elements have at most two bytes and little is computed of them: operators of about as
much work as so many additions."""

SHORT_SIDE, THREE_AREA = 16, 16384
"""The same where accesses walk memory by three axes."""

SHARED_SIDE, SHARED_LENGTH = 16, 128
"""Elements of a tile along the last axis, which shares work, and along the first one, by which all accesses walk
memory, where updates are added up."""

IMAGE_LENGTH = 4096
"""The same of one place of the last axis where elements are looked up: they lie in one image then, of which a
multiprocessor keeps what it has read. That is worth more than to share work."""

OPERANDS = 3
"""A thread has 16 elements of so many operands and results, with the registers that they take, or of twice as many
narrow ones; 8 of twice that, else 4."""

ALIGNED = 16
"""Bytes that a thread moves at once where rows of memory begin at multiples of them."""


def tile_loops(phase: Loop) -> list[Loop]:
    """The loops of a phase over tiles of several axes, outermost first; none in another phase."""
    found: list[Loop] = []
    inner: Any = phase.body[0] if phase.body else None
    while type(inner) is Loop and inner.kind == "tile":
        found.append(inner)
        inner = inner.body[0]
    return found


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What is read and written along several axes of a tile: ``count`` operands and results; are all ``narrow`` (two
    bytes at most), do all have their rows ``aligned``? ``work``: of an element."""

    count: int
    narrow: bool
    aligned: bool
    work: int


def choose_axis_tile(phase: Loop, batch: int | None) -> Tile | None:
    """The tile of a phase over several axes: a square, or a cube, of those that accesses walk memory by, as near as
    their extents allow; what is left of its elements goes to the others, or to the longer ones. None: it has one axis.

    ``batch``: as ``extent`` of ``tiles.choose_tile``."""
    loops = tile_loops(phase)
    if not loops:
        return None
    axes = [loop.axis for loop in loops]
    extents = [upper(loop.extent) for loop in loops]
    accesses = [s for s in walk(phase.body) if isinstance(s, (Load, Store))]
    walked = {axes[-1], *[walked_axis(affine(s.index, frozenset(axes)), axes[-1]) for s in accesses]} - {None}
    if len(axes) == 2 and {walked_axis(affine(s.index, frozenset(axes)), axes[0]) for s in accesses} <= {axes[0], None}:
        return _shared_tile(any(type(s) is Store and s.atomic for s in accesses), batch, *extents)
    total = None if batch is None or None in extents else batch * math.prod(extents)  # type: ignore[arg-type]
    aims, area, each = _aim(_traffic(phase, axes), len(walked), extents, total)
    most = [area if e is None else power(e) for e in extents]
    sides = [_side(e, n) if a in walked else 1 for a, e, n in zip(axes, extents, aims, strict=True)]
    while math.prod(sides) < area and sides != most:
        for k in sorted(range(len(axes)), key=lambda k: axes[k] in walked):
            if math.prod(sides) < area and sides[k] < most[k]:
                sides[k] *= 2
    y, x = sides[-2:]
    warps = max(1, min(16, math.prod(sides) // (32 * each)))
    return Tile(x, y=y, z=sides[0] if len(sides) == 3 else 0, warps=warps)


def _shared_tile(adds: bool, batch: int | None, length: int | None, several: int | None) -> Tile:
    """Of a phase in which elements along the last axis share work. ``adds``: to what others add to, too."""
    if adds:
        x = _side(several, SHARED_SIDE)
        y = min(SHARED_LENGTH, power(length or SHARED_LENGTH))
        return Tile(x, y=y, warps=max(1, x * y // 512))
    y = min(IMAGE_LENGTH, power(length or IMAGE_LENGTH))
    if batch is not None and length is not None and several is not None:
        while y > SHARED_LENGTH and batch * several * -(-length // y) < FEW_PROGRAMS:
            y //= 2
    return Tile(1, y=y, warps=max(1, y // 256))


def _aim(traffic: _Traffic, walked: int, extents: list[int | None], total: int | None) -> tuple[list[int], int, int]:
    """Sides to begin with, elements of a tile, and of a thread."""
    few = total is not None and total < FEW_PROGRAMS * AREA
    registers = OPERANDS * (2 if traffic.narrow else 1)
    each = 16 if traffic.count <= registers else 8 if traffic.count <= 2 * registers else 4
    if few or traffic.count > 4 * registers:
        return [FEW_SIDE if walked == 2 else SHORT_SIDE] * len(extents), FEW_AREA, each
    if walked > 2:
        return [SHORT_SIDE] * len(extents), THREE_AREA if each > 4 else AREA, 2 * each
    if each == 4:
        return [FEW_SIDE] * len(extents), AREA // 2, each
    if traffic.count <= OPERANDS and traffic.narrow and traffic.work <= CHEAP:
        many = total is None or total >= FEW_PROGRAMS * NARROW_SIDE**2
        if many and all(e is None or e >= LONG for e in extents):
            return [NARROW_SIDE] * len(extents), NARROW_SIDE**2, 2 * each
    long = all(e is None or e >= 2 * SIDE for e in extents)
    if long and each == 16 and not traffic.narrow and not traffic.aligned:  # longer rows have fewer ends
        return [SIDE] * (len(extents) - 1) + [2 * SIDE], 2 * AREA, 2 * each
    return [SIDE] * len(extents), AREA, each


def _traffic(phase: Loop, axes: list[Symbol]) -> _Traffic:
    inside, known = list(walk(phase.body)), frozenset(axes)
    dtypes = {s.name: s.dtype for s in inside if isinstance(s, (Load, Let))}
    found: dict[tuple[Any, ...], tuple[int, bool]] = {}
    for stmt in inside:
        if isinstance(stmt, (Load, Store)) and len(as_expr(stmt.index).free_symbols & known) > 1:
            dtype = dtypes.get(stmt.name if type(stmt) is Load else stmt.value)  # type: ignore[union-attr, arg-type]
            size, steps = dtype.itemsize if dtype else 4, affine(stmt.index, known) or {}
            others = [n for axis, n in steps.items() if axis is not walked_axis(steps, axes[-1])]
            aligned = all(type(n) is int and n * size % ALIGNED == 0 for n in others)
            found[type(stmt), stmt.buffer, stmt.index] = size, aligned
    work = sum([COSTS.get(s.op, 1) for s in inside if type(s) is Let and s.op != "convert_element_type"])
    sizes, aligned = [n for n, _ in found.values()], [a for _, a in found.values()]
    return _Traffic(len(found), max(sizes, default=4) <= 2, all(aligned), work)


def _side(extent: int | None, side: int) -> int:
    """The side, or half of it where an axis ends soon behind a tile."""
    if extent is None:
        return side
    side = min(side, power(extent))
    whole, half = (-(-extent // n) * n for n in (side, max(1, side // 2)))
    return side // 2 if side > SHORT_SIDE and 4 * whole > 5 * half else side
