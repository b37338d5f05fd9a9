"""How large the tiles of rows are where some accesses walk memory along the row, others across it.

A program of one row would read the transposed operand element by element, each in a sector of its own. With as many
rows as a sector has elements both are read in whole sectors, and the compiler exchanges the elements inside of the
program.
"""

from __future__ import annotations

from lamina_fx.symbolic import Symbol

from ...ir.kernel import Let, Load, Loop, walk
from .block_printer import block_loop
from .tiles import Tile, power, upper, walks, walks_kept

__all__ = ["choose_crossed_tile"]

SECTOR = 32
"""Bytes that memory gives at once."""

AREA, FEWEST = 16384, 4
"""Elements of a tile that holds whole rows, and rows that it has rather than to walk long ones."""

WIDE, STEP = 16, 512
"""Rows of a tile that walks longer ones, and bytes of a step."""

SMALL_AREA, CHUNK_AREA = 8192, 4096
"""Elements of a tile of short rows, and of one that is moved over the rows of a chunk, or over a block."""

PER_THREAD = 128
"""Bytes of a whole row that a thread has."""

WALKED_ROWS, WALKED_STEP = 64, 128
"""Rows and elements of a step where a tile that is a power of two would be empty for a fifth, and most accesses are
across rows."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known."""

PROGRAMS = 256
"""A program has fewer rows where there would be fewer programs than these."""


def choose_crossed_tile(phase: Loop, extent: int | None) -> Tile | None:
    """The tile of such a phase; ``extent``: as ``tiles.choose_tile``. None: it is another one."""
    serial = next((s for s in phase.body if type(s) is Loop and s.kind == "serial"), None)
    if serial is not None:
        return _chunk(serial)
    blocks = block_loop(phase)
    if blocks is not None:
        return _blocks(phase, blocks, extent)
    loops = [s for s in phase.body if type(s) is Loop]
    if phase.kind != "parallel" or not loops or any(loop.kind != "simd" for loop in loops):
        return None
    size = _crossed(phase, loops[0].axis)
    if size is None:
        return None
    rows, length = UNKNOWN_ROWS if extent is None else extent, upper(loops[0].extent)
    most = power(rows // PROGRAMS + 1) // 2
    x = min(SECTOR // size, most)
    if x < 2:
        return None
    r = None if length is None else power(length)
    area = AREA if size < 4 else 2 * AREA
    while r is not None and x > FEWEST and x * r > area:
        x //= 2
    step = max(1, STEP // size)
    if r is None or x * r > area or (len(loops) == 1 and r > step):
        x = min(WIDE, most)
        return Tile(x, min(step * WIDE // x, r or step * WIDE), warps=8)
    if length is not None and 5 * length < 4 * r and most >= WALKED_ROWS and walks_kept(phase, loops[0].axis):
        return Tile(WALKED_ROWS, WALKED_STEP, warps=8)
    while x < min(most, max(2 * SECTOR // size, CHUNK_AREA // r)) and 2 * x * r <= (SMALL_AREA if size < 4 else AREA):
        x *= 2
    return Tile(x, r, True, max(1, min(16, x * r * size // (32 * PER_THREAD))))


def _chunk(serial: Loop) -> Tile | None:
    """The same for a program that walks a chunk of rows (``schedule.late_nest``)."""
    row = next(s for s in serial.body if type(s) is Loop)
    size, rows, length = _crossed(serial, row.axis), upper(serial.extent), upper(row.extent)
    if size is None or rows is None or length is None:
        return None
    x, r = min(SECTOR // size, power(rows)), power(length)
    while x > FEWEST and x * r > CHUNK_AREA:
        x //= 2
    return Tile(x, r, True, max(1, min(16, x * r // 1024)), chunk=True) if x > 1 else None


def _blocks(phase: Loop, blocks: Loop, extent: int | None) -> Tile | None:
    """The same for a program of one block of rows (``schedule.staged_nest``)."""
    sweep = next((s for s in blocks.body if type(s) is Loop), None)
    if sweep is None:
        return None
    size, most = _crossed(phase, sweep.axis), power(upper(sweep.extent) or 1)
    x = 1 if size is None else min(SECTOR // size, SECTOR if extent is None else power(extent))
    if x < 2:
        return None
    r = min(most, CHUNK_AREA // x)
    return Tile(x, r, r == most, max(1, min(4, x * r // 512)), stages=1 if r == most else 3)


def _crossed(rows: Loop, r: Symbol) -> int | None:
    """Bytes of an element that is read or written across rows, where others are along them; else None."""
    found = walks(rows, r)
    across = [s for s, kept, reduced in found if kept > reduced]
    if not across or not any(kept < reduced for _, kept, reduced in found):
        return None
    dtypes = {s.name: s.dtype for s in walk(rows.body) if isinstance(s, (Load, Let))}
    named = [s.name if type(s) is Load else s.value for s in across]  # type: ignore[union-attr]
    return min([dtypes[n].itemsize if n in dtypes else 4 for n in named])  # type: ignore[index]
