"""The lattice of element types: what two dtypes of equal standing meet in (PyTorch's rules).

>>> promote(int32, float16), promote(float16, bfloat16), promote(uint8, int8)
(lamina.float16, lamina.float32, lamina.int16)
"""

from __future__ import annotations

from functools import cache

from lamina_fx import (
    DType,
    bfloat16,
    complex128,
    dtype_of,
    float16,
    float32,
    float64,
    int8,  # noqa: F401  (doctest)
    int32,  # noqa: F401  (doctest)
    uint8,  # noqa: F401  (doctest)
)

__all__ = ["promote"]

_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}


@cache
def promote(a: DType, b: DType) -> DType:
    """The smallest dtype that holds both, by category first, then by size.

    Raises:
        TypeError: a float8 type with another float, or uint64 with a signed integer: there is no common type.
    """
    if a is b:
        return a
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
    if a.itemsize == 1 or b.itemsize == 1:
        raise TypeError(f"no common type of {a} and {b}; convert one of them first")
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.itemsize > b.itemsize else b


def _integers(a: DType, b: DType) -> DType:
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    unsigned, signed = (b, a) if a.is_signed else (a, b)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise TypeError(f"no common type of {unsigned} and {signed}; convert one of them first")
    return dtype_of(f"int{unsigned.itemsize * 16}")
