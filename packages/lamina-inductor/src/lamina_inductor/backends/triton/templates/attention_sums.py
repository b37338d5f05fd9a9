"""What attention's gradients need of each query: the level and weight of its probabilities, and a product's sum.

The sum is found where the queries' gradients are, which come first; without them, together with the others.

A probability is ``weight * 2^(score - level)``. The level is the log-sum-exp of the forward pass and the weight 1,
unless the log-sum-exp is so large (the row's keys are all masked by the lowest number, say) that the sum is lost in
``largest + log(sum)``: in a tile with such a row the kernel walks the keys and finds the largest score and the sum
again.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ....ir.program import AttentionBackward
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .attention_text import LOG2E, Scores, lead_lines, offset_of, padded
from .gemm import ceil_div
from .kernel_text import KernelText

__all__ = ["FAR", "ROW_VALUES", "load_row", "row_sums", "rows_of_head", "scratch_for", "store_row", "total_lines"]

ROW_VALUES = ("total", "level", "weight")
"""What is kept of a query, in float32: scratch memory is [heads, these, queries], with room for whole tiles where the
number of queries is not known: rows that are read without a mask, from addresses that are multiples of 16."""

_TILE = 128
"""Most queries of a tile."""

FAR = 4096.0
"""A log-sum-exp of this size has lost digits: its last one is 5e-4 of a probability."""

_OUTSIDE = {"total": "0.0", "level": 'float("inf")', "weight": "0.0"}
"""Of a query behind the last one, which takes part in nothing."""


def scratch_for(step: AttentionBackward) -> tuple[Scratch, Any]:
    """(scratch memory for the values of all queries, the number of heads)."""
    heads: Any = 1
    for size in step.out.shape[:3]:
        heads = heads * size
    return Scratch(heads * len(ROW_VALUES) * _room(step.query.shape[-2]) * 4), heads


def _room(queries: Any) -> Any:
    return queries if constant(queries) is not None else ceil_div(queries, _TILE) * _TILE


def rows_of_head(scores: Scores, number: str) -> str:
    """The address of a head's values."""
    return f"rows + {number} * {scores.text.atom(len(ROW_VALUES) * _room(scores.queries))}"


def load_row(scores: Scores, name: str) -> str:
    """A load of one of ``ROW_VALUES`` of the queries ``m``, from ``rows_at``."""
    text = scores.text
    place = f"rows_at + {text.atom(ROW_VALUES.index(name) * _room(scores.queries))} + m"
    if scores.whole_m or constant(scores.queries) is None:
        return f"tl.load({place})"
    return f"tl.load({place}, m < {text.size(scores.queries)}, other={_OUTSIDE[name]})"


def total_lines(scores: Scores, start: str) -> list[str]:
    """``total`` of the queries ``m``, whose outputs' gradients ``do`` are loaded: the sum of their product with the
    outputs, less the gradient of the log-sum-exp.
    """
    lines = [
        f"o = {scores.rows('out', 'm', start, scores.row_mask())}",
        "total = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)",
    ]
    return lines + ([f"total -= {_statistic(scores, 'grad_lse')}"] if scores.step.grad_lse is not None else [])


def store_row(scores: Scores, name: str) -> str:
    """The store of one of ``ROW_VALUES`` of the queries ``m``, to ``rows_at``."""
    text = scores.text
    inside = "" if scores.whole_m else f", m < {text.size(scores.queries)}"
    return f"tl.store(rows_at + {text.atom(ROW_VALUES.index(name) * _room(scores.queries))} + m, {name}{inside})"


