"""Attention forward: one program for a tile of queries walks the keys with a running maximum and sum.

Source: Dao et al. 2022 (FlashAttention), algorithm 1. Tiles of keys that the diagonal or the end cuts come first, one
behind the other, so the loop over the others has no masks.
"""

from __future__ import annotations

import math
from typing import Any

from ....ir.program import Attention
from ....tune.candidates import AttentionCandidate
from ..literals import language_type
from ..program import TritonLaunch
from .attention_overlap import overlap_launch
from .attention_split import Parts, parts_of
from .attention_text import HELD, Scores, edge_tiles, held, lead_lines, offset_of, padded, rows_at
from .gemm import ceil_div
from .kernel_text import KernelText
from .mask_lists import MaskLists, mask_lists

__all__ = ["ORIGIN", "attention_launches"]

ORIGIN = (("", "attention_with_lse", ""),)


def attention_launches(step: Attention, config: AttentionCandidate, wide: bool) -> list[TritonLaunch]:
    """The launches of a forward pass."""
    if config.overlapped:
        return [overlap_launch(step, config)]
    text = KernelText(wide)
    described = frozenset(("query", "key", "value") if config.descriptors else ())
    scores = Scores(step, text, config.block_m, config.block_n, described=described, arithmetic=config.precision)
    text.block(
        BLOCK_M=config.block_m, BLOCK_N=config.block_n, WIDTH=padded(scores.width), VALUES=padded(scores.value_width)
    )
    heads: Any = 1
    for size in scores.lead:
        heads = heads * size
    parts = parts_of(scores, 1 if step.causal else config.split, heads)
    scores.declare("query", "key", "value", *(() if parts is not None else ("out", "lse")))
    scores.declare_mask()
    lists = mask_lists(scores, "n", 0, wide) if parts is None else None
    if lists is not None:
        lists.declare(text)
    if parts is not None:
        parts.declare(text)
    _start(scores)
    _walk_keys(scores, lists, parts)
    if parts is not None:
        parts.store(text)
    else:
        _finish(scores)
    kernel, buffers, sizes = text.finish(
        warps=config.warps, stages=config.stages, registers=config.registers, origins=ORIGIN
    )
    grid = (ceil_div(scores.queries, config.block_m), heads)
    if parts is not None:
        return [TritonLaunch(kernel, buffers, sizes, (*grid, parts.count)), parts.combine(wide)]
    return [*(lists.launches if lists is not None else ()), TritonLaunch(kernel, buffers, sizes, grid)]


def _start(scores: Scores) -> None:
    step, text = scores.step, scores.text
    wide = ".to(tl.int64)" if text.wide else ""
    # The last queries of a causal product have most keys: they start first.
    tile = "tl.num_programs(0) - 1 - tl.program_id(0)" if step.causal else "tl.program_id(0)"
    text.add(
        f"head = tl.program_id(1){wide}",
        *lead_lines(text, scores.lead, "head"),
        f"start = ({tile}) * BLOCK_M",
        "m = start + tl.arange(0, BLOCK_M)",
        "d = tl.arange(0, WIDTH)",
        "e = tl.arange(0, VALUES)",
    )
    if step.dropout:
        text.add("seed = tl.load(state)", "counter = tl.load(state + 1)")
    text.add(f"q = {scores.rows('query', 'm', 'start', scores.row_mask())}")


def _empty(text: KernelText) -> None:
    """Nothing was walked yet."""
    text.add(
        'best = tl.full([BLOCK_M], float("-inf"), tl.float32)',
        "total = tl.zeros([BLOCK_M], tl.float32)",
        "acc = tl.zeros([BLOCK_M, VALUES], tl.int32)",
    )


