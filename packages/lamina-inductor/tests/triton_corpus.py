"""Graphs for the tests of the Triton backend.

``CASES``: name -> (function over operators, inputs, kernels). ``OPERATORS``: primitives whose samples are run.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from tracing import spec_of

from lamina_fx import Graph, GraphBuilder, bfloat16, float16, float32, int32
from lamina_prims import decompose, operators, ops

__all__ = ["CASES", "OPERATORS", "graph_of"]

RNG = np.random.default_rng(7)
STATE = np.array([-5, 2**40 + 3], np.int64)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def with_nan(*shape: int) -> np.ndarray:
    x = floats(*shape)
    x[1, 2] = np.nan
    x[2] = -np.inf
    return x


def rotary(x: Any, w: Any, cos: Any, sin: Any) -> Any:
    y = ops.rms_norm(x, (x.shape[-1],), w)
    half = x.shape[-1] // 2
    turned = ops.cat((ops.neg(ops.slice(y, 1, half, 2 * half)), ops.slice(y, 1, 0, half)), 1)
    return ops.add(ops.mul(y, cos), ops.mul(turned, sin))


def standardise(x: Any, axis: int = 0) -> Any:
    return ops.div(ops.sub(x, ops.mean(x, axis, True)), ops.std(x, axis, keepdim=True))


def statistics(x: Any) -> Any:
    mean, variance = ops.mean(x, 0), ops.var(x, 0)
    return mean, variance, ops.mul(ops.sub(x, mean), ops.rsqrt(variance)), ops.exp(ops.mul(x, 0.5))


def batch_norm_gradients(x: Any, ct: Any, w: Any) -> Any:
    mean = ops.mean(x, 0)
    inverse = ops.rsqrt(ops.add(ops.var(x, 0, correction=0), 1e-5))
    normal = ops.mul(ops.sub(x, mean), inverse)
    gw, gb = ops.sum(ops.mul(ct, normal), 0), ops.sum(ct, 0)
    inside = ops.sub(ct, ops.div(ops.add(ops.mul(normal, gw), gb), float(x.shape[0])))
    return ops.mul(inside, ops.mul(w, inverse)), gw, gb


def adamw(*tensors: Any) -> Any:
    results = []
    for p, g, m, v in zip(*[iter(tensors)] * 4, strict=True):
        m2 = ops.add(ops.mul(m, 0.9), ops.mul(g, 0.1))
        v2 = ops.add(ops.mul(v, 0.999), ops.mul(ops.mul(g, g), 0.001))
        step = ops.div(m2, ops.add(ops.sqrt(v2), 1e-8))
        results += [ops.sub(ops.mul(p, 0.99), ops.mul(step, 0.001)), m2, v2]
    return tuple(results)


def layer_norm_backward(x: Any, w: Any, ct: Any) -> Any:
    mean = ops.mean(x, 1, True)
    scaled = ops.mul(ct, w)
    gx = ops.sub(scaled, ops.mean(ops.mul(scaled, ops.sub(x, mean)), 1, True))
    return gx, ops.sum(ops.mul(ct, ops.sub(x, mean)), 0), ops.sum(ct, 0)


def integers(x: Any, y: Any) -> Any:
    return (
        ops.floor_divide(x, y), ops.remainder(x, y), ops.fmod(x, y), ops.bitwise_xor(x, ops.bitwise_not(y)),
        ops.bitwise_left_shift(x, 3), ops.bitwise_right_shift(x, 40), ops.maximum(x, y), ops.neg(x), ops.sign(x),
    )  # fmt: skip


def comparisons(x: Any, y: Any) -> Any:
    near = ops.logical_and(ops.lt(x, y), ops.logical_not(ops.isnan(x)))
    return near, ops.where(near, x, 0.5), ops.ge(x, 0.25), ops.convert_element_type(ops.mul(y, 10.0), int32)


def beside(dtype: Any) -> tuple[np.ndarray, ...]:
    """A third of a half type's numbers, where to go from each, and the number there."""
    x = np.arange(0, 1 << 16, 3, dtype=np.uint16).view(dtype)
    y = np.resize(np.array([np.inf, 0.0, -np.inf, 1.0, -1e-7], np.float32).astype(dtype), x.shape)
    with np.errstate(invalid="ignore"):
        return x, y, np.nextafter(x, y)


