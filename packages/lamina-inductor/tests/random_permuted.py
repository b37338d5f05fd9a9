"""Random functions whose operands lie in memory in different orders: ``drawn(seed)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from lamina_prims import ops

__all__ = ["drawn"]

SIZES = (1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 65)
DTYPES = (np.float32, np.float32, np.float64, ml_dtypes.bfloat16, np.float16)
ELEMENTS = 1 << 15
BINARY = ("add", "mul", "sub", "maximum")


def drawn(seed: int) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function of pointwise operators, at times with a reduction behind them, and its inputs."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    shape = [int(rng.choice(SIZES)) for _ in range(rank)]
    while np.prod(shape) > ELEMENTS:
        shape[int(np.argmax(shape))] = 3
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    operands = [_operand(rng, tuple(shape), dtype) for _ in range(int(rng.integers(1, 4)))]
    kinds = rng.choice(BINARY, len(operands))
    ending, axis = (
        str(rng.choice(["none", "none", "turned", "turned", "both", "merged", "sum", "softmax"])),
        int(rng.integers(rank)),
    )
    order = tuple(rng.permutation(rank).tolist())

    def run(*inputs: Any) -> Any:
        value: Any = None
        for array, (_, view), kind in zip(inputs, operands, kinds, strict=True):
            item = view(array)
            value = item if value is None else getattr(ops, kind)(value, item)
        value = ops.mul(value, 0.5)
        if ending == "turned":
            return ops.contiguous(ops.permute(value, order))
        if ending == "both":
            return value, ops.contiguous(ops.permute(value, order))
        if ending == "merged":
            return ops.mul(ops.reshape(ops.permute(value, order), (-1, shape[order[-1]])), 2.0)
        if ending == "sum":
            return ops.sum(value, axis)
        return ops.contiguous(ops.softmax(value, axis)) if ending == "softmax" else ops.contiguous(value)

    return run, [array for array, _ in operands]


def _operand(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, Callable[[Any], Any]]:
    """An array, and what makes a tensor of this shape of it: another order, pieces, backwards, spread, moved."""
    rank = len(shape)
    order = tuple(rng.permutation(rank).tolist())
    wanted = [shape[d] for d in np.argsort(order)]  # of the array: permuted by ``order`` it has the shape
    spread = [bool(rng.random() < 0.12) for _ in range(rank)]
    step = [int(rng.choice([1, 1, 1, 1, 2])) for _ in range(rank)]
    margin = [int(rng.choice([0, 0, 0, 1, 4])) for _ in range(rank)]
    back = tuple(d for d in range(rank) if rng.random() < 0.15)
    sizes = [1 if s else n * k + m for n, s, k, m in zip(wanted, spread, step, margin, strict=True)]
    array = rng.uniform(0.2, 1.5, sizes).astype(dtype)
    if rng.random() < 0.3:
        laid = rng.permutation(rank)
        array = np.ascontiguousarray(array.transpose(laid)).transpose(np.argsort(laid))
    axes = tuple(range(rank))

    def view(x: Any) -> Any:
        for d in axes:
            if not spread[d] and (step[d] > 1 or margin[d]):
                x = ops.slice(x, d, margin[d], margin[d] + wanted[d] * step[d], step[d])
        x = ops.flip(x, back) if back else x
        if any(spread):
            x = ops.broadcast_in_dim(x, tuple(wanted), axes)
        return ops.permute(x, order)

    return array, view
