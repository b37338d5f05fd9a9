"""Half precision in composites: compute in float32, round once at the end."""

from __future__ import annotations

from typing import Any

from lamina_fx import bfloat16, float16, float32

from .arrays import element_type
from .registry import ops

__all__ = ["narrow", "widen"]


def widen(value: Any) -> Any:
    """A float16 or bfloat16 tensor as float32; anything else (numbers, None, other dtypes) as it is."""
    if value is not None and hasattr(value, "dtype") and element_type(value) in (float16, bfloat16):
        return ops.convert_element_type(value, float32)
    return value


def narrow(value: Any, like: Any) -> Any:
    """``value`` in the dtype of ``like``, when that is a floating type."""
    dtype = element_type(like)
    if dtype.kind == "float" and element_type(value) is not dtype:
        return ops.convert_element_type(value, dtype)
    return value
