"""Sorts of the rows of a tile, as text for a phase's writer. What is sorted are the words of ``sort_words``.

Keys of 64 bits are exchanged beside a word with the place alone. What stands behind the end of a row has the greatest
key, and a place behind all others.

The network is the bitonic one over the bits of a place, as a tile with a dimension of 2 for each. An exchange of
neighbours is cheap between registers of a thread, needs a shuffle between threads and a barrier between warps. So the
bits that a thread has in its registers are made the lowest ones first, in which the network has most steps: what
stands where before it sorts makes no difference. Where only a first part is read, runs of its length are sorted, and of
two that are merged the greater half is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina_fx import DType, int64

from ...ir.kernel import Accumulate, IndexValue, Let, Load, Loop, Sort, walk
from .sort_words import element_text, key_bits, key_lines, place_text, word_text
from .tiles import Tile, power, upper, walks_kept

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["choose_sort_tile", "layout_text", "write_sort"]

_FULL = frozenset("xr")

PER_THREAD, PER_COLUMN, SHORT = {1: 64, 2: 64, 4: 32, 8: 16}, 16, 8
"""Elements of a thread, by the bytes of one: the more, the fewer exchanges go between warps, as far as registers reach;
those of columns side by side, and of rows that a warp holds in any case."""

ONE_WARP, SHORT_ROW = 256, 128
"""Rows so short are held by a warp; of still shorter ones a program has several, in four warps."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known."""


def choose_sort_tile(phase: Loop, extent: int | None) -> Tile | None:
    """The tile of a phase that sorts rows; ``extent``: as ``tiles.choose_tile``. None: it sorts nothing."""
    sorts = [s for s in walk(phase.body) if type(s) is Sort]
    if not sorts:
        return None
    loop = next(s for s in phase.body if type(s) is Loop)
    columns = max(2, power(upper(loop.extent) or 1))
    rows = UNKNOWN_ROWS if extent is None else power(extent)
    if walks_kept(phase, loop.axis):
        x = max(1, min(rows, 4, 4096 // columns))
        return Tile(x, columns, True, max(1, min(16, x * columns // (32 * PER_COLUMN))))
    dtypes = {s.name: s.dtype for s in walk(phase.body) if type(s) in (Let, Load, IndexValue, Sort)}
    sums = {a.name: a.dtype for s in walk(phase.body) if type(s) is Loop for a in s.accumulators}
    dtypes |= sums | {s.running: sums[s.accumulator] for s in walk(phase.body) if type(s) is Accumulate and s.running}
    per_thread = min([PER_THREAD[dtypes[s.value].itemsize] for s in sorts])
    if columns > ONE_WARP:
        return Tile(1, columns, True, max(1, columns // (32 * per_thread)))
    x = 1 if columns > SHORT_ROW else max(1, min(rows, 128 * SHORT // columns))
    return Tile(x, columns, True, max(1, min(4, x * columns // (32 * SHORT))))


# -- text ------------------------------------------------------------------------------------------------


def write_sort(writer: PhaseWriter, stmt: Sort) -> None:
    """The statement; the words are sorted by the first one that wants them.

    Raises:
        NotImplementedError: the tile does not hold the row.
    """
    if not writer.tile.whole:
        raise NotImplementedError("rows that a tile does not hold are not sorted in it")
    dtype = writer.dtypes[stmt.value]
    name = f"{stmt.value}_{'down' if stmt.descending else 'up'}{stmt.count or ''}"
    if name not in writer.shapes:
        _write_words(writer, stmt, dtype, name)
        writer.shapes[name] = _FULL
    bits = key_bits(dtype)
    at = f"{name}_at" if bits == 64 else name
    if stmt.places:
        writer.define(stmt.name, f"lm_word_place({at})", int64, _FULL)
        return
    shift = {16: 16, 32: 32, 64: 0}[bits]
    writer.define(stmt.name, element_text(name, at, dtype, stmt.descending, shift), dtype, _FULL)


def _write_words(writer: PhaseWriter, stmt: Sort, dtype: DType, name: str) -> None:
    loop = next(s for s in writer.phase.body if type(s) is Loop)
    value = stmt.value if writer.shapes[stmt.value] == _FULL else f"tl.broadcast_to({stmt.value}, [XBLOCK, RBLOCK])"
    bits, mask = key_bits(dtype), writer.mask(frozenset("r"))[0]
    for line in key_lines(name, value, dtype, stmt.descending):
        writer.add(line)
    if mask:
        writer.add(f"{name}_key = tl.where({mask}, {name}_key, {(1 << (bits - 1)) - 1})")
    place = place_text(name, f"{loop.axis.name}.to(tl.int32)", dtype)
    columns, first = writer.tile.r, stmt.count or writer.tile.r
    steps = str(_log(columns)) + (f", {_log(power(max(first, 2)))}" if first <= columns // 2 else "")
    layout = layout_text(writer.tile, columns, dtype)
    which = "first" if first <= columns // 2 else "sort"
    if bits == 64:
        writer.add(f"{name}_at = {place} + tl.zeros([XBLOCK, RBLOCK], tl.int32)")
        writer.add(f"{name}, {name}_at = lm_{which}_pairs({name}_key, {name}_at, {steps}, {layout})")
    else:
        writer.add(f"{name} = lm_{which}_words({word_text(f'{name}_key', place, bits == 16)}, {steps}, {layout})")
    if which == "first":  # only the first part of the tile is stored
        for part in (name, f"{name}_at")[: 1 + (bits == 64)]:
            writer.add(f"{part} = lm_repeat({part}, RBLOCK)")


def _log(power: int) -> int:
    return power.bit_length() - 1


def layout_text(tile: Tile, columns: int, dtype: DType) -> str:
    """How a row that is loaded along memory is held: how many of the lowest bits are of a thread, once its registers
    beyond those of one access are behind them; how many elements apart those are; elements of an access."""
    low = max(1, min(16 // dtype.itemsize, columns, tile.x * columns // (32 * tile.warps)))
    high = max(1, columns // (low * 32 * tile.warps))
    return f"{_log(low * high)}, {high}, {low}"
