"""Attention as a step: what is lowered to it, and that it means what its operator does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import assert_same, compiled

from lamina_inductor.ir.program import Attention, AttentionBackward, HostCall, Launch, Program
from lamina_prims import ops

KEEP = frozenset({"attention_with_lse", "attention_backward"})
RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


Q, K, V = floats(2, 3, 5, 4), floats(2, 3, 7, 4), floats(2, 3, 7, 6)
STATE = np.array([3, 8], np.int64)
MASK = RNG.random((5, 7)) < 0.7
MASK[:, 0] = True
NO_KEY = MASK.copy()
NO_KEY[2] = False

CASES: dict[str, tuple[Any, ...]] = {
    "plain": (Q, K, V, None, False, 0.5),
    "causal": (Q, K, V, None, True, 0.5),
    "more queries than keys, causal": (floats(2, 9, 4), floats(2, 7, 4), floats(2, 7, 6), None, True, 0.5),
    "boolean mask": (Q, K, V, MASK, False, 0.5),
    "a row without keys": (Q, K, V, NO_KEY, False, 0.5),
    "additive mask": (Q, K, V, floats(3, 5, 7), False, 0.5),
    "additive mask of one row": (Q, K, V, floats(2, 1, 1, 7), False, 0.5),
    "dropout": (Q, K, V, None, False, 0.5, 0.25, STATE),
    "dropout of all": (Q, K, V, None, False, 0.5, 1.0, STATE),
    "dropout, causal": (Q, K, V, None, True, 0.5, 0.25, STATE),
    "grouped queries": (floats(2, 3, 2, 5, 4), floats(2, 3, 1, 7, 4), floats(2, 3, 1, 7, 6), None, True, 0.5),
    "one key head": (floats(2, 3, 5, 4), floats(2, 1, 7, 4), floats(1, 7, 6), None, False, 0.5),
    "matrices": (Q[0, 0], K[0, 0], V[0, 0], None, False, 0.5),
    "double": (*(x.astype(np.float64) for x in (Q, K, V)), floats(5, 7, dtype=np.float64), False, 0.5),
}


def steps(program: Program) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in program.steps:
        name = type(step).__name__
        found[name] = found.get(name, 0) + 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_forward_is_one_step(name: str) -> None:
    program, results = compiled(ops.attention_with_lse, *CASES[name], keep=KEEP)
    assert steps(program) == {"Attention": 1}
    for got, want in zip(results, ops.attention_with_lse(*CASES[name]), strict=True):
        assert_same(got, want)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("with_lse", [False, True])
def test_backward_is_one_step(name: str, with_lse: bool) -> None:
    out, lse = ops.attention_with_lse(*CASES[name])
    arguments = (floats(*out.shape, dtype=out.dtype), floats(*lse.shape, dtype=lse.dtype) if with_lse else None)
    arguments = (*arguments, out, lse, *CASES[name])
    program, results = compiled(ops.attention_backward, *arguments, keep=KEEP)
    assert steps(program) == {"AttentionBackward": 1}
    for got, want in zip(results, ops.attention_backward(*arguments), strict=True):
        assert_same(got, want, 1e-4)


def test_heads_are_read_through_their_strides() -> None:
    """Queries, keys and values from one product: (b, t, 3 * h * d), without copies before the step."""

    def heads(x: Any) -> Any:
        parts = ops.split(x, 8, -1)
        q, k, v = (ops.permute(ops.reshape(p, (2, 6, 2, 4)), (0, 2, 1, 3)) for p in parts)
        return ops.attention_with_lse(q, k, v, None, True, 0.5)[0]

    x = floats(2, 6, 24)
    program, results = compiled(heads, x, keep=KEEP)
    assert steps(program) == {"Attention": 1}
    assert_same(results[0], heads(x))


def test_result_is_laid_out_for_the_product_behind_it() -> None:
    """(b, h, t, d) that a product reads as (b, t, h * d): no copy in between."""

    def projected(q: Any, k: Any, v: Any, w: Any) -> Any:
        out = ops.attention_with_lse(q, k, v, None, True, 0.5)[0]
        return ops.matmul(ops.reshape(ops.permute(out, (0, 2, 1, 3)), (2, 5, 18)), w)

    arguments = (floats(2, 3, 5, 4), floats(2, 3, 5, 4), floats(2, 3, 5, 6), floats(18, 7))
    program, results = compiled(projected, *arguments, keep=KEEP)
    assert steps(program) == {"Attention": 1, "Gemm": 1}
    assert_same(results[0], projected(*arguments))


def test_only_wanted_results_are_made() -> None:
    def query_gradient(*args: Any) -> Any:
        return ops.attention_backward(*args)[0]

    out, lse = ops.attention_with_lse(*CASES["causal"])
    program, _ = compiled(query_gradient, floats(*out.shape), None, out, lse, *CASES["causal"], keep=KEEP)
    step = program.steps[0]
    assert type(step) is AttentionBackward
    assert step.grad_query is not None and step.grad_key is None and step.grad_value is None
    program, _ = compiled(lambda *a: ops.attention_with_lse(*a)[0], *CASES["causal"], keep=KEEP)
    assert type(program.steps[0]) is Attention and program.steps[0].lse is None


def test_half_masks_are_widened() -> None:
    half = tuple(x.astype(np.float16) for x in (Q, K, V, floats(5, 7)))
    program, results = compiled(ops.attention_with_lse, *half, False, 0.5, keep=KEEP)
    assert [type(s) for s in program.steps] == [Launch, Attention]
    for got, want in zip(results, ops.attention_with_lse(*half, False, 0.5), strict=True):
        assert_same(got, want)


def test_values_with_more_matrices_run_by_the_reference() -> None:
    arguments = (Q[0, 0], K[0, 0], floats(3, 7, 6), None, False, 0.5)
    program, results = compiled(ops.attention_with_lse, *arguments, keep=KEEP)
    assert type(program.steps[0]) is HostCall
    for got, want in zip(results, ops.attention_with_lse(*arguments), strict=True):
        assert_same(got, want)


def test_no_matrix_of_scores_is_in_memory() -> None:
    """Forward and backward need memory in proportion to the length."""

    def both(g: Any, q: Any, k: Any, v: Any) -> Any:
        out, lse = ops.attention_with_lse(q, k, v, None, True, 0.5)
        return ops.attention_backward(g, None, out, lse, q, k, v, None, True, 0.5)

    def held(length: int) -> int:
        program, _ = compiled(both, *(floats(1, length, 4) for _ in range(4)), keep=KEEP)
        return int(program.workspace)

    assert held(512) <= 2.1 * held(256)
