"""Element types and constants as Triton text. Of the float8 types kernels see the bytes (``elementwise.convert``).

>>> from lamina_fx.dtype import bfloat16, float32, float64, int64
>>> language_type(bfloat16), pointer_type(int64), literal(2, float32), literal(float("-inf"), float32)
('tl.bfloat16', '*i64', '2.0', 'float("-inf")')
>>> literal(0.1, float64), typed_literal(1, float32)
('tl.full([], 0.1, tl.float64)', 'tl.full([], 1.0, tl.float32)')
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina_fx import DType
from lamina_prims.arrays import converted, numpy_dtype

__all__ = ["has_type", "language_type", "literal", "pointer_type", "typed_literal"]

_TYPES: dict[str, tuple[str, str]] = {
    "bool": ("tl.int1", "i1"), "uint8": ("tl.uint8", "u8"), "uint16": ("tl.uint16", "u16"),
    "uint32": ("tl.uint32", "u32"), "uint64": ("tl.uint64", "u64"), "int8": ("tl.int8", "i8"),
    "int16": ("tl.int16", "i16"), "int32": ("tl.int32", "i32"), "int64": ("tl.int64", "i64"),
    "float16": ("tl.float16", "fp16"), "bfloat16": ("tl.bfloat16", "bf16"), "float32": ("tl.float32", "fp32"),
    "float64": ("tl.float64", "fp64"), "float8_e4m3fn": ("tl.uint8", "u8"), "float8_e5m2": ("tl.uint8", "u8"),
}  # fmt: skip


def has_type(dtype: DType) -> bool:
    """Whether Triton has the type: all but the complex ones."""
    return dtype.name in _TYPES


def language_type(dtype: DType) -> str:
    """The type of values, as the language spells it.

    Raises:
        NotImplementedError: Triton has no such type (complex numbers).
    """
    if not has_type(dtype):
        raise NotImplementedError(f"Triton has no values of dtype {dtype}; keep them out of compiled GPU code")
    return _TYPES[dtype.name][0]


def pointer_type(dtype: DType) -> str:
    """The type of a pointer parameter, as signatures spell it."""
    language_type(dtype)
    return "*" + _TYPES[dtype.name][1]


def literal(value: Any, dtype: DType) -> str:
    """A Python number as a constant where the other operand has ``dtype``.

    Triton gives a plain number the type of the other operand; one of float64 carries its type, because it would
    become a float32 first. The negative zero does, too: Triton takes it for the other one.
    """
    if dtype.name == "float64" or _is_negative_zero(value, dtype):
        return typed_literal(value, dtype)
    return _plain(value, dtype)


def typed_literal(value: Any, dtype: DType) -> str:
    """A Python number as a value of ``dtype``, whatever stands beside it."""
    if _is_negative_zero(value, dtype):
        if dtype.itemsize == 8:
            return f"tl.full([], {-1 << 63}, tl.int64).to(tl.float64, bitcast=True)"
        return f"tl.full([], -1e-60, {language_type(dtype)})"  # rounds to it
    return f"tl.full([], {_plain(value, dtype)}, {language_type(dtype)})"


def _is_negative_zero(value: Any, dtype: DType) -> bool:
    return dtype.kind == "float" and dtype.itemsize > 1 and float(value) == 0 and math.copysign(1, float(value)) < 0


def _plain(value: Any, dtype: DType) -> str:
    if dtype.kind == "bool":
        return "True" if value else "False"
    if dtype.kind == "int":
        return _integer(int(value), dtype)
    value = float(value)
    if dtype.itemsize == 1:
        return str(int(converted(np.array(value), numpy_dtype(dtype)).view(np.uint8)))
    if math.isnan(value) or math.isinf(value):
        return f'float("{value}")'
    text = repr(value)
    return f"({text})" if text[0] == "-" else text


def _integer(value: int, dtype: DType) -> str:
    bits = dtype.itemsize * 8
    value &= (1 << bits) - 1
    if dtype.is_signed and value >= 1 << (bits - 1):
        value -= 1 << bits
    return f"({value})" if value < 0 else str(value)