def beside_single() -> tuple[np.ndarray, ...]:
    """The same of float32: zeros, subnormal numbers, the ends, and what lies between."""
    info = np.finfo(np.float32)
    edges = np.array([0, info.smallest_subnormal, 1e-40, info.tiny, 1, info.max, np.inf, np.nan], np.float32)
    between = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    x = np.concatenate([edges, -edges, between, between * np.float32(1e-42)])
    x, y = (a.reshape(-1) for a in np.broadcast_arrays(x[:, None], np.array([np.inf, 0.0, -1.0], np.float32)))
    with np.errstate(all="ignore"):
        return x, y, np.nextafter(x, y)


def neighbours(x: Any, y: Any, wanted: Any) -> Any:
    found = ops.nextafter(x, y)
    return ops.eq(found, wanted), ops.isnan(found), ops.signbit(ops.where(ops.isnan(found), 0.0, found))


def extrema(x: Any) -> Any:
    return ops.amax(x, 1), ops.amin(x, 1), ops.argmax(x, 1), ops.argmin(x, 1)


def places(x: Any) -> Any:
    return ops.argmax(x), ops.argmin(x), ops.amax(x)


def totals(x: Any) -> Any:
    return ops.sum(x), ops.amax(x), ops.div(ops.sum(ops.mul(x, x)), 3.0)


def elementary(x: Any) -> Any:
    a = ops.abs(x)
    return (
        ops.exp(x), ops.log(a), ops.sin(x), ops.cos(x), ops.tanh(x), ops.sigmoid(x), ops.erf(x), ops.sqrt(a),
        ops.rsqrt(ops.add(a, 1.0)), ops.pow(a, 1.7), ops.pow(x, 3.0), ops.floor(x), ops.round(x), ops.trunc(x),
        ops.neg(x), ops.sign(x), ops.log1p(a), ops.expm1(x), ops.remainder(x, 0.3), ops.maximum(x, ops.neg(x)),
    )  # fmt: skip


CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "pointwise chain": (
        lambda x, y: ops.tanh(ops.add(ops.mul(x, 2.0), ops.exp(y))), (floats(37, 41), floats(37, 41)), 1,
    ),
    "broadcast": (lambda x, b: ops.relu(ops.add(x, b)), (floats(9, 50), floats(50)), 1),
    "transposed": (lambda x, y: ops.add(ops.permute(ops.exp(x), (1, 0)), y), (floats(6, 80), floats(80, 6)), 1),
    "memory of a transposed value": (
        lambda x: ops.as_strided(ops.mul(ops.permute(x, (1, 0)), 2.0), (40, 3), (9, 50), 7), (floats(6, 80),), 1,
    ),
    "softmax": (lambda x: ops.softmax(x, -1), (floats(10, 100),), 1),
    "softmax of bfloat16": (lambda x: ops.softmax(x, -1), (floats(4, 64, dtype=ml_dtypes.bfloat16),), 1),
    "softmax of long rows": (lambda x: ops.softmax(x, -1), (floats(2, 33001),), 3),
    "softmax over rows": (lambda x: ops.softmax(x, 0), (floats(300, 6),), 1),
    "layer norm and gelu": (
        lambda x, w, b: ops.gelu(ops.layer_norm(x, (72,), w, b)), (floats(6, 72), floats(72), floats(72)), 1,
    ),
    "layer norm backward": (layer_norm_backward, (floats(20, 24), floats(24), floats(20, 24)), 3),
    "rms norm and rotary": (rotary, (floats(5, 64), floats(64), floats(5, 64), floats(5, 64)), 1),
    "cross entropy": (lambda x, t: ops.cross_entropy(x, t), (floats(6, 80), RNG.integers(0, 80, 6)), 3),
    "cross entropy of rows": (
        lambda x, t: ops.cross_entropy(x, t, reduction="none"), (floats(6, 80), RNG.integers(0, 80, 6)), 1,
    ),
    "column standardise": (standardise, (floats(33, 70),), 1),
    "columns of many rows": (lambda x: ops.sum(x, 0), (floats(9000, 5),), 2),
    "adamw": (adamw, tuple(np.abs(floats(n)) for n in (33, 64, 1000) for _ in range(4)), 1),
    "odd full sums": (totals, (floats(101, 203),), 2),
    "small full sums": (totals, (floats(7, 13),), 1),
    "extrema": (extrema, (with_nan(5, 33),), 1),
    "places in everything": (places, (with_nan(101, 203),), 2),
    "places of equal numbers": (places, (np.round(floats(17001)),), 2),
    "places in integers": (places, (RNG.integers(-9, 9, (3, 7000)).astype(np.int16),), 2),
    "places in booleans": (places, (RNG.random(30000) < 1e-3,), 2),
    "places of computed numbers": (lambda x: ops.argmax(ops.mul(x, x), 1), (floats(3, 20011, dtype=np.float16),), 2),
    "places in few columns": (lambda x: (ops.argmin(x, 0), ops.sum(x, 0)), (with_nan(9000, 5),), 2),
    "extrema of long rows": (extrema, (np.pad(with_nan(3, 20), ((0, 0), (0, 2101))),), 1),
    "booleans": (lambda x: (ops.any(ops.gt(x, 2.5), 1), ops.all(ops.lt(x, 2.5), 1)), (floats(9, 50),), 1),
    "integer sums": (
        lambda x: (ops.sum(x, 1), ops.prod(x, 1), ops.amax(x, 1)), (RNG.integers(-3, 4, (7, 21)).astype(np.int32),), 1,
    ),
    "integers": (
        integers, (RNG.integers(-90, 90, 200), RNG.integers(1, 9, 200) * RNG.choice((-1, 1), 200)), 1,
    ),
    "small integers": (
        lambda x, y: (ops.add(x, y), ops.mul(x, y)), tuple(RNG.integers(0, 255, (2, 99)).astype(np.uint8)), 1,
    ),
    "comparisons": (comparisons, (np.array([1.5, np.nan, -2.0, -0.0, 0.25], np.float32), floats(5)), 1),
    "elementary": (elementary, (floats(60),), 1),
    "doubles": (lambda x: (ops.div(x, 0.1), ops.sum(ops.sqrt(ops.abs(x)), 1)), (floats(5, 20, dtype=np.float64),), 1),
    "half to bfloat16": (
        lambda x: ops.convert_element_type(ops.mul(ops.convert_element_type(x, float32), 1.1), bfloat16),
        (floats(70, dtype=np.float16),), 1,
    ),
    "neighbours in half": (neighbours, beside(np.float16), 1),
    "neighbours": (neighbours, beside_single(), 1),
    "neighbours in bfloat16": (neighbours, beside(ml_dtypes.bfloat16), 1),
    "half sums": (lambda x: (ops.sum(x, 1), ops.add(x, x)), (floats(6, 40, dtype=np.float16),), 1),
    "dropout": (lambda s, x: ops.dropout_with_state(x, 0.3, s), (STATE, floats(11, 29)), 1),
    "random words": (lambda s: ops.philox(s, (101,)), (np.array([2**62 + 5, -2], np.int64),), 1),
    "embedding": (lambda w, i: ops.mul(ops.embedding(i, w), 2.0), (floats(10, 8), RNG.integers(0, 10, (3, 4))), 1),
    "gather": (lambda x, i: ops.gather(x, 1, i), (floats(6, 9), RNG.integers(0, 9, (6, 4))), 1),
    "gather with wrapping": (lambda x, i: ops.index(x, (i,)), (floats(6, 9), np.array([-1, 0, 5, -6])), 1),
    "samples of images": (
        lambda x, g: (ops.grid_sample(x, g, "bilinear", "reflection", True), ops.grid_sample(x, g, "nearest")),
        (floats(2, 20, 7, 9), RNG.uniform(-1.2, 1.2, (2, 8, 6, 2)).astype(np.float32)), 2,
    ),
    "cubic samples of many channels": (
        lambda x, g: ops.grid_sample(x, g, "bicubic", "border"),
        (floats(1, 40, 9, 11), RNG.uniform(-1.2, 1.2, (1, 16, 12, 2)).astype(np.float32)), 1,
    ),
    "scatters of a chain": (
        lambda x, i, u, v, w: ops.index_put(
            ops.index_put(ops.mul(x, 2.0), (i,), ops.mul(u, w), True), (ops.clamp(i, 1, 4),), ops.neg(v), True
        ),
        (floats(6, 40), RNG.integers(0, 6, 70), floats(70, 40), floats(70, 40), floats(70, 1)), 2,
    ),
    "scatter": (
        lambda x, i, u: ops.index_put(x, (i,), u, True), (floats(6, 9), np.array([1, 0, 1]), floats(3, 9)), 2,
    ),
    "concatenation": (lambda x, y: ops.cat((ops.mul(x, 2.0), ops.add(y, 1.0)), 1), (floats(4, 5), floats(4, 7)), 1),
    "padding": (lambda x: ops.exp(ops.pad(x, (0, 1), (0, 2), 0.5)), (floats(4, 5),), 1),
    "negative zeros": (
        lambda x, y: (ops.signbit(ops.mul(x, -0.0)), ops.signbit(ops.where(ops.gt(y, 0), -0.0, y))),
        (np.abs(floats(5)), floats(5, dtype=np.float64)), 2,
    ),
    "returned input": (lambda x: (x, ops.exp(x)), (floats(40),), 2),
    "half": (lambda x: ops.add(ops.convert_element_type(x, float16), 1.0), (floats(5),), 1),
    "column standardise of many rows": (standardise, (floats(310, 40) + 1.0,), 1),
    "column standardise in whole steps": (standardise, (floats(640, 32),), 1),
    "cross entropy of many classes": (
        lambda x, t: ops.cross_entropy(x, t, reduction="none"), (floats(3, 40000), RNG.integers(0, 40000, 3)), 2,
    ),
    "softmax of minus infinity in long rows": (
        lambda x: ops.softmax(x, -1), (np.where(np.arange(33001) % 2049, -np.inf, floats(2, 33001)),), 3,
    ),
    "adamw of many": (
        adamw, tuple(np.abs(floats(n)) for n in (33, 64, 1000, 4096, 64, 32, 7, 33) for _ in range(4)), 2,
    ),
    "layer norm backward in chunks": (layer_norm_backward, (floats(1100, 40), floats(40), floats(1100, 40) / 32), 2),
    "long columns of bfloat16": (standardise, (floats(2100, 70, dtype=ml_dtypes.bfloat16),), 3),
    "long columns and what they come to": (statistics, (floats(2048, 33),), 3),
    "batch norm of many rows": (batch_norm_gradients, (floats(4100, 20), floats(4100, 20) / 1024, floats(20)), 5),
    "one long row": (lambda x: ops.softmax(x, -1), (floats(1, 40001, dtype=np.float16),), 3),
    "long rows standardised twice": (lambda x: standardise(standardise(x, 1), 1), (floats(5, 40000),), 5),
    "softmax over many rows": (lambda x: ops.softmax(x, 0), (floats(2050, 17),), 3),
    "masked softmax of long rows": (
        lambda x: ops.softmax(ops.where(ops.gt(x, 1.0), x, float("-inf")), -1), (floats(2, 36000),), 3,
    ),
    "gelu of bfloat16": (
        lambda x: (ops.gelu(x), ops.tanh(x), ops.div(ops.sigmoid(x), 3.0)),
        (floats(7, 90, dtype=ml_dtypes.bfloat16),), 1,
    ),
}  # fmt: skip


OPERATORS: list[str] = sorted(
    id
    for id, op in operators().items()
    if op.is_primitive and op.samples is not None and not op.tags & {"nondeterministic", "dynamic"} and id != "copy_to"
)


def graph_of(fn: Any, inputs: tuple[Any, ...]) -> Graph:
    """The graph of ``fn`` over arrays like these, in strict primitives."""
    graph = Graph()
    builder = GraphBuilder(graph)
    values = [builder.proxy(graph.placeholder(f"x{k}", spec=spec_of(a))) for k, a in enumerate(inputs)]
    result = fn(*values)
    graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
    return decompose(graph, level="prims")
