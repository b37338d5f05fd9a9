"""Element types and constants as C++ text.

>>> from lamina_fx.dtype import float32, int64
>>> memory_type(float32), literal(2, float32), literal(-(2**63), int64), literal(float("-inf"), float32)
('f32', '2.0f', '(-9223372036854775807L - 1)', '-LM_INF')
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import DType

__all__ = ["HALVES", "literal", "memory_type", "value_type"]

_MEMORY: dict[str, str] = {
    "bool": "u8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}  # fmt: skip

HALVES: frozenset[str] = frozenset(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
"""Types without arithmetic of their own: their operations are done in float and rounded."""

_SUFFIX = {"int64": "L", "uint64": "UL", "uint32": "U"}


def memory_type(dtype: DType) -> str:
    """The type of an element in a buffer. Booleans are bytes."""
    return _MEMORY[dtype.name]


def value_type(dtype: DType) -> str:
    """The type of a value in a register."""
    return "bool" if dtype.kind == "bool" else _MEMORY[dtype.name]


def literal(value: Any, dtype: DType) -> str:
    """A Python number as a constant of ``dtype``."""
    kind = dtype.kind
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int":
        return _integer(int(value), dtype)
    if kind == "complex":
        value = complex(value)
        suffix = "f" if dtype.itemsize == 8 else ""
        return f"{memory_type(dtype)}{{{_real(value.real, suffix)}, {_real(value.imag, suffix)}}}"
    if isinstance(value, complex):
        value = value.real
    if dtype.name in HALVES:
        return f"lm_to_{memory_type(dtype)}({_real(float(value), 'f')})"
    return _real(float(value), "f" if dtype.name == "float32" else "")


def _real(value: float, suffix: str) -> str:
    if math.isnan(value):
        return "LM_NAN" if suffix else "(f64)LM_NAN"
    if math.isinf(value) or (suffix and abs(value) >= 3.4028235677973366e38):
        text = "LM_INF" if suffix else "(f64)LM_INF"
        return text if value > 0 else f"-{text}"
    return repr(value) + suffix


def _integer(value: int, dtype: DType) -> str:
    suffix = _SUFFIX.get(dtype.name, "")
    bits = dtype.itemsize * 8
    value &= (1 << bits) - 1
    if dtype.is_signed and value >= 1 << (bits - 1):
        value -= 1 << bits
    if dtype.is_signed and bits >= 32 and value == -(1 << (bits - 1)):
        return f"(-{-value - 1}{suffix} - 1)"
    if bits < 32:  # C++ has no suffix for these, and an int operand would not fit the templates of the preamble
        return f"({_MEMORY[dtype.name]}){value}"
    return f"{value}{suffix}"
