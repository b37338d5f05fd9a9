"""Sorts for the tests of the Triton backend: name -> (function over operators, inputs, kernels)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from triton_corpus import floats

from lamina_fx import Graph
from lamina_inductor.backends.triton import TritonBackend, TritonProgram
from lamina_inductor.backends.triton.templates import sort, topk
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_prims import operator, ops

__all__ = ["LONG_SORTS", "LONG_TOPK", "SORT_CASES", "SYMBOLIC_ROWS", "TOPK_CASES", "emit_long"]

RNG = np.random.default_rng(11)
BF16 = ml_dtypes.bfloat16


def special(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Few numbers, so that many are equal, and all that are none."""
    x = np.round(RNG.standard_normal(shape) * 2).astype(dtype)
    flat = x.reshape(-1)
    for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0):
        flat[RNG.integers(0, flat.size, 1 + flat.size // 12)] = value
    return x


def whole(dtype: Any) -> np.ndarray:
    """The least and the greatest numbers, some between them, and many that are equal."""
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, (3, 20), dtype=dtype, endpoint=True)
    x[0, :6], x[1, 3:9], x[2] = info.max, info.min, x[2] % 3
    return x


def down(x: Any, dim: int = 1) -> Any:
    return ops.sort(x, dim, True)


def up(x: Any, dim: int = 1) -> Any:
    return ops.sort(x, dim)


def signs(x: Any) -> Any:
    """Sorted both ways, with the signs of zeros."""
    (a, at), (b, bt) = up(x), down(x)
    return a, at, b, bt, *(ops.signbit(ops.where(ops.isnan(v), 1.0, v)) for v in (a, b))


def top_p(x: Any) -> Any:
    values, places = ops.sort(ops.softmax(x, -1), -1, True)
    kept = ops.le(ops.sub(ops.cumsum(values, -1), values), 0.7)
    return ops.where(kept, values, 0.0), places


def ranked(x: Any, y: Any) -> Any:
    """A sort between reductions and other work over its rows."""
    values, places = ops.sort(ops.sub(x, ops.mean(x, 1, True)), 1)
    return ops.sum(ops.mul(values, y), 1), ops.add(values, ops.amax(x, 1, True)), ops.mul(places, 2)


SORT_CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    **{f"sorted rows of {n}": (signs, (special(5, n),), 1) for n in (2, 3, 31, 33, 64, 130)},
    **{f"sorted rows of {n}, one": (up, (special(1, n),), 1) for n in (600, 1024)},
    "sorted float16": (signs, (special(4, 37, dtype=np.float16),), 1),
    "sorted bfloat16": (signs, (special(4, 37, dtype=BF16),), 1),
    "sorted float64": (signs, (special(4, 37, dtype=np.float64),), 1),
    **{
        f"sorted {t.__name__}": (lambda x: (*up(x), *down(x)), (whole(t),), 1)
        for t in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
    },
    "sorted booleans": (lambda x: (*up(x), *down(x)), (RNG.random((3, 20)) < 0.5,), 1),
    "sorted columns": (lambda x: down(x, 0), (special(37, 9),), 1),
    "sorted columns of short words": (lambda x: up(x, 0), (special(37, 9, dtype=BF16),), 1),
    "sorted middle dimension": (up, (special(3, 20, 7),), 1),
    "one sorted row": (lambda x: down(x, 0), (special(50),), 1),
    "sorted equal numbers": (lambda x: (*up(x), *down(x)), (np.zeros((3, 70), np.float32),), 1),
    "sorted transposed rows": (lambda x: up(ops.permute(x, (1, 0))), (special(21, 6),), 1),
    "places in order": (lambda x: ops.argsort(ops.mul(x, 3.0), 1), (special(4, 40, dtype=BF16),), 1),
    "sorted rounded numbers": (
        lambda x: down(ops.softmax(x, -1)), (floats(4, 40, dtype=BF16) / 8,), 1,
    ),
    "top p": (top_p, (floats(6, 40),), 1),
    "sort of a running sum": (lambda x: up(ops.cumsum(x, 1)), (np.round(floats(5, 300) * 4),), 1),
    "sort of sums of rows": (
        lambda x, y: up(ops.add(ops.mul(x, 0.0), ops.sum(y, 1, True))), (floats(5, 300), floats(5, 300)), 1,
    ),
    "sort among sums": (ranked, (floats(7, 40), floats(40)), 1),
    "medians": (lambda x: operator("median.dim")(x, 1), (special(4, 41),), 3),
    "modes": (lambda x: ops.mode(x, 1), (np.round(floats(4, 41)),), 4),
    "no rows": (up, (floats(0, 5),), 0),
    "rows of nothing": (up, (floats(5, 0),), 0),
    "rows of one": (up, (floats(5, 1),), 2),
    "2048 short words, one row": (signs, (special(1, 2048, dtype=BF16),), 1),
    "4096 short words, one row": (down, (special(1, 4096, dtype=np.float16),), 1),
}  # fmt: skip


def router(x: Any) -> Any:
    weights, experts = ops.topk(ops.softmax(x, -1), 3)
    return ops.div(weights, ops.sum(weights, -1, True)), experts


def beside(x: Any) -> Any:
    """The first part of sorted rows is read by what stands in other loops, among others."""
    values, _ = ops.topk(x, 3, 1)
    return (
        ops.add(values, 1.0),
        ops.add(x, 2.0),
        ops.sum(values, 1),
        ops.reshape(values, (3, -1)),
        ops.cumsum(values, 1),
    )


