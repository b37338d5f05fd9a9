"""Graphs with scans for the tests of the Triton backend: name -> (function, inputs, launches).

``SCAN_CASES`` are small: Triton's interpreter runs them, also in steps and in blocks (``small_steps``). ``LONG_SCANS``
have rows that no tile holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np

from lamina_fx import TensorSpec, int64
from lamina_fx.dtype import dtype_of
from lamina_fx.proxy import Proxy
from lamina_inductor.backends.triton import scan_tiles
from lamina_inductor.schedule import grid_nest, staged_nest
from lamina_prims import ops

__all__ = ["LONG_SCANS", "MODES", "SCAN_CASES", "small_steps"]

_RANDOM = np.random.default_rng(11)
SPECIAL = np.array([1, -np.inf, np.nan, 2, np.inf, np.inf, -np.inf, 0, -0.0, 3], np.float32)


def _floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(dtype)


def _near_one(*shape: int) -> np.ndarray:
    return (1 + _RANDOM.standard_normal(shape) / 64).astype(np.float32)


def _integers(*shape: int, dtype: Any = np.int64) -> np.ndarray:
    return _RANDOM.integers(0, 3, shape).astype(dtype)


def _special(*shape: int) -> np.ndarray:
    """Rows that begin at other places of the special values each."""
    return np.stack([np.resize(np.roll(SPECIAL, k), shape[1]) for k in range(shape[0])])


def _all(x: Any, dim: int) -> Any:
    return (ops.cumsum(x, dim), ops.cumprod(x, dim), *ops.cummax(x, dim), *ops.cummin(x, dim))


def _all_of_floats(x: Any, dim: int) -> Any:
    return (*_all(x, dim), ops.logcumsumexp(x, dim))


def _extrema(x: Any, dim: int) -> Any:
    return (*ops.cummax(x, dim), *ops.cummin(x, dim))


def _logs(x: Any, dim: int) -> Any:
    return ops.logcumsumexp(x, dim), ops.mul(ops.logcumsumexp(ops.neg(x), dim), 0.5)


def _shares(x: Any, dim: int) -> Any:
    """What each prefix has of the whole, and where half is reached."""
    running = ops.cumsum(ops.abs(x), dim)
    total = ops.sum(ops.abs(x), dim, keepdim=True)
    share = ops.div(running, total)
    return share, ops.sum(ops.convert_element_type(ops.lt(share, 0.5), int64), dim)


def _backwards(x: Any, dim: int) -> Any:
    return ops.sin(ops.flip(ops.cumsum(ops.flip(ops.exp(x), (dim,)), dim), (dim,)))


def _nucleus(x: Any) -> Any:
    """The probabilities whose sum, with those before, stays below nine tenths."""
    p = ops.softmax(x, -1)
    return ops.where(ops.lt(ops.cumsum(p, -1), 0.9), p, 0.0)


def _twice(x: Any, dim: int) -> Any:
    return ops.cumsum(ops.exp(ops.neg(ops.cumsum(ops.abs(x), dim))), dim)


def _normalised(x: Any) -> Any:
    return ops.softmax(ops.mul(ops.cumsum(x, 1), 0.25), 1)


def _at(x: Any, i: Any) -> Any:
    """Where the place in a row is the row's number in ``i``."""
    places: Any = np.arange(x.shape[1])
    if isinstance(x, Proxy):
        places = x.builder.proxy(
            x.node.graph.call_function("iota", (50,), {"dtype": int64}, spec=TensorSpec((50,), int64))
        )
    return ops.eq(ops.unsqueeze(places, 0), ops.unsqueeze(i, 1))


