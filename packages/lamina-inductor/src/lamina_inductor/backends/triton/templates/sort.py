"""Sorts of rows that no tile holds: runs of them are sorted in tiles, then merged, two at a time.

What moves are words of key and place (see ``sort_words``), from one scratch memory to the other; the last merge makes
elements and places of them. A program writes a tile of two merged runs: a search (of 32 places at a time) finds which
elements of each it is made of, and as one of the two is read backwards, they need the last stage of a bitonic network
only.
Source: Green, McColl and Bader 2012, "GPU merge path".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....ir.program import HostCall, Operand
from ..literals import has_type, language_type
from ..program import Scratch, TritonLaunch
from ..sort_words import key_bits, key_lines, place_text, word_text
from ..sorting import layout_text
from ..tiles import Tile, constant
from .kernel_text import KernelText
from .offsets import scaled
from .row_words import RowWords, behind, declare_results, row_lines, row_offset, rows_of_operand, store_results

__all__ = ["is_long_sort", "sort_launches"]

RUN, RUN_WARPS = 1024, 1
"""Elements of a run that is sorted in a tile."""

TILE, TILE_WARPS = 1024, 1
"""Elements of two merged runs that a program writes, at most all of two first runs."""

LONGEST = 1 << 20
"""Elements of a row that is sorted so: each merge of longer ones moves all of it again."""

NARROW = 1 << 15
"""Elements of a row whose words have 32 bits, for keys of 16."""


def is_long_sort(step: Any) -> bool:
    """Is there a template for it?"""
    if type(step) is not HostCall or step.operator != "sort":
        return False
    x, dim = step.args[0], step.args[1]
    size = constant(x.shape[dim]) if x.shape else None
    known = size is not None and RUN < size <= LONGEST
    plain = has_type(x.dtype) and x.dtype.itemsize <= 4 and not x.dtype.name.startswith("float8")
    return known and plain and all(constant(n) != 0 for n in x.shape)


@dataclass(frozen=True, slots=True)
class _Sort(RowWords):
    """Rows of ``size`` elements of ``x`` along ``dim``."""

    x: Operand
    outs: tuple[Operand | None, ...]
    dim: int
    descending: bool
    size: int
    rows: Any
    wide: bool
    merges: int
    origins: tuple[Any, ...]

    @property
    def narrow(self) -> bool:
        """Have words 32 bits?"""
        return key_bits(self.x.dtype) == 16 and self.size <= NARROW

    def memory(self, number: int) -> Scratch | Operand:
        """Where words are after so many merges: every other time where the places will be, if that can be."""
        bytes, places = self.rows * self.size * self.word.itemsize, self.outs[1]
        if (self.merges - number) % 2 == 1:
            return Scratch(bytes)
        if places is not None and not self.narrow and _is_dense(places, self.dim):
            return places
        return Scratch(bytes, behind(bytes))


def sort_launches(step: HostCall, wide: bool) -> list[TritonLaunch]:
    """The kernels of the step."""
    x, dim, descending = step.args[:3]
    dim %= len(x.shape)
    size = constant(x.shape[dim])
    assert size is not None
    rows = rows_of_operand(x, dim)
    lengths = []
    while RUN << len(lengths) < size:
        lengths.append(RUN << len(lengths))
    origins = (("sort", "sort", step.source),)
    sort = _Sort(x, step.outs, dim, bool(descending), size, rows, wide, len(lengths), origins)
    return [_runs(sort), *[_merge(sort, n, length, n == len(lengths) - 1) for n, length in enumerate(lengths)]]


def _is_dense(operand: Operand, dim: int) -> bool:
    """Does row follow row without a gap, each along ``dim``?"""
    step: Any = 1
    for size, stride in zip(reversed(operand.shape), reversed(operand.strides), strict=True):
        if constant(size) != 1 and stride is not step and constant(stride - step) != 0:
            return False
        step = step * size
    return dim == len(operand.shape) - 1


def _row(text: KernelText, tiles: int) -> list[str]:
    """Lines that define the row of a program, and which of its tiles it has."""
    wide = ".to(tl.int64)" if text.wide else ""
    return [f"row = (tl.program_id(0) // {tiles}){wide}", f"tile = tl.program_id(0) % {tiles}"]


def _runs(sort: _Sort) -> TritonLaunch:
    text, tiles = KernelText(sort.wide), -(-sort.size // RUN)
    text.block(RUN=RUN)
    text.pointer("x", sort.x.dtype, sort.x)
    text.pointer("words", sort.word, sort.memory(0))
    place = scaled(text, "place", sort.x.strides[sort.dim])
    whole = sort.size % RUN == 0
    word = word_text("value_key", place_text("value", "place.to(tl.int32)", sort.x.dtype), sort.narrow)
    most = f"tl.full([], {sort.most}, {language_type(sort.word)})"
    layout = layout_text(Tile(1, warps=RUN_WARPS), RUN, sort.x.dtype)
    text.add(
        *_row(text, tiles),
        *row_lines(text, sort.x, sort.dim),
        "place = tile * RUN + tl.arange(0, RUN)[None, :]",
        *([] if whole else [f"inside = place < {sort.size}"]),
        f"value = tl.load(x{row_offset(text, sort.x, sort.dim)} + {place}{'' if whole else ', inside, other=0'})",
        *key_lines("value", "value", sort.x.dtype, sort.descending),
        f"word = {word if whole else f'tl.where(inside, {word}, {most})'}",
        f"word = lm_sort_words(word, {RUN.bit_length() - 1}, {layout})",
        f"tl.store(words + row * {sort.size} + place, word{'' if whole else ', inside'})",
    )
    kernel, buffers, sizes = text.finish(warps=RUN_WARPS, origins=sort.origins)
    return TritonLaunch(kernel, buffers, sizes, (sort.rows * tiles,))


def _merge(sort: _Sort, number: int, length: int, last: bool) -> TritonLaunch:
    """Merge pairs of runs of so many elements."""
    text, tiles = KernelText(sort.wide), -(-sort.size // TILE)
    text.block(TILE=TILE)
    text.number("length", "i32", length)
    text.pointer("words", sort.word, sort.memory(number))
    if last:
        declare_results(text, sort.outs)
    else:
        text.pointer("merged", sort.word, sort.memory(number + 1))
    most = f"tl.full([], {sort.most}, {language_type(sort.word)})"
    text.add(
        *_row(text, tiles),
        *(row_lines(text, sort.x, sort.dim) if last else []),
        "begin = tile * TILE",
        "first = begin // (2 * length) * (2 * length)",
        "second = first + length",
        f"count = tl.minimum(second, {sort.size}) - first",
        f"others = tl.maximum(tl.minimum(second + length, {sort.size}) - second, 0)",
        f"start = words + row * {sort.size}",
        "ends = tl.minimum(begin - first + tl.arange(0, 2)[:, None] * TILE, count + others)",
        "low = tl.maximum(ends - others, 0)",
        "high = tl.minimum(ends, count)",
        "probe = tl.arange(0, 32)[None, :] + 1",
        f"for _ in range({2 + sort.size.bit_length() // 5}):",
        "    open = (low < high) & (probe > 0)",
        "    middle = low + (high - low) * probe // 33",
        "    a = tl.load(start + first + middle, open, other=0)",
        "    b = tl.load(start + second + ends - 1 - middle, open, other=0)",
        "    less = tl.max(tl.where(open & (a < b), middle + 1, 0), 1)[:, None]",
        "    more = tl.min(tl.where(open & (a > b), middle, count), 1)[:, None]",
        "    low = tl.maximum(low, less)",
        "    high = tl.minimum(high, more)",
        "low = tl.reshape(low, [2])",
        "ends = tl.reshape(ends, [2])",
        "is_end = tl.arange(0, 2) == 1",
        "a_end = tl.sum(tl.where(is_end, low, 0), 0)",
        "a_begin = tl.sum(tl.where(is_end, 0, low), 0)",
        "b_end = tl.sum(tl.where(is_end, ends - low, 0), 0)",
        "b_begin = tl.sum(tl.where(is_end, 0, ends - low), 0)",
        "at = tl.arange(0, TILE)[None, :]",
        "of_first = at < a_end - a_begin",
        "back = TILE - 1 - at",
        "inside = of_first | (back < b_end - b_begin)",
        "word = tl.load(start + tl.where(of_first, first + a_begin + at, second + b_begin + back), inside, other=0)",
        f"word = lm_merge_words(tl.where(inside, word, {most}), {TILE.bit_length() - 1})",
        "place = begin + at",
        f"inside = place < {sort.size}",
    )
    if last:
        store_results(text, sort.outs, sort.dim, "place", ", inside", sort.descending, sort.x.dtype, sort.narrow)
    else:
        text.add(f"tl.store(merged + row * {sort.size} + place, word, inside)")
    kernel, buffers, sizes = text.finish(warps=TILE_WARPS, origins=(*sort.origins, ("", "merge", "")))
    return TritonLaunch(kernel, buffers, sizes, (sort.rows * tiles,))