TOPK_CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "largest": (lambda x: ops.topk(x, 3, 1), (special(5, 20),), 1),
    "smallest of columns": (lambda x: ops.topk(x, 4, 0, False), (special(37, 6),), 1),
    "all of a row": (lambda x: ops.topk(x, 20, 1), (special(5, 20),), 1),
    "one of a row": (lambda x: ops.topk(x, 1, -1), (special(5, 20, dtype=BF16),), 1),
    "more than half": (lambda x: ops.topk(x, 13, 1), (special(5, 20),), 1),
    "of whole numbers": (lambda x: ops.topk(x, 5), (whole(np.int64),), 1),
    "of one row, and more": (lambda x: ops.exp(ops.topk(x, 4)[0]), (floats(33),), 2),
    "router": (router, (floats(9, 64),), 2),
    "first part beside others": (beside, (floats(5, 20),), 4),
    "none": (lambda x: ops.topk(x, 0, 1), (floats(5, 20),), 0),
    "of a scalar": (lambda x: ops.topk(x, 1), (floats(),), 2),
    "of rows of one": (lambda x: ops.topk(x, 1, 1), (floats(5, 1),), 2),
}  # fmt: skip
"""The same with ``topk`` kept."""


def largest(k: int, dim: int = -1, most: bool = True) -> Any:
    return lambda x: ops.topk(x, k, dim, most)


def together(size: int) -> np.ndarray:
    """The largest numbers are all of a group, and more than are collected."""
    group = np.arange(size) // 4 % topk.GROUPS
    return np.where(group == 5, 2.0, RNG.random(size))[None].astype(np.float32)


def few_numbers(*shape: int) -> np.ndarray:
    """Rows of NaN but for their first element."""
    x = np.full(shape, np.nan, np.float32)
    x[:, 0] = -1.0
    return x


LONG_TOPK: dict[str, tuple[Any, tuple[Any, ...], int, int]] = {
    "one part": (largest(7), (special(2, 5000),), 1, 1),
    "parts": (largest(50), (special(2, 20000),), 8, 2),
    "short words": (largest(50), (special(2, 5000, dtype=BF16),), 1, 1),
    "short words in parts": (largest(50), (floats(1, 40000, dtype=BF16),), 1, 2),
    "smallest": (largest(9, most=False), (special(2, 5000),), 1, 1),
    "of columns": (largest(9, 0), (special(5000, 3),), 1, 1),
    "of a middle dimension": (largest(20, 1), (floats(2, 4500, 2),), 1, 1),
    "equal numbers": (largest(64), (np.zeros((2, 9000), np.float32),), 2, 2),
    "equal bytes": (largest(9), (np.zeros((2, 9000), np.uint8),), 1, 1),
    "one": (largest(1), (floats(1, 5000),), 1, 1),
    "many": (largest(256), (floats(1, 8192),), 1, 1),
    "whole numbers": (largest(20), (RNG.integers(-99, 99, (2, 4500)).astype(np.int32),), 1, 1),
    "unsigned": (largest(20), (RNG.integers(0, 255, (2, 4500)).astype(np.uint32) << 24,), 1, 1),
    "bytes": (largest(20), (RNG.integers(0, 255, (2, 4500)).astype(np.uint8),), 1, 1),
    "values alone": (lambda x: ops.topk(x, 5)[0], (special(2, 5000),), 1, 1),
    "places alone, in parts": (lambda x: ops.topk(x, 5)[1], (special(2, 17000),), 4, 2),
    "smallest of no numbers": (largest(1, most=False), (np.full((2, 5001), np.nan, np.float32),), 1, 1),
    "smallest of few numbers, in parts": (largest(3, most=False), (few_numbers(2, 17001),), 4, 2),
    "too many in a group": (largest(2), (together(270 * topk.GROUPS),), 0, 1),
}  # fmt: skip
"""Rows that no tile holds: function, inputs, multiprocessors, launches."""

LONG_SORTS: dict[str, tuple[Any, tuple[Any, ...], int, int]] = {
    "sorted in runs": (up, (special(1, 5000),), 1024, 4),
    "sorted in long runs": (up, (special(2, 9000),), 4096, 3),
    "two whole runs": (down, (special(1, 8192),), 4096, 2),
    "short words in runs": (down, (special(2, 5000, dtype=BF16),), 4096, 2),
    "too long for short words": (up, (special(1, 33000, dtype=BF16),), 4096, 5),
    "long columns": (lambda x: up(x, 0), (special(5000, 3),), 4096, 2),
    "places of long rows": (lambda x: ops.argsort(x, 1, True), (special(2, 5001),), 2048, 3),
    "long rows of whole numbers": (up, (RNG.integers(-9, 9, (2, 6000)).astype(np.int32),), 4096, 2),
}  # fmt: skip
"""Whole sorts of such rows: function, inputs, elements of a run, launches."""

SYMBOLIC_ROWS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "an unknown number of short rows": (up, (special(3, 40),)),
    "an unknown number of long rows": (down, (special(3, 5000),)),
    "the largest of an unknown number of rows": (largest(7), (special(3, 9000),)),
    "experts of an unknown number of rows": (router, (floats(3, 64),)),
    "an unknown number of columns": (lambda x: up(x, 0), (special(37, 3),)),
}
"""Sorts where 3 is a symbolic size."""


def emit_long(name: str, graph: Graph) -> TritonProgram:
    """The program of a case of ``LONG_TOPK`` or ``LONG_SORTS``."""
    if name in LONG_SORTS:
        before, sort.RUN = sort.RUN, LONG_SORTS[name][2]
        try:
            return TritonBackend().emit(graph)
        finally:
            sort.RUN = before
    units = LONG_TOPK[name][2]
    return TritonBackend(TemplatePlanner(multiprocessors=units)).emit(graph)
