"""Random functions of a few operators, for the property tests: every step draws an operator that fits some value
made so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_prims import ops

SIZES = (1, 2, 3, 5, 8, 17)
UNARY = ("exp", "tanh", "neg", "abs", "sin", "sqrt", "sigmoid", "relu")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
Step = tuple[str, Any]


def draw(rng: np.random.Generator, length: int) -> tuple[Callable[..., Any], list[np.ndarray], list[Step]]:
    """A function, arrays to call it on, and the steps it takes."""
    rank = int(rng.integers(1, 4))
    shape = tuple(int(rng.choice(SIZES)) for _ in range(rank))
    arrays = [_array(rng, shape) for _ in range(int(rng.integers(1, 4)))]
    shapes = [a.shape for a in arrays]
    steps: list[Step] = []
    for _ in range(length):
        step, result = _step(rng, shapes)
        steps.append(step)
        shapes.append(result)
    outputs = sorted({len(shapes) - 1, *rng.integers(len(arrays), len(shapes), 2).tolist()})

    def run(*inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for kind, detail in steps:
            values.append(APPLY[kind](values, detail))
        return tuple(values[o] for o in outputs)

    return run, arrays, steps


def _array(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = rng.uniform(0.1, 1.5, shape).astype(np.float32)
    if len(shape) > 1 and rng.random() < 0.2:
        return np.ascontiguousarray(values.T).T
    return values


def _step(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> tuple[Step, tuple[int, ...]]:
    at = int(rng.integers(len(shapes)))
    shape = shapes[at]
    kind = str(
        rng.choice(
            [
                "unary",
                "unary",
                "binary",
                "binary",
                "spread",
                "reduce",
                "reduce",
                "normal",
                "move",
                "cut",
                "pad",
                "cat",
                "flip",
            ]
        )
    )
    if kind == "binary":
        others = [k for k, s in enumerate(shapes) if s == shape]
        return (kind, (str(rng.choice(BINARY)), at, int(rng.choice(others)))), shape
    if kind == "reduce" and shape:
        axes = tuple(sorted(rng.choice(len(shape), int(rng.integers(1, len(shape) + 1)), replace=False).tolist()))
        name = str(rng.choice(["sum", "amax", "mean"]))
        return (kind, (name, at, axes)), tuple(n for d, n in enumerate(shape) if d not in axes)
    if kind == "normal" and shape:  # a reduction that is spread again: what norms are made of
        return (kind, (at, int(rng.integers(len(shape))))), shape
    if kind == "spread":
        size = int(rng.choice(SIZES))
        return (kind, (at, size)), (size, *shape)
    if kind == "move" and len(shape) > 1:
        order = tuple(rng.permutation(len(shape)).tolist())
        return (kind, (at, order, bool(rng.random() < 0.3))), _moved(shape, order, False)
    if kind == "cut" and shape and max(shape) > 2:
        dim = int(np.argmax(shape))
        return (kind, (at, dim)), tuple((n - 1 if d == dim else n) for d, n in enumerate(shape))
    if kind == "pad" and shape:
        return (kind, (at, len(shape))), tuple(n + (3 if d == 0 else 0) for d, n in enumerate(shape))
    if kind == "cat" and shape:
        return (kind, (at,)), (2 * shape[0], *shape[1:])
    if kind == "flip" and shape:
        return (kind, (at, len(shape) - 1)), shape
    return ("unary", (str(rng.choice(UNARY)), at)), shape


def _moved(shape: tuple[int, ...], order: tuple[int, ...], flat: bool) -> tuple[int, ...]:
    return tuple(shape[d] for d in order)


def _normal(x: Any, dim: int) -> Any:
    return ops.sub(x, ops.mean(x, dim, True))


def _call(name: str) -> Any:
    return getattr(ops, name)


APPLY: dict[str, Callable[[list[Any], Any], Any]] = {
    "unary": lambda v, d: (
        _call(d[0])(v[d[1]] if d[0] != "sqrt" else ops.abs(v[d[1]]))
        if d[0] != "exp"
        else ops.exp(ops.minimum(v[d[1]], 2.0))
    ),
    "binary": lambda v, d: _call(d[0])(v[d[1]], v[d[2]]),
    "reduce": lambda v, d: _call(d[0])(v[d[1]], d[2]),
    "normal": lambda v, d: _normal(v[d[0]], d[1]),
    "spread": lambda v, d: ops.add(
        ops.broadcast_in_dim(v[d[0]], (d[1], *v[d[0]].shape), tuple(range(1, len(v[d[0]].shape) + 1))), 0.5
    ),
    "move": lambda v, d: ops.permute(v[d[0]], d[1]),
    "cut": lambda v, d: ops.slice(v[d[0]], d[1], 1, v[d[0]].shape[d[1]]),
    "pad": lambda v, d: ops.pad(v[d[0]], (1,) + (0,) * (d[1] - 1), (2,) + (0,) * (d[1] - 1), 0.25),
    "cat": lambda v, d: ops.cat((v[d[0]], ops.mul(v[d[0]], 2.0)), 0),
    "flip": lambda v, d: ops.flip(v[d[0]], (d[1],)),
}
