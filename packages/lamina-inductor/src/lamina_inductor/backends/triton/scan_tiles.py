"""How large the tiles of kernels with scans are. A scan along the row is made by neighbours in registers, in a warp and
between warps; one along columns by a thread alone, where the tile is narrow along them."""

from __future__ import annotations

from ...ir.kernel import Accumulate, Loop, walk
from .tiles import Tile, power, upper, walks_kept

__all__ = ["choose_scan_tile"]

WHOLE_ROW = 8192
"""Longest row that is kept in a tile; with several passes over it ``LONGER``."""

LONGER = 32768

STEP = 2048
"""Elements of a step through longer rows."""

FEW_ROWS, LONG_STEP = 128, 8192
"""Rows that are so few have a large part of the machine each."""

MANY_SCANS = 3
"""So many scans in one kernel leave a thread half of the elements that it has else: 16, of sums of exponentials 32."""

AREA = 4096
"""Elements of a tile over several rows."""

SHORT_ROW, SHORT_AREA = 256, 1024
"""Rows so short have a smaller one."""

WIDTH, COLUMN_AREA = 128, 2048
"""Columns side by side, and elements of a step through them: a thread has some columns alone."""

SECTOR, MANY_PROGRAMS = 8, 256
"""Fewer columns side by side where there are few of them: at least so many float32 as memory moves together."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known."""


def choose_scan_tile(phase: Loop, extent: int | None) -> Tile | None:
    """The tile of a phase with scans; ``extent``: as ``tiles.choose_tile``. None: it has none."""
    if not any(type(s) is Accumulate and s.running is not None for s in walk(phase.body)):
        return None
    loops = [s for s in walk(phase.body) if type(s) is Loop]
    passes = [s for s in loops if s.kind == "simd"]
    rows = UNKNOWN_ROWS if extent is None else power(extent)
    length = upper(passes[0].extent)
    in_blocks = len(passes) < len(loops)
    if walks_kept(phase, passes[0].axis):
        return _columns(rows, length, in_blocks)
    if rows <= FEW_ROWS and not in_blocks:
        return _few_rows(length)
    scans = {s.running: s for s in walk(phase.body) if type(s) is Accumulate and s.running is not None}
    pairs = any(a.kind == "logaddexp" for s in passes for a in s.accumulators)
    warp = 256 if len(scans) >= MANY_SCANS else 1024 if pairs else 512
    return _rows(rows, length, len(passes), warp)


def _columns(columns: int, length: int | None, in_blocks: bool) -> Tile:
    most = WIDTH if in_blocks else max(SECTOR, columns // MANY_PROGRAMS)
    x = min(columns, most, WIDTH)
    area = COLUMN_AREA if x == min(columns, WIDTH) else 2 * COLUMN_AREA
    step = max(1, area // x) if length is None else min(max(1, area // x), power(length))
    return Tile(x, step, length is not None and length <= step, max(1, x * step // 2048))


def _few_rows(length: int | None) -> Tile:
    whole = LONG_STEP if length is None else min(power(length), LONG_STEP)
    return Tile(1, whole, length is not None and length <= whole, max(1, min(16, whole // 256)))


def _rows(rows: int, length: int | None, passes: int, warp: int) -> Tile:
    if length is None or length > (LONGER if passes > 1 else WHOLE_ROW):
        return Tile(1, STEP, warps=max(1, STEP // 512))
    whole = power(length)
    x = max(1, min((SHORT_AREA if whole <= SHORT_ROW else AREA) // whole, 64, rows // 256))
    if x * whole > WHOLE_ROW:
        return Tile(x, whole, True, 32)
    return Tile(x, whole, True, max(1, min(4096 // min(warp, 512), x * whole // warp)))
