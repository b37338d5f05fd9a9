"""Random programs with sorts among other work over rows and columns: ``drawn(seed)`` is a function and its inputs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lamina_prims import ops

__all__ = ["drawn"]

SHAPES = ((5, 20), (3, 4, 6), (7,), (6, 9), (2, 3, 5))


def drawn(seed: int) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Few numbers, so that many are equal; sums are exact or nearly so."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shape = draw.choice(SHAPES)
    inputs = tuple(np.round(numbers.standard_normal(shape) * 2, 1).astype(np.float32) for _ in range(2))
    steps = [[draw.random() for _ in range(5)] for _ in range(draw.randint(2, 8))]

    def run(*given: Any) -> Any:
        pool, places = list(given), []
        for which, what, dim, other, more in steps:
            x = pool[int(which * len(pool))]
            if len(x.shape):
                _step(x, what, int(dim * len(x.shape)), (other, more), pool, places)
        return (*pool[2:], *places) or (ops.add(*given),)

    return run, inputs


def _step(x: Any, what: float, dim: int, rest: tuple[float, float], pool: list[Any], places: list[Any]) -> None:
    size = int(x.shape[dim])
    if what < 0.35:
        down = rest[0] < 0.5
        found = ops.sort(x, dim, down) if what < 0.2 else ops.topk(x, 1 + int(rest[1] * size), dim, down)
        pool.append(found[0])
        places.append(found[1])
    elif what < 0.5:
        pool.append(ops.mul(ops.add(x, 0.5), 2.0))
    elif what < 0.6:
        pool.append(ops.softmax(x, dim))
    elif what < 0.7:
        pool.append(ops.sub(x, ops.amax(x, dim, True)))
    elif what < 0.78:
        pool.append(ops.sum(x, dim))
    elif what < 0.85:
        pool.append(ops.cumsum(x, dim))
    elif what < 0.9:
        same = [y for y in pool if y.shape == x.shape]
        pool.append(ops.add(x, same[int(rest[0] * len(same))]))
    elif what < 0.95 and len(x.shape) > 1:
        pool.append(ops.permute(x, tuple(reversed(range(len(x.shape))))))
    else:
        pool.append(ops.slice(x, dim, 0, max(1, size - 1)))
