"""Array constants of graphs, as bytes, so that files need no array library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DType, dtype_of
from ..expect import expect

__all__ = ["ArrayConstant", "array_constant"]


class ArrayConstant:
    """Dtype, shape and row-major little-endian bytes of an array. ``numpy.frombuffer(c.data)`` views it."""

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, dtype: DType, shape: Sequence[int], data: bytes) -> None:
        expect("ArrayConstant", dtype, DType, "a dtype, a shape and bytes")
        expect("ArrayConstant", data, (bytes, bytearray, memoryview), "a dtype, a shape and bytes")
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size != len(data):
            raise ValueError(f"{dtype}{list(shape)} has {size} bytes, got {len(data)}")
        self.dtype = dtype
        self.shape = tuple(shape)
        self.data = data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayConstant):
            return NotImplemented
        return (self.dtype, self.shape, self.data) == (other.dtype, other.shape, other.data)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape, self.data))

    def __repr__(self) -> str:
        return f"ArrayConstant({self.dtype}{list(self.shape)})"


def array_constant(value: Any) -> ArrayConstant | None:
    """The constant of an array of NumPy's kind (``dtype``, ``shape``, ``tobytes``); None for anything else."""
    if isinstance(value, ArrayConstant):
        return value
    if isinstance(value, type):  # NumPy's scalar types have all of these attributes, as descriptors
        return None
    if not (hasattr(value, "tobytes") and hasattr(value, "shape") and hasattr(value, "dtype")):
        if not hasattr(value, "numpy"):
            return None
        value = value.numpy()
    order = getattr(value.dtype, "byteorder", "=")
    if order == ">":
        value = value.astype(value.dtype.newbyteorder("<"))
    return ArrayConstant(dtype_of(str(value.dtype)), value.shape, value.tobytes())
