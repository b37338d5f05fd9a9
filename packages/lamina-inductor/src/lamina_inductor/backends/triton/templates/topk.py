"""A few of the largest or smallest elements of rows that no tile holds, as words (see ``sort_words``).

A program walks a part of a row twice. First it keeps the best word of each of ``GROUPS`` groups, whose elements lie
apart; the ``k``-th of these bounds the ``k``-th of the part, and hardly more words are as good. These are collected by
the second walk (most of it from the cache), and sorted. Where they are too many for that, a third walk keeps the best
words of what it has seen. The parts of a row are merged by a second kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, int32, int64

from ....ir.program import HostCall, Operand
from ..literals import has_type, language_type
from ..program import Scratch, TritonLaunch
from ..sort_words import key_bits, key_lines, place_text, word_text
from ..sorting import layout_text
from ..tiles import Tile, constant, power
from .kernel_text import KernelText
from .offsets import scaled
from .row_words import behind, declare_results, row_lines, row_offset, rows_of_operand, store_results

__all__ = ["is_topk", "topk_launches"]

MOST = 256
"""Elements that are looked for at most."""

GROUPS, BLOCK, WARPS = 1024, 4096, 8
"""Groups of a part, elements of a step, and warps of a program."""

LEAST, LONGEST = 8192, 1 << 15
"""Elements of a part that is worth a program, and of one with words of 32 bits."""

PER_UNIT = 4
"""Programs for each multiprocessor, up to which rows are cut."""


def is_topk(step: Any) -> bool:
    """Is there a template for it?"""
    if type(step) is not HostCall or step.operator != "topk":
        return False
    x, k, dim = step.args[:3]
    known = type(k) is int and 1 <= k <= MOST and constant(x.shape[dim]) is not None
    plain = has_type(x.dtype) and x.dtype.itemsize <= 4 and not x.dtype.name.startswith("float8")
    return known and plain and all(constant(n) != 0 for n in x.shape)


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for in ``x``: ``k`` of ``size`` elements along ``dim``, by ``parts`` parts of ``span``."""

    x: Operand
    outs: tuple[Operand | None, ...]
    k: int
    dim: int
    largest: bool
    size: int
    rows: Any
    span: int
    parts: int
    wide: bool
    origins: tuple[Any, ...]

    @property
    def narrow(self) -> bool:
        """Have words 32 bits?"""
        return key_bits(self.x.dtype) == 16 and self.span <= LONGEST

    @property
    def word(self) -> DType:
        """The type of words in memory."""
        return int32 if self.narrow else int64

    @property
    def kept(self) -> int:
        """Words that are found: a power of two."""
        return power(max(2, self.k))

    @property
    def room(self) -> int:
        """Words that are collected at most."""
        return max(256, 2 * self.kept)


