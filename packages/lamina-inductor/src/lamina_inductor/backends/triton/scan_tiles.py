"""How large the tiles of kernels with scans are. A scan along the row is made by neighbours in registers, in a warp and
between warps; one along columns by a thread alone, where the tile is narrow along them."""

from __future__ import annotations

from ...ir.kernel import Accumulate, Load, Loop, walk
from .tiles import Tile, power, upper, walks_kept

__all__ = ["choose_scan_tile"]

WHOLE_ROW = 8192
"""Longest row that is kept in a tile; with several passes over it ``LONGER``."""

LONGER = 32768

STEP, STAGES = 4096, 3
"""Elements of a step through longer rows, and steps that are under way together."""

PIPELINE_BYTES = 64 << 10
"""Most shared memory for them."""

FEW_ROWS, LONG_STEP = 128, 8192
"""Rows that are so few have a large part of the machine each."""

WARP, MANY_SCANS = 1024, 3
"""Elements of a warp: half as many where there are so many scans."""

SHORT_ROW, SHORT_AREA = 64, 1024
"""Rows shorter than that are put together to tiles of so many elements, others to half of it, for one warp."""

MOST_ROWS = 128
"""Of a tile."""

WIDTH, COLUMN_AREA = 32, 2048
"""Columns side by side, and elements of a step through them: a thread has a column alone."""

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
        return _few_rows(phase, length)
    scans = {s.running for s in walk(phase.body) if type(s) is Accumulate and s.running is not None}
    warp = WARP // 2 if len(scans) >= MANY_SCANS else WARP
    if length is None or length > (LONGER if len(passes) > 1 else WHOLE_ROW):
        return Tile(1, STEP, warps=STEP // 512, stages=_stages(phase, STEP))
    whole = power(length)
    if whole > WHOLE_ROW:
        return Tile(1, whole, True, 32)
    x = max(1, min((SHORT_AREA if whole < SHORT_ROW else SHORT_AREA // 2) // whole, MOST_ROWS, rows // 256))
    return Tile(x, whole, True, max(1, min(4 if in_blocks else 8, x * whole // warp)))


def _few_rows(phase: Loop, length: int | None) -> Tile:
    step = LONG_STEP if length is None else min(power(length), LONG_STEP)
    whole = length is not None and length <= step
    return Tile(1, step, whole, max(1, min(16, step // 256)), stages=1 if whole else _stages(phase, step))


def _stages(phase: Loop, step: int) -> int:
    loads = {(s.buffer, s.index): s.dtype.itemsize for s in walk(phase.body) if type(s) is Load}
    taken = sum(loads.values()) * step
    return next((n for n in range(STAGES, 1, -1) if (n - 1) * taken <= PIPELINE_BYTES), 1)


def _columns(columns: int, length: int | None, in_blocks: bool) -> Tile:
    most = WIDTH if in_blocks else max(SECTOR, columns // MANY_PROGRAMS)
    x = min(columns, most, WIDTH)
    area = COLUMN_AREA if x == min(columns, WIDTH) else 2 * COLUMN_AREA
    step = max(1, area // x) if length is None else min(max(1, area // x), power(length))
    return Tile(x, step, length is not None and length <= step, max(1, x * step // 2048))
