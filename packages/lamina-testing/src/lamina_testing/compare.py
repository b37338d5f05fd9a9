"""Comparing results: nested tuples of arrays, NaN equal to NaN, tolerances by dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec
from lamina_prims.arrays import array_dtype

__all__ = ["assert_layout", "assert_same", "flat_results", "tolerance"]

_RELATIVE = {
    "float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10,
    "float8_e4m3fn": 0.13, "float8_e5m2": 0.26,
}  # fmt: skip


def tolerance(dtype: Any) -> float:
    """How far two right results in this dtype may lie apart, relative to the larger of 1 and their size."""
    return _RELATIVE.get(array_dtype(dtype).name, 0.0)


def flat_results(value: Any) -> list[Any]:
    """The arrays in nested tuples and lists, in order."""
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in flat_results(part)]
    return [] if value is None else [np.asarray(value)]


def assert_layout(strides: Any, spec: TensorSpec, name: str = "result") -> None:
    """Strides (None: unknown) are those of ``spec``, apart from dimensions of size 1 and tensors without elements.

    Raises:
        AssertionError: names the place and both.
    """
    if strides is None or 0 in spec.shape:
        return
    pairs = zip(spec.shape, strides, spec.strides, strict=True)
    assert all(n == 1 or have == want for n, have, want in pairs), f"{name}: strides {tuple(strides)} instead of {spec}"


def assert_same(result: Any, expected: Any, name: str = "result", factor: float = 1.0) -> None:
    """Equal structure, shapes, dtypes and, within ``factor`` times the tolerance, values.

    Raises:
        AssertionError: names the place and the largest difference.
    """
    if isinstance(expected, (list, tuple)):
        assert isinstance(result, (list, tuple)) and len(result) == len(expected), f"{name}: another number of results"
        for k, (a, b) in enumerate(zip(result, expected, strict=True)):
            assert_same(a, b, f"{name}[{k}]", factor)
        return
    if expected is None or not hasattr(expected, "dtype"):
        assert result == expected, f"{name}: {result!r} instead of {expected!r}"
        return
    assert result.shape == expected.shape, f"{name}: shape {result.shape} instead of {expected.shape}"
    assert result.dtype == expected.dtype, f"{name}: dtype {result.dtype} instead of {expected.dtype}"
    limit = tolerance(expected.dtype) * factor
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    if limit == 0.0:
        np.testing.assert_array_equal(result, expected, err_msg=name)
    else:
        np.testing.assert_allclose(result.astype(wide), expected.astype(wide), rtol=limit, atol=limit, err_msg=name)
