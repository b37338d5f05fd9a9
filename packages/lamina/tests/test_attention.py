"""Attention that programs spell out: what becomes one step, with the same results and gradients, and what does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lamina
import lamina.nn.functional as F
from lamina import Tensor


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    lamina.compiler.reset()
    yield
    lamina.compiler.reset()


def causal_before(size: int) -> Tensor:
    return lamina.tril(lamina.ones(size, size))


def textbook(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return F.softmax(scores, dim=-1) @ v


def buffer_mask(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    att = att.masked_fill(m == 0, float("-inf"))
    return F.softmax(att, dim=-1) @ v


def large_number(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = lamina.matmul(q, k.transpose(2, 3)) / 4.0
    scores = scores.masked_fill(m == 0, -1e9)
    return lamina.matmul(scores.softmax(dim=-1), v)


def lowest_number(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = q @ k.mT
    lowest = lamina.full([], lamina.finfo(scores.dtype).min, dtype=scores.dtype)
    scores = lamina.where(m.bool(), scores, lowest)
    return scores.softmax(-1, dtype=lamina.float32).to(q.dtype) @ v


def added_mask(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.softmax(q @ k.mT * 0.25 + (1.0 - m) * -10000.0, -1) @ v


def added_infinity(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.softmax(q @ k.mT * 0.25 + lamina.where(m == 0, -lamina.inf, 0.0), -1) @ v


def in_place(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = q @ k.mT
    scores.masked_fill_(lamina.triu(lamina.ones(q.shape[2], q.shape[2]), diagonal=1).bool(), -lamina.inf)
    scores /= math.sqrt(q.shape[-1])
    return lamina.softmax(scores, -1) @ v


def triangle_added(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    size = q.shape[2]
    mask = lamina.triu(lamina.full((size, size), float("-inf")), diagonal=1)
    return lamina.softmax(q @ k.mT / 4 + mask, -1) @ v


def triangle_where(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    keep = causal_before(q.shape[2]).view(1, 1, q.shape[2], q.shape[2])
    return lamina.where(keep == 0, -lamina.inf, q @ k.mT).softmax(3) @ v


def triangle_and_mask(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = (q @ k.mT).masked_fill(~causal_before(q.shape[2]).bool(), -lamina.inf)
    return scores.masked_fill(m == 0, -lamina.inf).softmax(-1) @ v


def einsums(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    scores = lamina.einsum("bhld,bhsd->bhls", q, k) * 0.2
    return lamina.einsum("bhls,bhsd->bhld", scores.softmax(-1), v)


def einsums_turned(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = lamina.einsum("bqhd,bkhd->bhqk", q, k) * 0.2
    return lamina.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).transpose(1, 2)


def batched(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    q, k, v = (x.reshape(6, *x.shape[2:]) for x in (q, k, v))
    return lamina.bmm(lamina.bmm(q * 0.3, k.transpose(1, 2)).softmax(2), v).reshape(2, 3, -1, 16)


SPELLINGS: dict[Callable[..., Tensor], bool] = {
    textbook: False, buffer_mask: False, large_number: False, lowest_number: False, added_mask: False,
    added_infinity: False, in_place: True, triangle_added: True, triangle_where: True, triangle_and_mask: True,
    einsums: False, einsums_turned: False, batched: False,
}  # fmt: skip
"""Programs, and whether they are causal as such."""


def operands(*, double: bool = False) -> list[Tensor]:
    rng = np.random.default_rng(0)
    kind = np.float64 if double else np.float32
    return [lamina.tensor(rng.normal(size=(2, 3, 9, 16)).astype(kind), requires_grad=True) for _ in range(3)]


def full_mask() -> Tensor:
    mask = np.tri(9, dtype=np.float32)
    mask[5, 3] = 0
    return lamina.tensor(mask)


def with_empty_rows() -> Tensor:
    mask = full_mask().clone()
    mask[0] = 0
    mask[4] = 0
    return mask


def calls() -> list[Any]:
    """The attention operators of the graphs that were compiled."""
    return [n for r in lamina.compiler.records() for n in r.stages.get("rewritten", r.stages["captured"]).nodes
            if n.target == "attention_with_lse"]  # fmt: skip


def run(function: Callable[..., Tensor], tensors: list[Tensor], mask: Tensor, weight: Tensor) -> list[np.ndarray]:
    out = function(*tensors, mask)
    (out * weight).sum().backward()
    found = [out.detach().numpy(), *(t.grad.numpy() for t in tensors)]
    for t in tensors:
        t.grad = None
    return found


def same(function: Callable[..., Tensor], mask: Tensor, weight: Tensor | None = None) -> None:
    tensors = operands()
    weight = (
        lamina.tensor(np.random.default_rng(1).normal(size=(2, 3, 9, 16)).astype(np.float32))
        if weight is None
        else weight
    )
    eager = run(function, tensors, mask, weight)
    compiled = run(lamina.compile(function), tensors, mask, weight)
    tolerance = 2e-3 if function is added_mask else 2e-5  # 10000 and a score: eight bits of it are left
    for a, b in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("function", SPELLINGS, ids=lambda f: f.__name__)
def test_spellings_are_one_step(function: Callable[..., Tensor]) -> None:
    same(function, full_mask())
    (call,) = calls()
    assert call.args[4] is SPELLINGS[function]
    assert {k.split(":")[0] for r in lamina.compiler.records() for k in r.stages} >= {"captured", "rewritten", "joint"}


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize(
    "function", [buffer_mask, large_number, lowest_number, added_mask, added_infinity, triangle_and_mask],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_queries_without_keys_keep_their_meaning(function: Callable[..., Tensor], ignored: bool) -> None:
    """NaN, or the mean of the values; in the gradients, too, also where the loss leaves those rows out."""
    weight = lamina.ones(2, 3, 9, 16)
    if ignored:
        weight[:, :, 0], weight[:, :, 4] = 0, 0
    with np.errstate(all="ignore"):
        same(function, with_empty_rows(), weight)
    assert len(calls()) == 1


def test_dropout_draws_the_same_numbers() -> None:
    def program(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
        weights = F.dropout((q @ k.mT).masked_fill(m == 0, -lamina.inf).softmax(-1), 0.25)
        return weights @ v + lamina.rand(16)

    results = []
    for function in (program, lamina.compile(program)):
        lamina.manual_seed(3)
        results.append(run(function, operands(), full_mask(), lamina.ones(2, 3, 9, 16)))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert [c.args[6] for c in calls()] == [0.25]


def weights_are_returned(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights


def scores_are_used(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    scores = q @ k.mT
    return scores.softmax(-1) @ v + scores.mean()


def over_queries(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).softmax(-2) @ v


def small_fill(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).masked_fill(m == 0, -3.0).softmax(-1) @ v


def written_between(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    values = v * 1.0
    weights = (q @ k.mT).softmax(-1)
    values.mul_(2)
    return weights @ values


def activation_between(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return lamina.tanh(q @ k.mT).softmax(-1) @ v


def two_fills(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    scores = (q @ k.mT).masked_fill(m == 0, -1e9)
    return scores.masked_fill(~causal_before(9).bool(), -lamina.inf).softmax(-1) @ v


def other_triangle(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return lamina.where(lamina.tril(lamina.ones(9, 9), diagonal=1) == 0, -lamina.inf, q @ k.mT).softmax(-1) @ v


@pytest.mark.parametrize(
    "function",
    [weights_are_returned, scores_are_used, over_queries, small_fill, written_between, activation_between, two_fills],
    ids=lambda f: f.__name__,
)
def test_what_could_tell_is_left_alone(function: Callable[..., Any]) -> None:
    tensors = operands()
    eager, compiled = function(*tensors, full_mask()), lamina.compile(function)(*tensors, full_mask())
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (eager, compiled)), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=2e-4, atol=2e-5)
    assert calls() == []


def test_another_triangle_is_a_mask() -> None:
    same(other_triangle, full_mask())
    (call,) = calls()
    assert call.args[4] is False and call.args[3] is not None


def test_second_derivatives() -> None:
    def slope(function: Callable[..., Tensor]) -> list[np.ndarray]:
        tensors = operands(double=True)
        (first,) = lamina.autograd.grad(function(*tensors, full_mask()).square().sum(), tensors[:1], create_graph=True)
        return [g.numpy() for g in lamina.autograd.grad(first.square().sum(), tensors)]

    for a, b in zip(slope(in_place), slope(lamina.compile(in_place)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    assert len(calls()) == 1


def test_gradients_add_up_in_a_training_step() -> None:
    def step(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
        loss = textbook(q, k, v, m).square().sum()
        loss.backward()
        return loss

    found = []
    for function in (step, lamina.compile(step)):
        tensors = operands()
        for _ in range(3):
            function(*tensors, full_mask())
        found.append([t.grad.numpy() for t in tensors])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-4)
    assert len(calls()) == len(lamina.compiler.records())


def scores_are_truncated(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).to(lamina.int32).float().softmax(-1) @ v


def scores_are_rounded(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).half().float().softmax(-1) @ v


def weights_are_rounded(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).softmax(-1).bfloat16().float() @ v


def weights_are_truncated(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q @ k.mT).softmax(-1).to(lamina.int32).float() @ v


def narrow_softmax(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return (q.double() @ k.double().mT).softmax(-1, dtype=lamina.float32).double() @ v.double()


@pytest.mark.parametrize(
    "function",
    [scores_are_truncated, scores_are_rounded, weights_are_rounded, weights_are_truncated, narrow_softmax],
    ids=lambda f: f.__name__,
)
def test_rounding_between_is_left_alone(function: Callable[..., Any]) -> None:
    """A conversion to another kind of number, or to fewer digits, is part of what the program computes."""
    tensors = operands()
    eager, compiled = function(*tensors, full_mask()), lamina.compile(function)(*tensors, full_mask())
    np.testing.assert_allclose(compiled.detach().numpy(), eager.detach().numpy(), rtol=2e-4, atol=2e-5)
    assert calls() == []


def test_a_result_that_is_written_in_place() -> None:
    """Attention's backward reads its result, which the last product's did not."""

    def program(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = (q @ k.mT).softmax(-1) @ v
        out.transpose(1, 2).add_(1.0)
        loss = out.square().sum()
        loss.backward()
        return out.detach()

    found = []
    for function in (program, lamina.compile(program, fullgraph=True)):
        tensors = operands()
        found.append([function(*tensors).numpy(), *(t.grad.numpy() for t in tensors)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-4)
    assert len(calls()) == 1
