"""The lattice of element types, and the dtype in which tensors and Python scalars meet (PyTorch's rules).

Categories are bool < int < float < complex. A Python scalar, and a tensor without dimensions, takes part only
with its category when a tensor with dimensions has that category already.

>>> promote(int32, float16), promote(float16, bfloat16), promote(uint8, int8)
(lamina.float16, lamina.float32, lamina.int16)

Where PyTorch has no answer (uint16, uint32 and uint64 with other integers) the smallest type that holds both
is taken; float8 types meet nothing but themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lamina_fx import (
    DType,
    ScalarSpec,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_of,
    float16,
    float32,
    float64,
    int8,  # noqa: F401  (doctest)
    int32,  # noqa: F401  (doctest)
    int64,
    uint8,  # noqa: F401  (doctest)
)

from .arrays import array_dtype

__all__ = ["get_default_dtype", "promote", "real_dtype", "result_dtype", "scalar_dtype", "set_default_dtype"]

_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
_DEFAULT = [float32]


def get_default_dtype() -> DType:
    """What Python floats and floating functions of integers become (float32 unless changed)."""
    return _DEFAULT[0]


def set_default_dtype(dtype: DType) -> None:
    """Change the default floating dtype of the process.

    Raises:
        TypeError: not a floating-point dtype.
    """
    if not isinstance(dtype, DType) or dtype.kind != "float":
        raise TypeError(f"the default dtype must be floating-point, not {dtype}")
    _DEFAULT[0] = dtype


@cache
def promote(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, by category first, then by size.

    Raises:
        RuntimeError: a float8 type with another type, or uint64 with a signed integer: there is no common type.
    """
    if a is b:
        return a
    if _is_float8(a) or _is_float8(b):
        raise RuntimeError(f"no common type of {a} and {b}: convert one of them first")
    if _RANK[a.kind] > _RANK[b.kind]:
        a, b = b, a
    if a.kind != b.kind:
        if b.kind == "complex" and a is float64:
            return complex128
        return b
    if b.kind == "int":
        return _integers(a, b)
    if b.kind == "complex":
        return complex128
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.itemsize > b.itemsize else b


def _is_float8(dtype: DType) -> bool:
    return dtype.itemsize == 1 and dtype.kind == "float"


def _integers(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    unsigned, signed = (b, a) if a.is_signed else (a, b)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise RuntimeError(f"no common type of {unsigned} and {signed}: convert one of them first")
    return dtype_of(f"int{unsigned.itemsize * 16}")


def scalar_dtype(kind: type) -> DType:
    """The dtype of a Python scalar's type: bool, int64, the default dtype, or its complex type."""
    if kind is int:
        return int64
    if kind is float:
        return _DEFAULT[0]
    if kind is bool:
        return bool_
    if kind is complex:
        return complex128 if _DEFAULT[0] is float64 else complex64
    name = kind.__name__  # symbolic scalars behave as the type they stand for
    return bool_ if name == "SymBool" else _DEFAULT[0] if name == "SymFloat" else int64


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part: float32 for complex64, float64 for complex128, otherwise ``dtype`` itself."""
    if dtype.kind != "complex":
        return dtype
    return float32 if dtype is complex64 else float64


def result_dtype(*values: Any) -> DType:
    """The dtype in which these tensors (anything with ``dtype`` and ``shape``) and Python scalars meet.

    Raises:
        RuntimeError: two of them have no common type.
    """
    best: list[DType | None] = [None, None, None]  # tensors with dimensions, 0-d tensors, scalars
    for value in values:
        dtype = getattr(value, "dtype", None)
        if dtype is None:
            group = 2
            dtype = scalar_dtype(value.kind if type(value) is ScalarSpec else type(value))
        else:
            group = 0 if len(value.shape) else 1
            if type(dtype) is not DType:
                dtype = array_dtype(dtype)
        have = best[group]
        best[group] = dtype if have is None else promote(have, dtype)
    result = None
    for dtype in best:
        if dtype is None:
            continue
        if result is None:
            result = dtype
        elif _RANK[dtype.kind] > _RANK[result.kind]:
            result = _raise_category(result, dtype)
    assert result is not None
    return result


def _raise_category(result: DType, dtype: DType) -> DType:
    """A scalar or 0-d tensor of a higher category decides, except that a float keeps its size under a complex."""
    if dtype.kind == "complex" and result.kind == "float":
        return complex128 if result is float64 else complex64
    return dtype
