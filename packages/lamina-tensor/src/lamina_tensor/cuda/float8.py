"""float8 on a device, whose library has no such dtype: bytes to numbers by a table, numbers to bytes by bisection.

Non-negative floats of one format have the order of their codes, so that the code of a number is how many midpoints
between neighbours lie below it; on a midpoint the even code is taken.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lamina_fx import DType, float8_e5m2
from lamina_prims.arrays import numpy_dtype

__all__ = ["decode", "encode"]


@functools.cache
def _values(dtype: DType) -> np.ndarray[Any, Any]:
    """What the 256 codes stand for, as float32."""
    return np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype)).astype(np.float32)


@functools.cache
def _midpoints(dtype: DType) -> np.ndarray[Any, Any]:
    """Between each non-negative finite value and the next; above the last, where the next would be."""
    values = _values(dtype)[:128].astype(np.float64)
    finite = values[np.isfinite(values)]
    beyond = finite[-1] + (finite[-1] - finite[-2])
    return (finite + np.append(finite[1:], beyond)) / 2


def decode(xp: Any, codes: Any, dtype: DType) -> Any:
    """The numbers that bytes on the device stand for, as float32."""
    return xp.asarray(_values(dtype))[codes]


def encode(xp: Any, numbers: Any, dtype: DType) -> Any:
    """The bytes that stand for numbers on the device, rounded to the nearest, to even on a tie.

    What is too large becomes infinity (float8_e5m2) or the largest number (float8_e4m3fn, which has no infinity).
    """
    single = numbers if dtype is float8_e5m2 else numbers.astype(np.float32)  # as on the CPU
    wide = single.astype(np.float64)
    size, midpoints = xp.abs(wide), xp.asarray(_midpoints(dtype))
    code = xp.searchsorted(midpoints, size.reshape(-1), side="left").reshape(size.shape)
    last = int(_midpoints(dtype).size) - 1
    tie = size == midpoints[xp.minimum(code, last)]
    code = code + (tie & (code % 2 == 1)).astype(np.int64)
    nan = 0x7E if dtype is float8_e5m2 else 0x7F
    if dtype is not float8_e5m2:
        code = xp.minimum(code, last)
    code = xp.where(xp.isnan(wide), nan, code) + 128 * xp.signbit(wide).astype(np.int64)
    return xp.ascontiguousarray(code.astype(np.uint8)).reshape(numbers.shape)
