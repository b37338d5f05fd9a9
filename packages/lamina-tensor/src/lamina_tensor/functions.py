"""Functions of the root namespace that are no operators: answers in Python values, facts about dtypes, constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from lamina_fx import DType
from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype
from lamina_prims.elementwise import result_dtype
from lamina_prims.promotion import get_default_dtype, promote

from ._C import TensorBase
from .autograd.grad_mode import no_grad

__all__ = [
    "allclose",
    "can_cast",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "e",
    "equal",
    "finfo",
    "iinfo",
    "inf",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_same_size",
    "is_storage",
    "is_tensor",
    "nan",
    "newaxis",
    "numel",
    "pi",
    "preserve_format",
    "promote_types",
    "result_type",
    "set_float32_matmul_precision",
    "strided",
]

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
newaxis = None


def is_tensor(obj: Any) -> bool:
    """True for a tensor."""
    return isinstance(obj, TensorBase)


def is_storage(obj: Any) -> bool:
    """True for a storage."""
    from .storage import StorageBase

    return isinstance(obj, StorageBase)


def is_floating_point(input: Any) -> bool:
    """Is the dtype a real floating-point type."""
    return input.dtype.is_floating_point


def is_complex(input: Any) -> bool:
    """Is the dtype complex."""
    return input.dtype.is_complex


def is_inference(input: Any) -> bool:
    """Was the tensor made in inference mode."""
    return input.is_inference()


def is_nonzero(input: Any) -> bool:
    """The truth of a tensor with one element. RuntimeError: several elements."""
    return bool(input)


def is_same_size(input: Any, other: Any) -> bool:
    """Have both the same shape."""
    return len(input._sizes) == len(other._sizes) and input._sizes == other._sizes


def numel(input: Any) -> Any:
    """Number of elements."""
    return input.numel()


def equal(input: Any, other: Any) -> bool:
    """Have both the same shape and elements.

    Raises:
        TypeError: an argument is no tensor.
    """
    for value in (input, other):
        if not isinstance(value, TensorBase):
            raise TypeError(f"equal(): expected a Tensor, got {type(value).__name__}")
    if not is_same_size(input, other):
        return False
    with no_grad():
        return bool(operator("all")(operator("eq")(input, other)))


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Is ``|input - other| <= atol + rtol * |other|`` everywhere."""
    with no_grad():
        return bool(operator("all")(operator("isclose")(input, other, rtol, atol, equal_nan)))


def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype in which both meet."""
    return promote(type1, type2)


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an elementwise operation on both (tensors or numbers)."""
    return result_dtype(tensor1, tensor2)


def can_cast(from_: DType, to: DType) -> bool:
    """May a result of the first dtype be written into a tensor of the second."""
    ranks = ("bool", "int", "float", "complex")
    if from_.kind == "int" and to.kind == "int":
        return to.is_signed or not from_.is_signed
    return ranks.index(from_.kind) <= ranks.index(to.kind)


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str


@dataclass(frozen=True, slots=True)
class IntInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: str


def finfo(type: DType | None = None) -> FloatInfo:
    """Limits of a floating-point (or complex) dtype; the default dtype's without an argument.

    Raises:
        TypeError: an integer dtype.
    """
    dtype = type or get_default_dtype()
    if dtype.kind not in ("float", "complex"):
        raise TypeError(f"finfo() requires a floating point input type. Use iinfo to handle '{dtype!r}'")
    info: Any = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny = float(info.smallest_normal)
    return FloatInfo(
        info.bits, float(info.eps), float(info.max), float(info.min), tiny, tiny, float(info.resolution), str(dtype)
    )


def iinfo(type: DType) -> IntInfo:
    """Limits of an integer dtype.

    Raises:
        TypeError: no integer dtype.
    """
    if type.kind != "int":
        raise TypeError(f"iinfo() requires an integer input type. Use finfo to handle '{type!r}'")
    info = np.iinfo(numpy_dtype(type))
    return IntInfo(info.bits, int(info.max), int(info.min), str(type))


strided = "strided"
contiguous_format, preserve_format = "contiguous_format", "preserve_format"
channels_last, channels_last_3d = "channels_last", "channels_last_3d"


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted for compatibility: products of float32 are computed in float32. ValueError: an unknown word."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"precision must be 'highest', 'high' or 'medium', not {precision!r}")
