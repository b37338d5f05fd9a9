"""Attention where the log-sum-exp says too little: huge scores, rows masked by the lowest number, no keys at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina
from lamina import Tensor


def added(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.softmax(q @ k.mT * 0.5 + m, -1) @ v


def plain(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.softmax(q @ k.mT, -1) @ v


def causal(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    future = lamina.triu(lamina.ones(q.shape[-2], k.shape[-2], dtype=lamina.bool), diagonal=1)
    return lamina.softmax((q @ k.mT).masked_fill(future, -lamina.inf), -1) @ v


def outcome(function: Callable[..., Tensor], arrays: list[np.ndarray], mask: Tensor) -> list[np.ndarray]:
    tensors = [lamina.tensor(a).requires_grad_() for a in arrays]
    out = function(*tensors, mask)
    out.square().sum().backward()
    return [out.detach().numpy(), *(t.grad.numpy() for t in tensors)]


def same(function: Callable[..., Tensor], arrays: list[np.ndarray], mask: Tensor) -> list[np.ndarray]:
    lamina.compiler.reset()
    eager, compiled = outcome(function, arrays, mask), outcome(lamina.compile(function), arrays, mask)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-3 * max(1.0, float(np.abs(a).max(initial=0))))
    return compiled


def operands(queries: int, keys: int, dtype: Any, factor: float = 1.0) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((2, queries, 8), (2, keys, 8), (2, keys, 5))
    q, k, v = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    return [q * dtype(factor), k, v]


@pytest.mark.parametrize("sizes", [(5, 5), (1, 3), (70, 130), (64, 64)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_masked_by_large_numbers_weigh_their_keys_alike(sizes: tuple[int, int], dtype: Any) -> None:
    mask = lamina.zeros(*sizes, dtype=lamina.float64 if dtype is np.float64 else lamina.float32)
    mask[::3] = -1e9
    mask[1::3] = float(np.finfo(dtype).min)
    mask[2::3, ::2] = -lamina.inf
    same(added, operands(*sizes, dtype), mask)


@pytest.mark.parametrize("function", [plain, causal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("factor", [70.0, 2e3, 3e5, 1e20])
def test_large_scores(function: Callable[..., Tensor], factor: float) -> None:
    """The backward's scores may round otherwise than the forward's: a weight is never more than 1."""
    size = 130
    for gradient in same(function, operands(size, size, np.float32, factor), lamina.zeros(1)):
        assert np.isfinite(gradient).all()


def fused(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m)


def fused_causal(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return lamina.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("function", [plain, added, fused, fused_causal], ids=lambda f: f.__name__)
def test_no_keys(function: Callable[..., Tensor]) -> None:
    out, *gradients = same(function, operands(3, 0, np.float32), lamina.zeros(3, 0))
    assert out.shape == (2, 3, 5) and not out.any()
    assert not gradients[0].any()
