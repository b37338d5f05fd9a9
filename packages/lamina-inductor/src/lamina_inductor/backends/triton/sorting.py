"""Sorts of the rows of a tile, as text for a phase's writer, and the functions that they call.

Elements become whole numbers that have their order: a float's bits, the lower ones turned in negative numbers, both
zeros 0 and every NaN the greatest. With its place behind it such a key is a *word*, of which no two in a row are equal,
so a network of exchanges sorts them, and it is stable. A word is an int32 for keys of at most 16 bits and an int64 for
those of 32; its last bit says that a zero was negative, so that the element can be made of the word again, and nothing
else is moved. Keys of 64 bits are exchanged beside a word with the place alone. Descending rows have the complements of
their keys. What stands behind the end of a row has the greatest key, and a place behind all others.

The network is the bitonic one over the bits of a place, as a tile with a dimension of 2 for each. An exchange of
neighbours is cheap between registers of a thread, needs a shuffle between threads and a barrier between warps. So the
bits that a thread has in its registers are made the lowest ones first, in which the network has most steps: what
stands where before it sorts makes no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina_fx import DType, int64

from ...ir.kernel import Loop, Sort, walk
from .tiles import Tile, power, upper, walks_kept

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["choose_sort_tile", "write_sort"]

_FULL = frozenset("xr")

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}
"""Bits of the number behind which only NaN come."""


PER_THREAD = 16
"""Elements of a thread: more are quicker to exchange, and take longer to compile."""

SHORT_ROW = 128
"""Rows so short are held by a warp, and a program has four."""

UNKNOWN_ROWS = 1 << 14
"""What a number of rows is taken for that is not known."""


def choose_sort_tile(phase: Loop, extent: int | None) -> Tile | None:
    """The tile of a phase that sorts rows; ``extent``: as ``tiles.choose_tile``. None: it sorts nothing."""
    if not any(type(s) is Sort for s in walk(phase.body)):
        return None
    loop = next(s for s in phase.body if type(s) is Loop)
    columns = max(2, power(upper(loop.extent) or 1))
    rows = UNKNOWN_ROWS if extent is None else power(extent)
    of_warp = 32 * PER_THREAD
    if walks_kept(phase, loop.axis):
        x = max(1, min(rows, 32, 8 * of_warp // columns))
    elif columns >= of_warp:
        x = 1
    else:
        x = min(rows, (4 if columns <= SHORT_ROW else 1) * of_warp // columns)
    return Tile(x, columns, True, max(1, min(16, x * columns // of_warp)))


# -- text ------------------------------------------------------------------------------------------------


def write_sort(writer: PhaseWriter, stmt: Sort) -> None:
    """The statement; the words are sorted by the first one that wants them.

    Raises:
        NotImplementedError: the tile does not hold the row.
    """
    if not writer.tile.whole:
        raise NotImplementedError("rows that a tile does not hold are not sorted in it")
    dtype = writer.dtypes[stmt.value]
    name = f"{stmt.value}_{'down' if stmt.descending else 'up'}"
    if name not in writer.shapes:
        _write_words(writer, stmt.value, dtype, stmt.descending, name)
        writer.shapes[name] = _FULL
    if stmt.places:
        place = f"{name}_at" if dtype.itemsize == 8 else name
        writer.define(stmt.name, f"lm_word_place({place})", int64, _FULL)
        return
    writer.define(stmt.name, _element(name, dtype, stmt.descending), dtype, _FULL)


def _write_words(writer: PhaseWriter, value: str, dtype: DType, descending: bool, name: str) -> None:
    loop = next(s for s in writer.phase.body if type(s) is Loop)
    value = value if writer.shapes[value] == _FULL else f"tl.broadcast_to({value}, [XBLOCK, RBLOCK])"
    bits = 16 if dtype.itemsize <= 2 else dtype.itemsize * 8
    writer.add(f"{name}_bits = {_bits(value, dtype)}")
    place = f"{loop.axis.name}.to(tl.int32) * 2"
    key = f"{name}_bits"
    if dtype.kind == "float":
        most = (1 << (dtype.itemsize * 8 - 1)) - 1
        place += f" + ({name}_bits == {-most - 1}).to(tl.int32)"
        key = f"lm_float_key({name}_bits, {most}, {_INFINITY[dtype.name]})"
    writer.add(f"{name}_key = {key}{' ^ -1' if descending else ''}")
    mask, _ = writer.mask(frozenset("r"))
    if mask:
        writer.add(f"{name}_key = tl.where({mask}, {name}_key, {(1 << (bits - 1)) - 1})")
    steps = _log(writer.tile.r)
    own, high, low = _held(writer.tile, dtype)
    layout = f"{steps}, {own}, {high}, {low}"
    if bits == 64:
        writer.add(f"{name}_at = {place} + tl.zeros([XBLOCK, RBLOCK], tl.int32)")
        writer.add(f"{name}, {name}_at = lm_sort_pairs({name}_key, {name}_at, {layout})")
        return
    word = f"({name}_key << 16) | ({place})"
    if bits == 32:
        word = f"({name}_key.to(tl.int64) << 32) | ({place}).to(tl.int64)"
    writer.add(f"{name} = lm_sort_words({word}, {layout})")


def _log(power: int) -> int:
    return power.bit_length() - 1


def _held(tile: Tile, dtype: DType) -> tuple[int, int, int]:
    """(how many of the lowest bits are of a thread, once its registers beyond those of one access are behind them; how
    many elements apart those are; elements of an access), as a row that is loaded along memory is held."""
    low = max(1, min(16 // dtype.itemsize, tile.r, tile.x * tile.r // (32 * tile.warps)))
    high = max(1, tile.r // (low * 32 * tile.warps))
    return _log(low * high), high, low


def _bits(value: str, dtype: DType) -> str:
    """The element as a signed number: of 64 bits, or an int32."""
    if dtype.kind == "float":
        text = f"{value}.to(tl.int{dtype.itemsize * 8}, bitcast=True)"
        return f"{text}.to(tl.int32)" if dtype.itemsize == 2 else text
    if dtype.name == "uint32":
        return f"{value}.to(tl.int32, bitcast=True) ^ {-(1 << 31)}"
    if dtype.name == "uint64":
        return f"{value}.to(tl.int64, bitcast=True) ^ {-(1 << 63)}"
    if dtype.itemsize == 8:
        return value
    return f"{value}.to(tl.int32){' - 32768' if dtype.name == 'uint16' else ''}"


def _element(name: str, dtype: DType, descending: bool) -> str:
    """The element of a word."""
    shift = {4: 32, 8: 0}.get(dtype.itemsize, 16)
    key = f"({name} >> {shift}).to(tl.int32)" if shift else name
    key = f"({key} ^ -1)" if descending else key
    if dtype.kind == "float":
        width = dtype.itemsize * 8
        place = f"{name}_at" if width == 64 else name
        text = f"lm_key_bits({key}, {place}, {(1 << (width - 1)) - 1})"
        text = f"{text}.to(tl.int16)" if width == 16 else text
        return f"{text}.to(tl.{dtype.name}, bitcast=True)"
    if dtype.kind == "bool":
        return f"{key} != 0"
    if dtype.name == "uint32":
        return f"({key} ^ {-(1 << 31)}).to(tl.uint32, bitcast=True)"
    if dtype.name == "uint64":
        return f"({key} ^ {-(1 << 63)}).to(tl.uint64, bitcast=True)"
    if dtype.itemsize == 8:
        return key
    return f"({key}{' + 32768' if dtype.name == 'uint16' else ''}).to(tl.{dtype.name})"
