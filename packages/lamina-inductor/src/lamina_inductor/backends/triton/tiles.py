"""How large the tiles of a kernel are: elements of the kept axis and of the reduced one, and warps.

A tile that holds the whole row is *persistent*: a row is read once, however many passes there are over it. The numbers
are starting points from measurements of single kernels; a tuner may print a kernel again with others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lamina_fx.symbolic import Expr, Integer, Symbol, as_expr

from ...ir.kernel import Load, Loop, Store, walk
from ...schedule.staged_nest import BLOCK_WIDTH

__all__ = ["Tile", "choose_tile", "constant", "power", "upper", "walks", "walks_kept"]

POINTWISE = 1024
"""Elements of a pointwise tile."""

WHOLE_ROW = 32768
"""Longest row that is kept in a tile when there are several passes over it."""

ONE_PASS = 2048
"""Longest row that is kept in a tile when it is read once anyway; also the step through longer ones."""

AREA = 2048
"""Elements of a tile over several rows or columns."""


SHORT_ROW, SHORT_AREA = 256, 4096
"""Rows so short are put together to a larger tile, with 32 elements for a thread."""


SHORT_COLUMN = 128
"""Longest column that is kept in a tile."""


FEW_RESULTS, SECTOR = 1024, 8
"""Columns that are so few and so short: as many programs as a row has sectors of memory, of so many float32."""


COLUMN_STEP = 128
"""Rows of a step through longer columns."""


FEW_PROGRAMS = 528
"""Fewer programs than these (four for each multiprocessor of a large GPU) do not fill the machine."""


SOME_SIZE = 64
"""What a symbolic size is taken for where only an order of sizes is asked."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known: short rows are put together."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Elements along the kept axis (``x``) and the reduced one (``r``; 0: there is none), whether ``r`` is the whole
    row, and warps of a program. ``chunk``: a program walks a chunk of rows, ``x`` at a time. ``stages``: steps through
    a row that are under way together. ``y``, ``z``: elements along further kept axes (0: there are none), ``x`` is the
    last of them."""

    x: int
    r: int = 0
    whole: bool = False
    warps: int = 4
    chunk: bool = False
    stages: int = 1
    y: int = 0
    z: int = 0

    @property
    def dims(self) -> str:
        """Names of the dimensions, outermost first: ``"x"``, ``"xr"``, ``"yx"`` or ``"zyx"``."""
        return "xr" if self.r else "zyx" if self.z else "yx" if self.y else "x"

    def side(self, dim: str) -> int:
        """Elements along a dimension."""
        return getattr(self, dim)

    @property
    def area(self) -> int:
        """Elements."""
        return math.prod([self.side(dim) for dim in self.dims])

    @property
    def blocks(self) -> dict[str, int]:
        """Names and values of what a kernel is told of its tile."""
        return {f"{dim.upper()}BLOCK": self.side(dim) for dim in self.dims}

    @property
    def step(self) -> int:
        """Iterations of the phase that a program does."""
        return 1 if self.chunk or self.y else self.x


def constant(size: Any) -> int | None:
    """The size when it does not depend on a symbol."""
    return size if type(size) is int else size.value if type(size) is Integer else None


def power(size: int) -> int:
    """The next power of two."""
    return 1 << max(0, size - 1).bit_length()


def choose_tile(phase: Loop, extent: int | None) -> Tile:
    """The tile of a phase; ``extent``: the most iterations that a call makes of it, None when unknown."""
    loops = [s for s in phase.body if type(s) is Loop]
    blocks = next((s for s in loops if s.kind == "blocks"), None)
    if blocks is not None:
        return _blocks(phase, blocks, extent)
    serial = next((s for s in loops if s.kind == "serial"), None)
    if serial is not None:
        return _chunk(serial)
    if "simd" in phase.kind:
        x = POINTWISE if extent is None else min(POINTWISE, power(extent))
        return Tile(x, warps=4 if x >= 512 else 1 if x <= 32 else 2)
    if not loops:
        return Tile(1, 1, True, 1)
    most = upper(loops[0].extent)
    rows = 64 if extent is None else power(extent)
    if walks_kept(phase, loops[0].axis):
        half = any(type(s) is Load and s.dtype.itemsize < 4 for s in walk(phase.body))
        return _columns(rows, most, len(loops), half)
    limit = WHOLE_ROW if len(loops) > 1 else ONE_PASS
    if most is None or most > limit:
        return Tile(1, ONE_PASS, warps=8)
    r = power(most)
    programs = (UNKNOWN_ROWS if extent is None else rows) // 256
    x = max(1, min((SHORT_AREA if r <= SHORT_ROW else AREA) // r, 64, programs))
    return Tile(x, r, True, _warps(x * r if x > 1 and r > SHORT_ROW else x * r // 2))


BLOCK_AREA = 4096
"""Elements of a tile that is moved over a block of rows: 32 for a thread."""

MANY = 5
"""Loads, sums and stores of an element, from which on a tile is half as large."""


def _blocks(phase: Loop, blocks: Loop, extent: int | None) -> Tile:
    sweep = next((s for s in blocks.body if type(s) is Loop), None)
    if sweep is None:  # all that it summed was one element
        return Tile(1, 1, True, 1)
    most = power(upper(sweep.extent) or 1)
    x = 1
    if walks_kept(phase, sweep.axis):
        x = BLOCK_WIDTH if extent is None else min(power(extent), BLOCK_WIDTH)
    r = max(1, min(most, _area(blocks) // x))
    return Tile(x, r, r == most, max(1, min(4, x * r // 512)), stages=1 if r == most else 3)


def _area(blocks: Loop) -> int:
    """Elements of a tile: fewer where a thread has much of each in registers."""
    inside = list(walk(blocks.body))
    loads = {(s.buffer, s.index) for s in inside if type(s) is Load}
    sums = sum(len(s.accumulators) for s in inside if type(s) is Loop)
    return BLOCK_AREA if len(loads) + sums + sum(type(s) is Store for s in inside) <= MANY else BLOCK_AREA // 2


CHUNK_AREA = 2048
"""Elements of a tile that is moved over the rows of a chunk."""


def _chunk(serial: Loop) -> Tile:
    row = next(s for s in serial.body if type(s) is Loop)
    r, most = power(constant(row.extent) or 1), upper(serial.extent)
    x = max(1, CHUNK_AREA // r if most is None else min(power(most or 1), CHUNK_AREA // r))
    return Tile(x, r, True, _warps(x * r), True)


def _columns(columns: int, rows: int | None, passes: int, half: bool) -> Tile:
    """Tiles for rows that lie side by side: neighbours along the kept axis are neighbours in memory. ``half``: some
    have less than four bytes."""
    if rows is not None and rows <= SHORT_COLUMN:
        r = power(rows)
        x = min(columns, max(32, AREA // r))
        return Tile(x, r, True, _warps(x * r))
    if rows is not None and max(rows, columns) <= FEW_RESULTS and not half:
        return Tile(min(columns, SECTOR), power(rows), True, _warps(SECTOR * power(rows)))
    few = columns // 32 < FEW_PROGRAMS  # then each must have much under way
    if few and passes > 1 and columns >= 8192:
        return Tile(64, 2 * COLUMN_STEP, warps=16)
    x = min(32, columns)
    return Tile(x, 2 * COLUMN_STEP, warps=8) if few else Tile(x, COLUMN_STEP, warps=4)


def _warps(elements: int) -> int:
    return 32 if elements > 16384 else max(1, min(16, elements // 512))


def upper(extent: Any) -> int | None:
    """The most that a size may be; None when that depends on a symbol."""
    found = constant(extent)
    return found if found is not None else constant(extent.range()[1]) if isinstance(extent, Expr) else None


def walks_kept(phase: Loop, r: Symbol) -> bool:
    """Do most accesses step through memory by the kept axis rather than the reduced one?"""
    return sum([kept - reduced for _, kept, reduced in walks(phase, r)]) > 0


def walks(phase: Loop, r: Symbol) -> list[tuple[Load | Store, int, int]]:
    """The accesses that step along both axes, and whether a step along the kept one, and along the reduced one, goes to
    a neighbour in memory (1, or 0). Of what many neighbours along the kept axis share (a value of a head, for all of
    its channels), a tile reads one line."""
    axes = {phase.axis, *(stmt.axis for stmt in walk(phase.body) if isinstance(stmt, Loop))}
    return [
        (s, _step(s.index, phase.axis, axes), _step(s.index, r, axes))
        for s in walk(phase.body)
        if isinstance(s, (Load, Store))
        and {phase.axis, r} <= as_expr(s.index).free_symbols
        and _distance(s.index, phase.axis, axes)
    ]


def _step(index: Expr, axis: Symbol, axes: set[Symbol]) -> int:
    """1 when the next element along the axis is the next one in memory, or the one before, at the start of a tile."""
    return 1 if abs(_distance(index, axis, axes)) == 1 else 0


def _distance(index: Expr, axis: Symbol, axes: set[Symbol]) -> int:
    """How far the next element along the axis is in memory, at the start of a tile.

    Sizes are not 0 there, though they may be: an index may be divided by one.
    """
    start: dict[Expr, int] = {s: 0 if s in axes else SOME_SIZE for s in index.free_symbols}
    return index.evaluate(start | {axis: 1}) - index.evaluate(start)
