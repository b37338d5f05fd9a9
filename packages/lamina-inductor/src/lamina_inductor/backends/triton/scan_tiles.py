"""How large the tiles of kernels with scans are. A scan along the row is made by neighbours in registers, in a warp and
between warps; one along columns by a thread alone, where the tile is narrow along them."""

from __future__ import annotations

from lamina_fx.symbolic import Symbol

from ...ir.kernel import Accumulate, Loop, walk
from .tiles import Tile, power, upper, walks_kept

__all__ = ["choose_scan_tile"]

WHOLE_ROW = 8192
"""Longest row that is kept in a tile; with several passes over it ``LONGER``."""

LONGER = 32768

STEP = 4096
"""Elements of a step through longer rows."""

AREA = 4096
"""Elements of a tile over several rows."""

WIDTH, STEP_DOWN = 128, 16
"""Columns side by side, and rows of a step through them."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known."""


def choose_scan_tile(phase: Loop, extent: int | None) -> Tile | None:
    """The tile of a phase with scans; ``extent``: as ``tiles.choose_tile``. None: it has none."""
    if not any(type(s) is Accumulate and s.running is not None for s in walk(phase.body)):
        return None
    loops = [s for s in walk(phase.body) if type(s) is Loop and s.kind == "simd"]
    return _tile(phase, loops[0].axis, extent, upper(loops[0].extent), len(loops))


def _tile(phase: Loop, r: Symbol, extent: int | None, length: int | None, passes: int) -> Tile:
    rows = UNKNOWN_ROWS if extent is None else power(extent)
    if walks_kept(phase, r):
        x = min(rows, WIDTH)
        step = min(STEP_DOWN, power(length or STEP_DOWN))
        return Tile(x, step, length is not None and length <= step, max(1, x * step // 2048))
    if length is None or length > (LONGER if passes > 1 else WHOLE_ROW):
        return Tile(1, STEP, warps=8)
    whole = power(length)
    x = max(1, min(AREA // whole, 64, rows // 256))
    return Tile(x, whole, True, max(1, min(32, x * whole // 512)))
