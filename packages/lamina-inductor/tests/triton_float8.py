"""float8 for the tests of the Triton backend: name -> (function over operators, inputs), as in ``triton_corpus``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from lamina_fx import DType, bool_, float8_e4m3fn, float8_e5m2, float16, float32, float64, int32
from lamina_prims import ops

__all__ = ["FLOAT8_CASES"]

_TYPES = {float8_e4m3fn: ml_dtypes.float8_e4m3fn, float8_e5m2: ml_dtypes.float8_e5m2}


def codes(dtype: DType) -> np.ndarray:
    """All 256 values."""
    return np.arange(256, dtype=np.uint8).view(_TYPES[dtype])


def numbers(dtype: DType) -> np.ndarray:
    """What rounds in every way: the values, what lies between them and beside that, what is too large or too small."""
    with np.errstate(all="ignore"):
        exact = codes(dtype).astype(np.float64)
        exact = np.unique(np.abs(exact[np.isfinite(exact)]))
        middle = (exact[1:] + exact[:-1]) / 2
        last = exact[-1] + (exact[-1] - exact[-2]) / 2
        beyond = np.array([last, last * 1.0001, last * 0.9999, 1e9, 3e38, np.inf, np.nan, 1e-9, 1e-40])
        random = np.random.default_rng(0)
        some = random.standard_normal(2000) * np.exp2(random.integers(-30, 30, 2000))
        found = np.concatenate([exact, middle, middle * 1.00001, middle * 0.99999, beyond, some]).astype(np.float32)
    return np.concatenate([found, -found])


def _cases(dtype: DType) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    to, other = (lambda x, t: ops.convert_element_type(x, t)), float8_e5m2 if dtype is float8_e4m3fn else float8_e4m3fn
    whole = np.arange(-600, 600, 7, dtype=np.int32)
    return {
        f"float32 to {dtype}": (lambda x: to(x, dtype), (numbers(dtype),)),
        f"{dtype} to float32": (lambda x: to(x, float32), (codes(dtype),)),
        f"{dtype} to float64 and int32": (lambda x: (to(x, float64), to(to(x, float16), float32)), (codes(dtype),)),
        f"{dtype} to {other}": (lambda x: to(x, other), (codes(dtype),)),
        f"float16 to {dtype}": (lambda x: to(x, dtype), (numbers(dtype).clip(-65504, 65504).astype(np.float16),)),
        f"int32 and bool to {dtype}": (lambda x: (to(x, dtype), to(ops.gt(x, 3), dtype)), (whole,)),
        f"{dtype} to bool and int32": (
            lambda x: (to(x, bool_), to(x, int32)), (numbers(dtype)[:40].astype(_TYPES[dtype]),),
        ),
        f"arithmetic of {dtype}": (
            lambda x, y: (
                to(ops.mul(to(x, float32), to(y, float32)), dtype), ops.flip(to(to(x, float32), dtype), (0,)),
            ),
            (codes(dtype)[:120], codes(dtype)[8:128][::-1].copy()),
        ),
        f"rows of {dtype}": (
            lambda x: (ops.softmax(to(x, float32), 1), to(ops.sum(to(x, float32), 1), dtype), ops.cat((x, x), 1)),
            (codes(dtype)[:120].reshape(5, 24),),
        ),
        f"padding and constants of {dtype}": (
            lambda x: (ops.pad(x, (0, 1), (2, 0), 1.5), ops.full_like(x, 449.0)), (codes(dtype)[:30].reshape(5, 6),),
        ),
    }  # fmt: skip


FLOAT8_CASES = {**_cases(float8_e4m3fn), **_cases(float8_e5m2)}