def row_sums(
    step: AttentionBackward, rows: Scratch, heads: Any, wide: bool, arithmetic: str, totals: bool
) -> TritonLaunch:
    """The kernel. ``totals``: find these, too."""
    text = KernelText(wide)
    block = 32 if step.query.dtype is float32 else 64  # of float32 a tile's operands lie in registers
    scores = Scores(step, text, block, block, arithmetic=arithmetic)
    text.block(
        BLOCK_M=block, BLOCK_N=block, WIDTH=padded(scores.width), VALUES=padded(scores.value_width), FAR=FAR
    )  # fmt: skip
    scores.declare("query", "key", "lse", *(("out", "grad_out", "grad_lse") if totals else ()))
    text.pointer("rows", float32, rows)
    if step.mask is not None:
        text.pointer("mask", step.mask.dtype, step.mask)
    text.add(
        f"head = tl.program_id(1){'.to(tl.int64)' if wide else ''}",
        *lead_lines(text, scores.lead, "head"),
        "start = tl.program_id(0) * BLOCK_M",
        "m = start + tl.arange(0, BLOCK_M)",
        "e = tl.arange(0, VALUES)",
        f"rows_at = {rows_of_head(scores, 'head')}",
    )
    if totals:
        text.add(f"do = {scores.rows('grad_out', 'm', 'start', scores.row_mask())}", *total_lines(scores, "start"))
    _levels(scores)
    if constant(scores.queries) is None:
        _fill(scores)
    text.add(*[store_row(scores, name) for name in ROW_VALUES if totals or name != "total"])
    kernel, buffers, sizes = text.finish(warps=4, stages=1, origins=(("", "attention_backward", ""),))
    return TritonLaunch(kernel, buffers, sizes, (ceil_div(_room(scores.queries), block), heads))


def _fill(scores: Scores) -> None:
    """What queries behind the last one have."""
    text = scores.text
    text.add(f"behind = m >= {text.size(scores.queries)}")
    for number, name in enumerate(ROW_VALUES):
        text.add(
            f"tl.store(rows_at + {text.atom(number * _room(scores.queries))} + m, "
            f"tl.full([BLOCK_M], {_OUTSIDE[name]}, tl.float32), behind)"
        )


def _statistic(scores: Scores, name: str) -> str:
    """A load of a number for each query."""
    text, operand = scores.text, getattr(scores.step, name)
    inside = "" if scores.whole_m else f", m < {text.size(scores.queries)}, other=0.0"
    return f"tl.load({name}{offset_of(text, operand)} + m * {text.atom(operand.strides[-2])}{inside})"


def _levels(scores: Scores) -> None:
    """``level`` and ``weight``: from the log-sum-exp, or from the scores where it is large."""
    text, step = scores.text, scores.step
    base = f" * {LOG2E!r}" if scores.fused else ""
    text.add(
        f"lse = {_statistic(scores, 'lse')}",
        "far = (tl.abs(lse) > FAR) & (tl.abs(lse) < float('inf'))",
        f"level = tl.where(lse == float('-inf'), 0.0, lse{base})",
        "weight = tl.full([BLOCK_M], 1.0, tl.float32)",
        "if tl.max(far.to(tl.int32), 0) > 0:",
    )
    text.depth += 1
    end = text.size(scores.keys)
    text.add(
        "d = tl.arange(0, WIDTH)",
        f"q = {scores.rows('query', 'm', 'start', scores.row_mask())}",
        'best = tl.full([BLOCK_M], float("-inf"), tl.float32)',
        "found = tl.zeros([BLOCK_M], tl.float32)",
        f"for base in range(0, {f'min(start + BLOCK_M, {end})' if step.causal else end}, BLOCK_N):",
    )
    text.depth += 1
    text.add(
        "n = base + tl.arange(0, BLOCK_N)",
        f"k = {scores.rows('key', 'n', 'base', scores.key_mask(True))}",
        *scores.lines("q", "k.T", True, True),
        f"top = tl.maximum(best, {scores.largest})",
        'finite = tl.where(top == float("-inf"), 0.0, top)',
        f"found = found * tl.exp2({scores.difference('best', 'finite')})"
        f" + tl.sum(tl.exp2({scores.power('finite[:, None]')}), 1)",
        "best = top",
    )
    text.depth -= 1
    text.add("level = tl.where(far, best, level)", "weight = tl.where(far, 1.0 / found, 1.0)")
    text.depth -= 1