def topk_launches(step: HostCall, multiprocessors: int, wide: bool) -> list[TritonLaunch]:
    """The kernels of the step."""
    x, k, dim, largest = step.args[:4]
    dim %= len(x.shape)
    size = constant(x.shape[dim])
    assert size is not None
    rows = rows_of_operand(x, dim)
    known, most = constant(rows), max(1, -(-size // LEAST))
    parts = 1 if known is None else max(1, min(most, -(-PER_UNIT * multiprocessors // known)))
    if key_bits(x.dtype) == 16:
        parts = max(parts, -(-size // LONGEST))
    span = -(-size // parts // BLOCK) * BLOCK if parts > 1 else size
    search = _Search(
        x, step.outs, k, dim, bool(largest), size, rows, span, -(-size // span), wide, (("topk", "topk", step.source),)
    )
    return [_walk(search), *([_merge(search)] if search.parts > 1 else [])]


def _log(number: int) -> int:
    return number.bit_length() - 1


# -- parts of a row --------------------------------------------------------------------------------------


def _walk(search: _Search) -> TritonLaunch:
    text, programs = KernelText(search.wide), search.rows * search.parts
    found, counts = Scratch(programs * search.room * search.word.itemsize), Scratch(programs * 4)
    counts = Scratch(counts.bytes, behind(found.bytes))
    tops = Scratch(programs * search.kept * 8, behind(counts.bytes, counts.offset))
    text.block(BLOCK=BLOCK, GROUPS=GROUPS, ROOM=search.room, KEPT=search.kept)
    text.pointer("x", search.x.dtype, search.x)
    text.pointer("found", search.word, found)
    text.pointer("counts", int32, counts)
    if search.parts > 1:
        text.pointer("tops", int64, tops)
    else:
        declare_results(text, search.outs)
    most = f"tl.full([], {(1 << (search.word.itemsize * 8 - 1)) - 1}, {language_type(search.word)})"
    text.add(
        f"row = tl.program_id(0){'.to(tl.int64)' if search.wide else ''}",
        *([f"begin = tl.program_id(1) * {search.span}"] if search.parts > 1 else []),
        *row_lines(text, search.x, search.dim),
        f"start = x{row_offset(text, search.x, search.dim)}",
        f"program = row * {search.parts} + tl.program_id(1)",
        "found = found + program * ROOM",
        "count = counts + program",
        "tl.store(count, 0)",
        f"most = {most}",
        f"best = tl.full([1, BLOCK], {(1 << (search.word.itemsize * 8 - 1)) - 1}, {language_type(search.word)})",
        f"for step in range(0, {search.span}, BLOCK):",
        *_words(text, search, "BLOCK"),
        "    best = tl.minimum(best, word)",
        "best = tl.min(tl.reshape(best, [1, BLOCK // GROUPS, GROUPS]), 1)",
        f"first = {_first('best', GROUPS, search)}",
        f"bound = tl.max(tl.where(tl.arange(0, KEPT)[None, :] < {search.k}, first, -most), 1)[:, None]",
        "tl.debug_barrier()",
        f"for step in range(0, {search.span}, BLOCK):",
        *_words(text, search, "BLOCK"),
        "    hit = (word <= bound) & inside",
        '    slot = tl.atomic_add(count + tl.zeros([1, BLOCK], tl.int32), 1, mask=hit, sem="relaxed")',
        "    tl.store(found + slot, word, hit & (slot < ROOM))",
        "tl.debug_barrier()",
        'number = tl.load(count, cache_modifier=".cg")',
        "slots = tl.arange(0, ROOM)[None, :]",
        "if number > ROOM:",
        "    kept = tl.arange(0, KEPT)[None, :]",
        "    both = tl.arange(0, 2 * KEPT)[None, :]",
        "    tl.store(found + kept, tl.zeros([1, KEPT], most.dtype) + most)",
        f"    for step in range(0, {search.span}, GROUPS):",
        *["    " + line for line in _words(text, search, "GROUPS")],
        f"        tl.store(found + KEPT + kept, {_first('word', GROUPS, search)})",
        "        tl.debug_barrier()",
        '        pair = tl.load(found + both, cache_modifier=".cg")',
        "        tl.debug_barrier()",
        f"        tl.store(found + kept, {_first('pair', 2 * search.kept, search)})",
        "    tl.debug_barrier()",
        "    number = KEPT",
        'word = tl.load(found + slots, slots < number, other=0, cache_modifier=".cg")',
        "word = tl.where(slots < number, word, most)",
        f"word = {_first('word', search.room, search)}",
    )
    if search.parts > 1:
        text.add(*_handed_on(search))
    else:
        _store(text, search, search.narrow)
    kernel, buffers, sizes = text.finish(warps=WARPS, origins=search.origins)
    return TritonLaunch(kernel, buffers, sizes, (search.rows, search.parts))


def _store(text: KernelText, search: _Search, narrow: bool) -> None:
    text.add("kept = tl.arange(0, KEPT)[None, :]")
    mask = "" if search.k == search.kept else f", kept < {search.k}"
    store_results(text, search.outs, search.dim, "kept", mask, search.largest, search.x.dtype, narrow)


def _first(words: str, columns: int, search: _Search) -> str:
    steps = f"{_log(columns)}, {_log(search.kept)}"
    if columns == search.kept:
        return f"lm_sort_words({words}, {_log(columns)}, {layout_text(Tile(1, warps=WARPS), columns, search.word)})"
    return f"lm_first_words({words}, {steps}, {layout_text(Tile(1, warps=WARPS), columns, search.word)})"


def _words(text: KernelText, search: _Search, columns: str) -> list[str]:
    """Lines of a loop that define ``place``, ``inside`` and ``word`` for the elements from ``step`` on."""
    dtype, base = search.x.dtype, "begin + step" if search.parts > 1 else "step"
    known = search.parts == 1 and search.span % {"BLOCK": BLOCK, "GROUPS": GROUPS}[columns] == 0
    stride = search.x.strides[search.dim]
    inner = "step + tl.arange" if search.narrow else f"{base} + tl.arange"
    lines = [
        f"place = {base} + tl.arange(0, {columns})[None, :]",
        f"inside = {'place >= 0' if known else f'(place < {search.size})'}",
        f"value = tl.load(start + {scaled(text, 'place', stride)}{'' if known else ', inside, other=0'})",
        *key_lines("value", "value", dtype, search.largest),
    ]
    if not known and search.parts > 1:
        lines[1] = f"inside = (place < {search.size}) & (step + tl.arange(0, {columns})[None, :] < {search.span})"
    at = place_text("value", f"({inner}(0, {columns})[None, :]).to(tl.int32)", dtype)
    word = word_text("value_key", at, search.narrow)
    lines.append(f"word = {word if known else f'tl.where(inside, {word}, most)'}")
    return ["    " + line for line in lines]


def _handed_on(search: _Search) -> list[str]:
    """Words of 64 bits with the place in the row, for the kernel that merges."""
    lines = ["kept = tl.arange(0, KEPT)[None, :]"]
    if search.narrow:
        at = "(word & 65535) + (begin * 2)"
        lines.append(f"word = tl.where(word == most, {(1 << 63) - 1}, {word_text('(word >> 16)', at, False)})")
    return [*lines, "tl.store(tops + program * KEPT + kept, word)"]


# -- parts together --------------------------------------------------------------------------------------


def _merge(search: _Search) -> TritonLaunch:
    text, programs = KernelText(search.wide), search.rows * search.parts
    found = Scratch(programs * search.room * search.word.itemsize)
    counts = Scratch(programs * 4, behind(found.bytes))
    text.pointer("tops", int64, Scratch(programs * search.kept * 8, behind(counts.bytes, counts.offset)))
    declare_results(text, search.outs)
    count, columns = search.parts * search.kept, power(search.parts * search.kept)
    warps = max(1, min(8, columns // 256))
    text.block(KEPT=search.kept, COLUMNS=columns)
    layout = layout_text(Tile(1, warps=warps), columns, int64)
    text.add(
        f"row = tl.program_id(0){'.to(tl.int64)' if search.wide else ''}",
        *row_lines(text, search.x, search.dim),
        "at = tl.arange(0, COLUMNS)[None, :]",
        f"word = tl.load(tops + row * {count} + at, at < {count}, other={(1 << 63) - 1})",
        f"word = lm_first_words(word, {_log(columns)}, {_log(search.kept)}, {layout})",
    )
    _store(text, search, False)
    kernel, buffers, sizes = text.finish(warps=warps, origins=(*search.origins, ("", "parts", "")))
    return TritonLaunch(kernel, buffers, sizes, (search.rows,))