SCAN_CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "scans of rows": (lambda x: _all_of_floats(x, 1), (_near_one(5, 60),), 1),
    "scans of columns": (lambda x: _all_of_floats(x, 0), (_near_one(50, 5),), 1),
    "scans between": (lambda x: ops.cumsum(x, 1), (_floats(3, 20, 7),), 1),
    "scans of special values": (lambda x: _all_of_floats(x, 1), (_special(10, 43),), 1),
    "scans of special values in columns": (
        lambda x: _all_of_floats(x, 0), (np.ascontiguousarray(_special(10, 43).T),), 1,
    ),
    "scans of zeros with signs": (
        lambda x: (ops.signbit(ops.cumprod(x, 1)), ops.signbit(ops.cumsum(x, 1))),
        (np.where(_RANDOM.random((4, 40)) < 0.5, -0.0, 0.0).astype(np.float32),), 1,
    ),
    "scans of bfloat16": (lambda x: _logs(x, 1), (_floats(3, 50, dtype=ml_dtypes.bfloat16),), 1),
    "scans of float16": (lambda x: ops.cumsum(x, 0), (_floats(20, 40, dtype=np.float16),), 1),
    "scans of float64": (lambda x: _all_of_floats(x, 1), (_near_one(4, 43).astype(np.float64),), 1),
    **{
        f"scans of {kind}": (lambda x: _all(x, 1), (_integers(3, 41, dtype=kind),), 1)
        for kind in ("bool", "int8", "uint8", "int16", "int32", "int64", "uint32")
    },
    **{
        f"scans that stay {kind}": (
            lambda x, k=kind: (ops.cumsum(x, 1, dtype=dtype_of(k)), ops.cumprod(x, 1, dtype=dtype_of(k))),
            (_integers(3, 41, dtype=kind) + np.array(5, kind),), 1,
        )
        for kind in ("int8", "uint8", "int16", "int32", "uint32")
    },
    "scans of negative integers": (lambda x: _extrema(x, 1), (_integers(3, 40) - np.int64(2**40),), 1),
    "short scans": (lambda x: _shares(x, 1), (_floats(600, 6),), 1),
    "softmax and sums so far": (_nucleus, (_floats(6, 50),), 1),
    "softmax of sums so far": (_normalised, (_floats(4, 70),), 1),
    "scans beside sums": (lambda x: _shares(x, 0), (_floats(50, 40),), 1),
    "scans of scans": (lambda x: _twice(x, 1), (_floats(3, 60),), 1),
    "scans from the end": (lambda x: _backwards(x, 1), (_floats(3, 60) / 8,), 1),
    "scans of columns from the end": (lambda x: _backwards(x, 0), (_floats(60, 6) / 64,), 1),
    "scans of views": (
        lambda x: ops.reshape(ops.cumsum(ops.permute(ops.exp(x), (1, 0)), 0), (16, 32)), (_floats(8, 64) / 8,), 1,
    ),
    "scans beside scans": (lambda x: (ops.exp(ops.mul(ops.cumsum(x, 1), 0.1)), ops.amax(x, 1)), (_floats(3, 50),), 1),
    "scans of numbers": (lambda x: ops.add(x, ops.cumsum(ops.full((3, 50), 0.5), 1)), (_floats(3, 50),), 1),
    "scans of one element": (
        lambda x, i: ops.cumsum(ops.where(_at(x, i), ops.sum(x, 1, keepdim=True), 0.0), 1),
        (_floats(3, 50), np.array([3, 40, 49])), 1,
    ),
    "one element of a scan": (
        lambda x, i: ops.sum(ops.where(_at(x, i), ops.cumsum(x, 1), 0.0), 1),
        (_floats(3, 50), np.array([3, 40, 49])), 1,
    ),
    "trapezoids": (lambda x: ops.cumulative_trapezoid(x, dim=1), (_floats(3, 50),), 1),
}  # fmt: skip


LONG_SCANS: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "scans of special values in long rows": (
        lambda x: (*_extrema(x, 1), ops.logcumsumexp(x, 1)), (np.pad(_special(140, 9), ((0, 0), (8200, 0))),), 1,
    ),
    "softmax and sums so far in long rows": (_nucleus, (_floats(140, 33001),), 1),
    "softmax of sums so far in long rows": (_normalised, (_floats(133, 32800) / 64,), 1),
    "long scans": (lambda x: ops.cumsum(ops.sin(x), 1), (_floats(140, 8300) / 64,), 1),
    "long products": (lambda x: ops.mul(ops.cumprod(x, 1), -1.0), (_near_one(140, 8300),), 1),
    "long scans of bool": (lambda x: ops.cummax(x, 1), (_floats(140, 8300) > 2.0,), 1),
    "one long scan": (lambda x: ops.cumsum(ops.mul(x, 0.5), 0), (_floats(40001) / 64,), 3),
    "long scans in blocks": (lambda x: (ops.cummax(x, 1)[0], ops.cumsum(x, 1)), (_floats(3, 33001) / 64,), 3),
    "long scans of integers in blocks": (lambda x: ops.cumsum(x, 0), (_integers(33001, dtype=np.int32),), 3),
    "long scans of logarithms in blocks": (lambda x: ops.logcumsumexp(x, 1), (_special(3, 33000),), 3),
    "places in blocks": (lambda x: ops.cummin(x, 1), (_special(3, 33000),), 5),
    "softmax and sums so far in blocks": (_nucleus, (_floats(2, 33001),), 5),
    "sum of a long scan": (lambda x: ops.sum(ops.cumsum(x, 0), 0), (_floats(33001) / 256,), 4),
    "long columns so far": (lambda x: ops.cumsum(x, 0), (_floats(2100, 40) / 64,), 3),
    "long columns from the end": (
        lambda x: ops.exp(ops.mul(ops.flip(ops.cumsum(ops.flip(x, (0,)), 0), (0,)), 0.1)), (_floats(2100, 40) / 64,), 3,
    ),
    "everything less its mean and a number of each row": (
        lambda x, m: ops.tanh(ops.sub(t := ops.sub(x, m), ops.mean(t))), (_floats(16, 8192), _floats(16, 1)), 3,
    ),
}  # fmt: skip


MODES = ("in tiles", "in steps", "in blocks")


@contextmanager
def small_steps(mode: str) -> Iterator[None]:
    """Make tiles and blocks so small that rows of some tens of elements take several."""
    steps = (
        {"WHOLE_ROW": 4, "LONGER": 4, "STEP": 16, "LONG_STEP": 16, "WIDTH": 4, "COLUMN_AREA": 32}
        if mode != "in tiles"
        else {}
    )
    blocks = {"BLOCK": 8, "FEWEST_SCANNED": 8, "COLUMN_BLOCK": 8, "WHOLE_ROW": 16} if mode == "in blocks" else {}
    columns = {"MOST_ROWS": 8, "FEWEST_ROWS": 4} if mode == "in blocks" else {}
    with ExitStack() as patches:
        for module, values in ((scan_tiles, steps), (grid_nest, blocks), (staged_nest, columns)):
            for name, value in values.items():
                patches.enter_context(patch.object(module, name, value))
        yield
