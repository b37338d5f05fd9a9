"""Meta functions for composites that are called often: what running the body on specs would give, in a few lines.

A test compares each with the body's own inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina_fx import DType, Size, TensorSpec, float32

from .arrays import element_type
from .dims import broadcast_shapes, common_device
from .promotion import get_default_dtype, promote
from .strides import elementwise_strides

__all__ = ["broadcast_loss", "floating", "like", "same_floating", "statistics_dtype"]


def floating(dtype: DType) -> DType:
    """What a floating-point function makes of this dtype: the default for bools and integers."""
    return get_default_dtype() if dtype.kind in ("bool", "int") else dtype


def statistics_dtype(dtype: DType) -> DType:
    """The dtype of means and variances: float32 for half precision."""
    return float32 if dtype.kind == "float" and dtype.itemsize == 2 else dtype


def like(input: TensorSpec, dtype: DType | None = None, shape: Sequence[Size] | None = None) -> TensorSpec:
    """``input``'s spec in the layout of an elementwise result; with ``shape``, row-major."""
    if shape is not None:
        return TensorSpec(shape, dtype or input.dtype, None, input.device)
    return TensorSpec(input.shape, dtype or input.dtype, elementwise_strides(input.shape, (input,)), input.device)


def same_floating(check: Callable[..., None] | None = None) -> Callable[..., TensorSpec]:
    """The meta of a floating-point function of one tensor. ``check`` gets all arguments and raises what is wrong."""

    def meta(input: TensorSpec, *args: Any, **kwargs: Any) -> TensorSpec:
        if not isinstance(input, TensorSpec):
            raise TypeError(f"the first argument must be a tensor, not {type(input).__name__}")
        if check is not None:
            check(input, *args, **kwargs)
        return like(input, floating(element_type(input)))

    return meta


def broadcast_loss(name: str, input: TensorSpec, target: TensorSpec, reduction: str) -> TensorSpec:
    """The meta of an elementwise loss with a reduction; the result has the input's dtype when that is floating."""
    shape = broadcast_shapes(name, [input.shape, target.shape])
    device = common_device(name, [input, target])
    have = element_type(input)
    dtype = have if have.kind == "float" else promote(have, statistics_dtype(element_type(target)))
    if reduction != "none":
        return TensorSpec((), dtype, None, device)
    return TensorSpec(shape, dtype, elementwise_strides(shape, (input, target)), device)
