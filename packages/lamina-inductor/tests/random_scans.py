"""Random programs with scans among pointwise work, reductions over the same and other axes, flips and transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_prims import ops

__all__ = ["drawn"]

SIZES = (1, 2, 3, 7, 16, 33)
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
KINDS = ("scan", "scan", "scan", "point", "pair", "flip", "row", "softmax", "turn")


def drawn(seed: int) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function and arrays to call it on. Values stay of the size of 1."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(rng.choice(SIZES)) for _ in range(int(rng.integers(1, 4))))
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(int(rng.integers(1, 3)))]
    rank = len(shape)
    steps = [
        (str(rng.choice(KINDS)), int(rng.integers(100)), int(rng.integers(100)), int(rng.integers(rank)),
         str(rng.choice(SCANS)))
        for _ in range(int(rng.integers(2, 9)))
    ]  # fmt: skip
    outputs = sorted({len(arrays) + len(steps) - 1, int(rng.integers(len(arrays), len(arrays) + len(steps)))})

    def run(*inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for kind, a, b, dim, scan in steps:
            values.append(_STEPS[kind](values[a % len(values)], values[b % len(values)], dim, scan))
        return tuple([values[o] for o in outputs])

    return run, arrays


def _scan(x: Any, y: Any, dim: int, scan: str) -> Any:
    if scan == "cumsum":
        return ops.div(ops.cumsum(x, dim), float(x.shape[dim]))
    if scan == "cumprod":
        return ops.cumprod(ops.cos(x), dim)
    if scan == "logcumsumexp":
        return ops.mul(ops.logcumsumexp(x, dim), 0.125)
    best, place = getattr(ops, scan)(x, dim)
    return ops.add(best, ops.mul(ops.div(place, float(x.shape[dim])), 0.5))


def _pair(x: Any, y: Any, dim: int, scan: str) -> Any:
    if x.shape != y.shape:
        y = ops.sum(y)
    return ops.tanh(ops.sub(x, ops.mul(y, 0.5)))


def _row(x: Any, y: Any, dim: int, scan: str) -> Any:
    return ops.sub(x, ops.amax(x, dim, keepdim=True) if scan < "cummin" else ops.mean(x, dim, keepdim=True))


def _turn(x: Any, y: Any, dim: int, scan: str) -> Any:
    rank = len(x.shape)
    return ops.permute(x, tuple([(k + dim) % rank for k in range(rank)]))


_STEPS: dict[str, Any] = {
    "scan": _scan,
    "point": lambda x, y, dim, scan: ops.sin(ops.mul(x, 1.5)),
    "pair": _pair,
    "flip": lambda x, y, dim, scan: ops.flip(x, (dim,)),
    "row": _row,
    "softmax": lambda x, y, dim, scan: ops.softmax(x, dim),
    "turn": _turn,
}