def _walk_keys(scores: Scores, lists: MaskLists | None, parts: Parts | None) -> None:
    """Tiles of keys that an end cuts, then the loop over the others, which needs no masks."""
    step, text = scores.step, scores.text
    keys = scores.keys
    if lists is not None:
        _empty(text)
        lists.find(text, "start // BLOCK_M")
        for kind in ("whole", "mixed"):
            text.add(f"for place in range(0, {kind}_count):")
            text.add(f"    base = tl.load({kind}_at + place) * BLOCK_N")
            _turn(scores, diagonal=False, tail=kind == "mixed", masked=kind == "mixed")
        return
    if parts is not None:
        _empty(text)
        parts.bounds(text)
        if scores.whole_n:
            _loop(scores, "begin", "end", diagonal=False, tail=False)
            return
        text.add(f"whole = min(end, {text.size(keys // scores.block_n * scores.block_n)})")
        _loop(scores, "begin", "whole", diagonal=False, tail=False)
        _loop(scores, "tl.maximum(begin, whole)", "end", diagonal=False, tail=True)
        return
    edges = edge_tiles(scores)
    if edges is None:
        _empty(text)
        whole = text.size(keys // scores.block_n * scores.block_n)
        text.add(f"whole = min((start + 1) // BLOCK_N * BLOCK_N, {whole})")
        text.add(f"end = min(start + BLOCK_M, {text.size(keys)})")
        _loop(scores, "whole", "end", diagonal=True, tail=True)
        _loop(scores, "0", "whole", diagonal=False, tail=False)
        return
    edge, count = edges
    if count:
        text.add(f"edge = {edge}")
    else:
        _empty(text)
    for number in range(count):
        text.add(f"base = edge{f' + {number * scores.block_n}' if number else ''}")
        _body(scores, diagonal=step.causal, tail=True, first=number == 0)
    if edge != "0":
        _loop(scores, "0", "edge" if count else edge, diagonal=False, tail=False)


def _loop(scores: Scores, begin: str, end: str, *, diagonal: bool, tail: bool) -> None:
    scores.text.add(f"for base in range({begin}, {end}, BLOCK_N):")
    _turn(scores, diagonal=diagonal, tail=tail)


def _turn(scores: Scores, *, diagonal: bool, tail: bool, masked: bool = True) -> None:
    """The body of a loop that has just been opened."""
    scores.text.depth += 1
    _body(scores, diagonal=diagonal, tail=tail, masked=masked)
    scores.text.depth -= 1


def _body(scores: Scores, *, diagonal: bool, tail: bool, masked: bool = True, first: bool = False) -> None:
    """One tile of keys, at ``base``. first: nothing was walked before."""
    step, text = scores.step, scores.text
    key_mask = scores.key_mask(tail)
    text.add(
        "n = base + tl.arange(0, BLOCK_N)",
        f"k = {scores.rows('key', 'n', 'base', key_mask)}",
        *scores.lines("q", "k.T", diagonal, tail, masked),
        f"top = {scores.largest}" if first else f"top = tl.maximum(best, {scores.largest})",
    )
    if step.mask is not None:  # a row may have no key yet
        text.add('level = tl.where(top == float("-inf"), 0.0, top)')
    level = "level" if step.mask is not None else "top"
    text.add(f"p = tl.exp2({scores.power(f'{level}[:, None]')})")
    if first:
        text.add("total = tl.sum(p, 1)")
    else:
        text.add(f"shrink = tl.exp2({scores.difference('best', level)})", "total = total * shrink + tl.sum(p, 1)")
    if step.dropout:
        text.add(*scores.kept_lines(), "p = tl.where(kept, p, 0.0)")
    before = "" if first else f", {held('acc')} * shrink[:, None]"
    text.add(
        f"v = {scores.rows('value', 'n', 'base', key_mask)}",
        f"acc = tl.dot(p.to({language_type(step.value.dtype)}), v{before}{scores.precision}){HELD}",
        "best = top",
    )


def _finish(scores: Scores) -> None:
    step, text = scores.step, scores.text
    divisor = "total" if step.mask is None else "tl.where(total == 0.0, 1.0, total)"
    text.add(f"acc = {held('acc')} / ({divisor})[:, None]")
    if 0.0 < step.dropout < 1.0:
        text.add(f"acc *= {1.0 / (1.0 - step.dropout)!r}")
    tail = scores.mask(scores.row_mask(), scores.width_mask("e")).replace(", other=0.0", "")
    text.add(f"tl.store({rows_at(text, step.out, 'out', 'm', 'e')}, acc.to({language_type(step.out.dtype)}){tail})")
    if step.lse is not None:
        inside = "" if scores.whole_m else f", m < {text.size(scores.queries)}"
        level = "best" if step.mask is None else 'tl.where(best == float("-inf"), 0.0, best)'
        place = f"lse{offset_of(text, step.lse)} + m * {text.atom(step.lse.strides[-2])}"
        base = f" * {math.log(2.0)!r}" if scores.fused else ""
        text.add(f"tl.store({place}, {level}{base} + tl.log(total){inside})")
