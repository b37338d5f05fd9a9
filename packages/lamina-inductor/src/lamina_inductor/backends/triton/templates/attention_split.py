"""Attention of few queries over many keys: programs walk parts of the keys, a second kernel combines them in order.

``with_groups_as_rows``: heads that share keys become rows of one matrix, so that its keys are read once.
Source: Dao et al. 2023, "Flash-Decoding for long-context inference".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import float32

from ....ir.program import Attention, Operand
from ..literals import language_type
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .attention_text import LOG2E, Scores, held, lead_lines, offset_of, padded
from .kernel_text import KernelText, is_multiple

__all__ = ["Parts", "parts_of", "with_groups_as_rows"]

FEW = 64
"""Rows up to which groups become rows: more fill a tile by themselves."""


def with_groups_as_rows(step: Attention) -> Attention:
    """The same with one matrix of queries for all heads of a group, where these share keys and rows are few.

    Not where a row's number says which keys it sees: a causal row 0 sees key 0, of every head.
    """
    group, rows = constant(step.out.shape[2]), constant(step.out.shape[3])
    if group is None or rows is None or group == 1 or group * rows > FEW or step.causal:
        return step
    shared = all(constant(o.strides[2]) == 0 for o in (step.key, step.value))
    given = [o for o in (step.query, step.out, step.lse, step.mask) if o is not None]
    if not shared or not all(_is_even(o, rows) for o in given):
        return step
    return replace(
        step,
        query=_flat(step.query, group, rows), out=_flat(step.out, group, rows), key=_first(step.key),
        value=_first(step.value), lse=None if step.lse is None else _flat(step.lse, group, rows),
        mask=None if step.mask is None else _flat(step.mask, group, rows),
    )  # fmt: skip


def _row_step(operand: Operand, rows: int) -> Any:
    """From one row to the next, 0 where a mask has one row for all."""
    return operand.strides[3] if rows > 1 and constant(operand.shape[3]) != 1 else 0


def _is_even(operand: Operand, rows: int) -> bool:
    """Do the rows of all groups follow each other in even steps?"""
    return rows == 1 or constant(operand.strides[2] - rows * _row_step(operand, rows)) == 0


def _flat(operand: Operand, group: int, rows: int) -> Operand:
    batch, heads, _, _, width = operand.shape
    step = operand.strides[2] if rows == 1 else _row_step(operand, rows)
    strides = (*operand.strides[:2], 0, step, operand.strides[4])
    return replace(operand, shape=(batch, heads, 1, group * rows, width), strides=strides)


def _first(operand: Operand) -> Operand:
    return replace(operand, shape=(*operand.shape[:2], 1, *operand.shape[3:]))


# -- parts of the keys -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parts:
    """``count`` parts of the keys. Scratch memory, in float32: [heads, count, queries, width of values] products with
    the values and, behind them, [heads, count, 2, queries]: largest scores and sums."""

    scores: Scores
    count: int
    heads: Any

    @property
    def _rows(self) -> Any:
        return self.heads * self.count * self.scores.queries

    @property
    def _sums(self) -> Scratch:
        return Scratch(self._rows * self.scores.value_width * 4)

    @property
    def _tops(self) -> Scratch:
        return Scratch(self._rows * 8, (self._sums.bytes + 255) // 256 * 256)

    def declare(self, text: KernelText) -> None:
        """The pointers."""
        text.pointer("sums", float32, self._sums)
        text.pointer("tops", float32, self._tops)

    def bounds(self, text: KernelText) -> None:
        """Lines that define ``begin`` and ``end``, the keys of the program's part."""
        tiles = (self.scores.keys + self.scores.block_n - 1) // self.scores.block_n
        text.add(
            f"span = {text.size((tiles + self.count - 1) // self.count)} * BLOCK_N",
            "begin = tl.program_id(2) * span",
            f"end = min(begin + span, {text.size(self.scores.keys)})",
        )

    def store(self, text: KernelText) -> None:
        """What a program found of its part."""
        scores = self.scores
        queries = text.atom(scores.queries)
        inside = "" if scores.whole_m else f", m < {text.size(scores.queries)}"
        mask = scores.mask(scores.row_mask(), scores.width_mask("e")).replace(", other=0.0", "")
        text.add(
            f"part = head * {self.count} + tl.program_id(2)",
            f"at = (part * {queries} + m)[:, None] * {scores.value_width} + e[None, :]",
            f"tl.store(sums + at, {held('acc')}{mask})",
            f"tops_at = tops + part * 2 * {queries} + m",
            f"tl.store(tops_at, best{inside})",
            f"tl.store(tops_at + {queries}, total{inside})",
        )

    def combine(self, wide: bool) -> TritonLaunch:
        """One program for each query adds up its parts, in order."""
        scores, step = self.scores, self.scores.step
        text = KernelText(wide)
        scores = replace(scores, text=text, described=frozenset())
        queries = text.atom(scores.queries)
        text.block(PARTS=1 << (self.count - 1).bit_length(), VALUES=padded(scores.value_width))
        self.declare(text)
        for name in ("out", "lse"):
            operand = getattr(step, name)
            if operand is not None:
                text.pointer(name, operand.dtype, operand)
        some = f"part < {self.count}"
        inside = "" if is_multiple(self.count, 1 << (self.count - 1).bit_length()) else f", {some}"
        across = "" if padded(scores.value_width) == scores.value_width else f"(e[None, :] < {scores.value_width})"
        both = " & ".join([*([f"({some})[:, None]"] if inside else []), *([across] if across else [])])
        power = "best - level" if scores.fused else f"(best - level) * {LOG2E!r}"
        text.add(
            f"head = tl.program_id(1){'.to(tl.int64)' if wide else ''}",
            *lead_lines(text, scores.lead, "head"),
            "m = tl.program_id(0)",
            "part = tl.arange(0, PARTS)",
            "e = tl.arange(0, VALUES)",
            f"row = head * {self.count} + part",
            f"at = (row * {queries} + m)[:, None] * {scores.value_width} + e[None, :]",
            f"acc = tl.load(sums + at{f', {both}, other=0.0' if both else ''})",
            f"best = tl.load(tops + row * 2 * {queries} + m{inside}{_other(inside, '-inf')})",
            f"total = tl.load(tops + (row * 2 + 1) * {queries} + m{inside}{_other(inside, '0')})",
            "top = tl.max(best, 0)",
            f"level = {'top' if step.mask is None else _finite('top')}",
            f"weight = tl.exp2({power})",
            "every = tl.sum(total * weight, 0)",
            f"divisor = {'every' if step.mask is None else 'tl.where(every == 0.0, 1.0, every)'}",
            "result = tl.sum(acc * weight[:, None], 0) / divisor",
        )
        if 0.0 < step.dropout < 1.0:
            text.add(f"result *= {1.0 / (1.0 - step.dropout)!r}")
        place = f"out{offset_of(text, step.out)} + m * {text.atom(step.out.strides[3])}"
        column = "e" if constant(step.out.strides[4]) == 1 else f"e * {text.atom(step.out.strides[4])}"
        values = "" if not across else f", e < {scores.value_width}"
        text.add(f"tl.store({place} + {column}, result.to({language_type(step.out.dtype)}){values})")
        if step.lse is not None:
            base = f" * {math.log(2.0)!r}" if scores.fused else ""
            place = f"lse{offset_of(text, step.lse)} + m * {text.atom(step.lse.strides[3])}"
            text.add(f"tl.store({place}, level{base} + tl.log(every))")
        kernel, buffers, sizes = text.finish(warps=4, origins=(("", "attention_with_lse", ""), ("", "parts", "")))
        return TritonLaunch(kernel, buffers, sizes, (scores.queries, self.heads))


def _other(inside: str, value: str) -> str:
    return f', other=float("{value}")' if inside else ""


def _finite(name: str) -> str:
    return f'tl.where({name} == float("-inf"), 0.0, {name})'


def parts_of(scores: Scores, count: int, heads: Any) -> Parts | None:
    """The parts, or None where there is one."""
    return Parts(scores, count, heads) if count > 1 else None
