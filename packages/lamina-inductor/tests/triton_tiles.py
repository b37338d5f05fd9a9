"""Transposed accesses for the tests of the Triton backend: name -> (function over operators, inputs), as in
``triton_corpus``. Kernels of ``TILE_CASES`` have tiles of several axes, those of ``ROW_CASES`` are reductions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from triton_corpus import layer_norm_backward, standardise

from lamina_fx import bool_
from lamina_prims import ops

__all__ = ["ROW_CASES", "TILE_CASES"]

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(11)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def whole(*shape: int, dtype: Any) -> np.ndarray:
    return RNG.integers(0, 100, shape).astype(dtype)


def laid_out(array: np.ndarray, *order: int) -> np.ndarray:
    """The same elements, with these dimensions from the longest step in memory to the shortest."""
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def turned(*order: int) -> Any:
    """The sum of a tensor of permuted dimensions and another one."""
    return lambda x, y: ops.add(ops.permute(x, order), y)


def padded(x: Any, y: Any) -> Any:
    return ops.add(ops.pad(ops.permute(x, (1, 0)), (1, 2), (3, 0), 0.5), y)


def joined(x: Any, y: Any, z: Any) -> Any:
    return ops.add(ops.cat((ops.permute(x, (1, 0)), ops.exp(y)), 1), z)


def chosen(x: Any, y: Any, i: Any) -> Any:
    return ops.add(ops.index(ops.permute(x, (1, 0)), (None, i)), y)


def both_ways(x: Any, y: Any) -> Any:
    value = ops.exp(ops.mul(x, y))
    return value, ops.mul(ops.contiguous(ops.permute(value, (1, 0))), 2.0)


def dropped(state: Any, x: Any, y: Any) -> Any:
    return ops.dropout_with_state(ops.add(ops.permute(x, (1, 0)), y), 0.25, state)


def sums(x: Any, y: Any, z: Any) -> Any:
    return ops.mul(ops.permute(x, (1, 2, 0)), ops.add(ops.permute(y, (2, 0, 1)), z))


def laid(x: Any, y: Any) -> Any:
    return ops.gelu(ops.add(x, y))


TILE_CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "matrix": (turned(1, 0), (floats(128, 64), floats(64, 128))),
    **{f"matrix of {n} and {m}": (turned(1, 0), (floats(n, m), floats(m, n))) for n, m in ((31, 127), (129, 33))},
    "matrix of some rows": (turned(1, 0), (floats(20, 1000), floats(1000, 20))),
    "matrix of few columns": (turned(1, 0), (floats(1000, 3), floats(3, 1000))),
    "matrix of bfloat16": (
        lambda x, y: ops.gelu(ops.add(ops.permute(x, (1, 0)), y)),
        (floats(96, 160, dtype=BF16), floats(160, 96, dtype=BF16)),
    ),
    "matrix of whole bfloat16": (turned(1, 0), (floats(64, 128, dtype=BF16), floats(128, 64, dtype=BF16))),
    "chains on both sides": (
        lambda x, y: ops.mul(ops.exp(ops.permute(x, (1, 0))), ops.add(ops.tanh(y), y)),
        (floats(64, 64), floats(64, 64)),
    ),
    "a transposed operand first": (
        lambda x, y: ops.sub(y, ops.exp(ops.permute(x, (1, 0)))), (floats(64, 64), floats(64, 64)),
    ),
    "two transposed operands": (
        lambda x, y, z: ops.add(ops.mul(ops.permute(x, (1, 0)), z), ops.exp(ops.permute(y, (1, 0)))),
        tuple([floats(64, 64) for _ in range(3)]),
    ),
    "matrix of doubles": (turned(1, 0), (floats(65, 40, dtype=np.float64), floats(40, 65, dtype=np.float64))),
    "matrix of bytes": (turned(1, 0), (whole(130, 70, dtype=np.int8), whole(70, 130, dtype=np.int8))),
    "matrix of booleans": (
        lambda x, y: ops.logical_and(ops.permute(x, (1, 0)), y), tuple(RNG.random((2, 40, 40)) < 0.5),
    ),
    "matrix of several types": (
        lambda x, y, z: ops.where(ops.permute(x, (1, 0)), ops.convert_element_type(y, bool_), ops.gt(z, 0.25)),
        (RNG.random((50, 64)) < 0.5, whole(64, 50, dtype=np.int64), floats(64, 50, dtype=np.float16)),
    ),
    "images to channels last": (turned(0, 2, 3, 1), (floats(3, 50, 7, 9), floats(3, 7, 9, 50))),
    "images of odd channels": (turned(0, 2, 3, 1), (floats(2, 37, 5, 11), floats(2, 5, 11, 37))),
    "images to channels first": (turned(0, 3, 1, 2), (floats(2, 19, 23, 3), floats(2, 3, 19, 23))),
    "images of two formats": (laid, (floats(2, 24, 6, 9), laid_out(floats(2, 24, 6, 9), 0, 2, 3, 1))),
    "reversed dimensions": (turned(2, 1, 0), (floats(30, 7, 45), floats(45, 7, 30))),
    "short rows and columns": (turned(2, 1, 0), (floats(4, 300, 5), floats(5, 300, 4))),
    "a reshape of a transposed value": (
        lambda x, y: ops.add(ops.reshape(ops.permute(x, (1, 0)), (-1,)), y), (floats(64, 80), floats(5120)),
    ),
    "images to rows of channels": (
        lambda x, y: ops.add(ops.reshape(ops.permute(x, (0, 2, 3, 1)), (-1, 40)), y),
        (floats(3, 40, 6, 7), floats(126, 40)),
    ),
    "rows of channels to images": (
        lambda x, y: ops.add(ops.permute(ops.reshape(x, (3, 42, 40)), (0, 2, 1)), y),
        (floats(126, 40), floats(3, 40, 42)),
    ),
    "channels in groups": (
        lambda x, y: ops.add(ops.reshape(ops.permute(ops.reshape(x, (2, 4, 10, 48)), (0, 3, 2, 1)), (96, 40)), y),
        (floats(2, 40, 48), floats(96, 40)),
    ),
    "three ways": (sums, (floats(9, 20, 17), floats(17, 9, 20), floats(20, 17, 9))),
    "axes that are apart": (turned(3, 1, 2, 0), (floats(20, 3, 4, 33), floats(33, 3, 4, 20))),
    "a bias of rows": (
        lambda x, b: ops.relu(ops.add(ops.contiguous(ops.permute(x, (1, 0))), b)),
        (floats(70, 40), floats(70)),
    ),
    "a transposed operand of each image": (
        lambda x, b: ops.add(x, ops.permute(b, (1, 0))), (floats(4, 40, 50), floats(50, 40)),
    ),
    "rows backwards": (
        lambda x, y: ops.add(ops.permute(ops.flip(x, (0, 1)), (1, 0)), y), (floats(64, 50), floats(50, 64)),
    ),
    "columns backwards": (
        lambda x, y: ops.add(ops.permute(ops.flip(x, (1,)), (1, 0)), y), (floats(64, 128), floats(128, 64)),
    ),
    "padding of a transposed value": (padded, (floats(40, 60), floats(64, 42))),
    "concatenation with a transposed value": (joined, (floats(40, 60), floats(60, 30), floats(60, 70))),
    "columns of a transposed table": (chosen, (floats(50, 20), floats(20, 64), RNG.integers(-50, 50, 64))),
    "results of two formats": (both_ways, (floats(50, 66), floats(50, 66))),
    "dropout of a transposed value": (dropped, (np.array([3, 8], np.int64), floats(50, 40), floats(40, 50))),
    "an expanded operand": (
        lambda x, y: ops.add(ops.broadcast_in_dim(ops.permute(x, (1, 0)), (2, 50, 40), (1, 2)), y),
        (floats(40, 50), floats(2, 50, 40)),
    ),
    "four of one kind": (
        lambda *t: tuple([ops.add(ops.permute(x, (1, 0)), y) for x, y in zip(t[::2], t[1::2], strict=True)]),
        tuple([a for _ in range(5) for a in (floats(60, 40), floats(40, 60))]),
    ),
}  # fmt: skip


def softmax_of_sum(x: Any, y: Any) -> Any:
    return ops.softmax(ops.add(x, ops.permute(y, (1, 0))), -1)


def norm_of_turned(x: Any, w: Any, b: Any) -> Any:
    return ops.layer_norm(ops.permute(x, (0, 2, 1)), (x.shape[1],), w, b)


ROW_CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "softmax of a transposed operand": (softmax_of_sum, (floats(64, 300), floats(300, 64))),
    "softmax of a transposed operand in bfloat16": (
        softmax_of_sum, (floats(64, 272, dtype=BF16), floats(272, 64, dtype=BF16)),
    ),
    "softmax of long rows of a transposed operand": (softmax_of_sum, (floats(40, 9000), floats(9000, 40))),
    "norm of transposed rows": (norm_of_turned, (floats(3, 200, 50), floats(200), floats(200))),
    "norm of transposed rows in bfloat16": (
        norm_of_turned, (floats(2, 264, 40, dtype=BF16), floats(264, dtype=BF16), floats(264, dtype=BF16)),
    ),
    "norm stored transposed": (
        lambda x, y: ops.add(ops.permute(ops.layer_norm(x, (x.shape[-1],)), (1, 0)), y),
        (floats(70, 320), floats(320, 70)),
    ),
    "norm's gradients of transposed rows": (
        lambda x, w, ct: layer_norm_backward(x, w, ops.permute(ct, (1, 0))),
        (floats(1100, 72), floats(72), floats(72, 1100) / 32),
    ),
    "norm's gradients of few transposed rows": (
        lambda x, w, ct: layer_norm_backward(x, w, ops.permute(ct, (1, 0))),
        (floats(37, 200), floats(200), floats(200, 37)),
    ),
    "softmax of few long rows of a transposed operand": (softmax_of_sum, (floats(5, 40000), floats(40000, 5))),
    "few long rows standardised beside a transposed operand": (
        lambda x, y: ops.mul(standardise(x, 1), ops.permute(y, (1, 0))),
        (floats(3, 33000), floats(33000, 3)),
    ),
    "softmax with an operand of distances": (
        lambda x, y: ops.softmax(ops.add(x, ops.as_strided(y, (300, 200), (1, 1), 0)), -1),
        (floats(300, 200), floats(499)),
    ),
    "sums over transposed rows": (lambda x: ops.sum(ops.permute(x, (0, 2, 1)), -1), (floats(4, 70, 50),)),
    "sums of two formats": (
        lambda x, y: ops.sum(ops.mul(x, ops.permute(y, (1, 0))), -1), (floats(64, 500), floats(500, 64)),
    ),
    "sum of everything of two formats": (
        lambda x, y: (ops.sum(ops.mul(x, ops.permute(y, (1, 0)))), ops.amax(x)),
        (np.abs(floats(600, 300)), np.abs(floats(300, 600))),
    ),
    "place of the largest of everything of two formats": (
        lambda x, y: ops.argmax(ops.add(x, ops.permute(y, (1, 0)))), (floats(70, 300), floats(300, 70)),
    ),
    "places of the largest of two formats": (
        lambda x, y: ops.argmax(ops.add(x, ops.permute(y, (1, 0))), -1), (floats(33, 140), floats(140, 33)),
    ),
}  # fmt: skip
