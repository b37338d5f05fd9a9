"""A few of the largest or smallest elements of rows that no tile holds, as words of key and place (``sort_words``).

A program walks a part of a row. It keeps the best of each of ``GROUPS`` groups, which are made of vectors that lie
apart; the ``k``-th of these bounds the ``k``-th of the part, and hardly more words are as good, all of them in the
``k`` best groups. These are read once more; what is as good as the bound is collected, and sorted. Where that is too
much, a further walk keeps the best words of what it has seen, by the same network. The parts of a row are merged by a
second kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

from lamina_fx import DType, int32, int64

from ....ir.program import HostCall, Operand
from ....schedule.blocks import identity_of
from ..literals import has_type, language_type, literal
from ..program import Scratch, TritonLaunch
from ..sort_words import key_bits, key_lines, word_text
from ..sorting import layout_text
from ..tiles import Tile, constant, power
from .kernel_text import KernelText
from .offsets import scaled
from .row_words import RowWords, behind, declare_results, row_lines, row_offset, rows_of_operand

__all__ = ["is_topk", "topk_launches"]

MOST = 256
"""Elements that are looked for at most."""

GROUPS, WARPS = 1024, 4
"""Groups of a part, and warps of a program."""

STAGES = 3
"""Steps of the walk that are under way together."""

CANDIDATES = 1024
"""Elements of the best groups that are read at a time."""

LEAST, LONGEST = 8192, 60000
"""Elements of a part that is worth a program, and of one with words of 32 bits (16 of them for the place)."""

PER_UNIT = 2
"""Programs for each multiprocessor, up to which rows are cut."""


def is_topk(step: Any) -> bool:
    """Is there a template for it?"""
    if type(step) is not HostCall or step.operator != "topk":
        return False
    x, k, dim = step.args[:3]
    known = type(k) is int and 1 <= k <= MOST and bool(x.shape) and constant(x.shape[dim]) is not None
    plain = has_type(x.dtype) and x.dtype.itemsize <= 4 and not x.dtype.name.startswith("float8")
    return known and plain and all(constant(n) != 0 for n in x.shape)


@dataclass(frozen=True, slots=True)
class _Search(RowWords):
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
    def vector(self) -> int:
        """Elements beside each other in a group."""
        return min(16 // self.x.dtype.itemsize, 8)

    @property
    def block(self) -> int:
        """Elements of a step."""
        return GROUPS * self.vector

    @property
    def kept(self) -> int:
        """Words that are found: a power of two."""
        return power(max(2, self.k))

    @property
    def room(self) -> int:
        """Words that are collected at most; as many as are equal to the bound where all elements are equal."""
        return min(1024, max(256, 2 * self.kept, self.kept * self.vector))


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
    block = GROUPS * min(16 // x.dtype.itemsize, 8)
    span = -(-size // parts // block) * block if parts > 1 else size
    search = _Search(
        x, step.outs, k, dim, bool(largest), size, rows, span, -(-size // span), wide, (("topk", "topk", step.source),)
    )
    return [_walk(search), *([_merge(search)] if search.parts > 1 else [])]


def _log(number: int) -> int:
    return number.bit_length() - 1


# -- parts of a row --------------------------------------------------------------------------------------


def _walk(search: _Search) -> TritonLaunch:
    text = KernelText(search.wide)
    found, counts, tops = _scratch(search)
    steps = min(max(1, CANDIDATES // (search.kept * search.vector)), power(-(-search.span // search.block)))
    columns = steps * search.vector
    text.block(BLOCK=search.block, GROUPS=GROUPS, ROOM=search.room, KEPT=search.kept, COLUMNS=columns)
    text.pointer("x", search.x.dtype, search.x)
    text.pointer("found", search.word, found)
    text.pointer("counts", int32, counts)
    if search.parts > 1:
        text.pointer("tops", int64, tops)
    else:
        declare_results(text, search.outs)
    rest = search.room - search.kept
    text.add(
        *_start_lines(text, search),
        *([f"begin = tl.program_id(1) * {search.span}"] if search.parts > 1 else []),
        f"program = row * {search.parts} + tl.program_id(1)",
        "found = found + program * ROOM",
        "count = counts + program",
        "tl.store(count, 0)",
        f"most = tl.full([], {search.most}, {language_type(search.word)})",
        f"best = tl.full([1, GROUPS], {search.most}, {language_type(search.word)})",
        f"for step in tl.range(0, {search.span}, BLOCK, num_stages={STAGES}):",
        *_best_of_groups(text, search),
        "kept = tl.arange(0, KEPT)[None, :]",
        f"first = {_first('best', GROUPS, search)}",
        "tl.debug_barrier()",
        *_collect(text, search, steps),
        "tl.debug_barrier()",
        'number = tl.load(count, cache_modifier=".cg")',
        "slots = tl.arange(0, ROOM)[None, :]",
        "turn, turns = tl.full([], 0, tl.int32), tl.full([], 1, tl.int32)",
        "if number > ROOM:",
        f"    turns = tl.full([], {1 - (-search.span // rest)}, tl.int32)",
        "    number = tl.full([], 0, tl.int32)",
        "while turn < turns:",
        '    entry = tl.load(found + slots, slots < number, other=0, cache_modifier=".cg")',
        f"    first = {_first('tl.where(slots < number, entry, most)', search.room, search)}",
        "    if turns > 1:",
        "        tl.debug_barrier()",
        "        tl.store(found + kept, first)",
        f"        inner = turn * {rest} + slots - KEPT",
        *["    " + line for line in _words(text, search, "(slots >= KEPT)")],
        "        tl.store(found + slots, tl.where(inside, word, most), slots >= KEPT)",
        "        tl.debug_barrier()",
        "        number = tl.full([], ROOM, tl.int32)",
        "    turn += 1",
        "word = first",
    )
    if search.parts > 1:
        text.add(*_handed_on(search))
    else:
        _store(text, search, f"(word & {0xFFFF if search.narrow else 0xFFFFFFFF})")
    kernel, buffers, sizes = text.finish(warps=WARPS, origins=search.origins)
    return TritonLaunch(kernel, buffers, sizes, (search.rows, search.parts))


def _collect(text: KernelText, search: _Search, steps: int) -> list[str]:
    """Lines that collect in ``found`` what is as good as the ``k``-th of ``first``, from its groups."""
    return [
        f"bound = tl.max(tl.where(kept < {search.k}, first, -most), 1)[:, None]",
        f"group = tl.reshape((first & {0xFFFF if search.narrow else 0xFFFFFFFF}).to(tl.int32), [KEPT, 1])",
        *([f"group = group - {_begin(search)}"] if search.parts > 1 and not search.narrow else []),
        f"group = group % BLOCK // {search.vector} * {search.vector}",
        f"chosen = (tl.arange(0, KEPT)[:, None] < {search.k}) & (tl.reshape(first, [KEPT, 1]) != most)",
        "column = tl.arange(0, COLUMNS)[None, :]",
        f"for step in range(0, {search.span}, {steps * search.block}):",
        f"    inner = step + column // {search.vector} * BLOCK + group + column % {search.vector}",
        *_words(text, search, "chosen"),
        "    hit = (word <= bound) & inside",
        '    slot = tl.atomic_add(count + tl.zeros([KEPT, COLUMNS], tl.int32), 1, mask=hit, sem="relaxed")',
        "    tl.store(found + slot, word, hit & (slot < ROOM))",
    ]


def _scratch(search: _Search) -> tuple[Scratch, Scratch, Scratch]:
    """Memory for what is collected, its numbers, and the best words of parts."""
    programs = search.rows * search.parts
    found = Scratch(programs * search.room * search.word.itemsize)
    counts = Scratch(programs * 4, behind(found.bytes))
    return found, counts, Scratch(programs * search.kept * 8, behind(counts.bytes, counts.offset))


def _start_lines(text: KernelText, search: _Search) -> list[str]:
    """Lines that define ``row`` and ``start``, the address of its first element."""
    return [
        f"row = tl.program_id(0){'.to(tl.int64)' if search.wide else ''}",
        *row_lines(text, search.x, search.dim),
        f"start = x{row_offset(text, search.x, search.dim)}",
    ]


def _begin(search: _Search) -> str:
    return "begin" if search.parts > 1 else "0"


def _first(words: str, columns: int, search: _Search) -> str:
    layout = layout_text(Tile(1, warps=WARPS), columns, search.word)
    return f"lm_first_words({words}, {_log(columns)}, {_log(search.kept)}, {layout})"


def _best_of_groups(text: KernelText, search: _Search) -> list[str]:
    """Lines of a loop that make ``best`` the best words of groups, each with the last place of its vector."""
    dtype = search.x.dtype
    held = "tl.float32" if dtype.kind == "float" else "tl.uint32" if dtype.name == "uint32" else "tl.int32"
    worst = identity_of("max" if search.largest else "min", dtype)
    if not search.largest and dtype.kind == "float":
        worst = nan  # infinity is better than that
    lines = [
        "inner = step + tl.arange(0, BLOCK)[None, :]",
        *_load_lines(text, search, "inner", f"other={literal(worst, dtype)}"),
        f"value = lm_extreme(value.to({held}), {_log(search.vector)}, {search.largest})",
        *key_lines("value", _converted("value", dtype), dtype, search.largest),
        f"inner = step + tl.arange(0, GROUPS)[None, :] * {search.vector}",
        f"place = {_place(search)} + {search.vector - 1}",
        f"word = {_word(search)}",
        f"best = tl.minimum(best, tl.where({_inside(search)}, word, most))",
    ]
    return ["    " + line for line in lines]


def _converted(value: str, dtype: DType) -> str:
    return f"({value} != 0)" if dtype.kind == "bool" else f"{value}.to({language_type(dtype)})"


def _place(search: _Search) -> str:
    """The place behind a key: in the part, or in the row."""
    return "inner" if search.narrow or search.parts == 1 else "(begin + inner)"


def _word(search: _Search) -> str:
    return word_text("value_key", "place", search.narrow)


def _inside(search: _Search) -> str:
    """Is ``inner`` a place of the part?"""
    if search.parts == 1:
        return f"(inner < {search.size})"
    return f"(inner < {search.span}) & (begin + inner < {search.size})"


def _load_lines(text: KernelText, search: _Search, inner: str, other: str, more: str = "") -> list[str]:
    at = scaled(text, f"({_begin(search)} + {inner})", search.x.strides[search.dim])
    inside = f"{_inside(search)}" + (f" & {more}" if more else "")
    return [f"inside = {inside}", f"value = tl.load(start + {at}, inside, {other})"]


def _words(text: KernelText, search: _Search, more: str = "") -> list[str]:
    """Lines of a loop that define ``inside`` and ``word`` for the places ``inner`` of the part."""
    lines = [
        *_load_lines(text, search, "inner", "other=0", more),
        *key_lines("value", "value", search.x.dtype, search.largest),
        f"place = {_place(search)}",
        f"word = {_word(search)}",
    ]
    return ["    " + line for line in lines]


def _handed_on(search: _Search) -> list[str]:
    """Words of 64 bits with the place in the row, for the kernel that merges."""
    lines = []
    if search.narrow:
        word = word_text("(word >> 16)", "(word & 65535) + begin", False)
        lines.append(f"word = tl.where(word == most, {(1 << 63) - 1}, {word})")
    return [*lines, "tl.store(tops + program * KEPT + kept, word)"]


def _store(text: KernelText, search: _Search, place: str) -> None:
    """Store the best places and what is there."""
    text.add(f"place = {place}", f"inside = kept < {search.k}")
    for name, operand in zip(("values", "places"), search.outs, strict=True):
        if operand is None:
            continue
        value = "place.to(tl.int64)"
        if name == "values":
            value = f"tl.load(start + {scaled(text, 'place', search.x.strides[search.dim])}, inside, other=0)"
        at = f"{name}{row_offset(text, operand, search.dim)} + {scaled(text, 'kept', operand.strides[search.dim])}"
        text.add(f"tl.store({at}, {value}, inside)")


# -- parts together --------------------------------------------------------------------------------------


def _merge(search: _Search) -> TritonLaunch:
    text = KernelText(search.wide)
    text.pointer("tops", int64, _scratch(search)[2])
    text.pointer("x", search.x.dtype, search.x)
    declare_results(text, search.outs)
    count, columns = search.parts * search.kept, power(search.parts * search.kept)
    warps = max(1, min(8, columns // 256))
    text.block(KEPT=search.kept, COLUMNS=columns)
    layout = layout_text(Tile(1, warps=warps), columns, int64)
    text.add(
        *_start_lines(text, search),
        "at = tl.arange(0, COLUMNS)[None, :]",
        "kept = tl.arange(0, KEPT)[None, :]",
        f"word = tl.load(tops + row * {count} + at, at < {count}, other={(1 << 63) - 1})",
        f"word = lm_first_words(word, {_log(columns)}, {_log(search.kept)}, {layout})",
    )
    _store(text, search, "(word & 4294967295)")
    kernel, buffers, sizes = text.finish(warps=warps, origins=(*search.origins, ("", "parts", "")))
    return TritonLaunch(kernel, buffers, sizes, (search.rows,))
