"""In which dtype kernels compute."""

from __future__ import annotations

from lamina_fx import DType, bfloat16, float8_e4m3fn, float8_e5m2, float16, float32

__all__ = ["compute_dtype"]

_NARROW = frozenset((float16, bfloat16, float8_e4m3fn, float8_e5m2))


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which a kernel computes with values of ``dtype``: float32 for the narrow floats."""
    return float32 if dtype in _NARROW else dtype
