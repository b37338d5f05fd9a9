"""Memory formats: the order in which memory has the dimensions of images (``channels_last``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import Size, TensorSpec, contiguous_strides

from .arrays import spec_of
from .dims import surely_same

__all__ = ["CHANNELS_LAST", "channels_last_strides", "has_channels_last", "in_format", "in_format_of", "order_of"]

CHANNELS_LAST = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}
"""By the name of a format: the dimensions as memory has them."""


def order_of(memory_format: Any) -> tuple[int, ...] | None:
    """The order of a format; None for those that have no order of their own (``contiguous_format``, ...)."""
    return CHANNELS_LAST.get(str(memory_format).rpartition(".")[2])


def in_format(input: Any, memory_format: Any) -> Any:
    """``input`` with its channels last in memory, where the format says so; itself when it is so already.

    Raises:
        RuntimeError: it has another number of dimensions than the format is for.
    """
    from . import ops  # whose modules import this one

    order = order_of(memory_format)
    if order is None:
        return input
    if len(spec_of(input).shape) != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format} format")
    turned = ops.permute(input, order)
    if spec_of(turned).is_contiguous():
        return input
    back = tuple([order.index(dim) for dim in range(len(order))])
    return ops.permute(ops.clone(turned, memory_format="contiguous_format"), back)


def in_format_of(input: Any, value: Any) -> Any:
    """``value`` with its channels last where ``input`` has them so."""
    if not has_channels_last(spec_of(input)) or has_channels_last(spec_of(value)):
        return value
    return in_format(value, "channels_last" if len(spec_of(value).shape) == 4 else "channels_last_3d")


def channels_last_strides(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Dense strides with the second dimension innermost.

    >>> channels_last_strides((2, 4, 5, 6))
    (120, 1, 24, 4)
    """
    strides: list[Size] = [0] * len(shape)
    step: Size = 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[dim] = step
        step = step * shape[dim]
    return tuple(strides)


def has_channels_last(spec: TensorSpec) -> bool:
    """Do images or volumes (4 or 5 dimensions) lie with their channels last, perhaps with gaps?

    Where sizes of 1 leave both readings open, strides decide as in PyTorch. Symbolic ones must be dense.
    """
    if len(spec.shape) not in (4, 5):
        return False
    if any(type(s) is not int for s in (*spec.shape, *spec.strides)):
        dense = surely_same(spec.strides, contiguous_strides(spec.shape))
        return not dense and surely_same(spec.strides, channels_last_strides(spec.shape))
    if spec.strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(len(spec.shape) - 1, 1, -1), 0):
        size, stride = spec.shape[dim], spec.strides[dim]
        if size == 0 or stride < least or (dim == 0 and least == spec.strides[1]):
            return False
        least = stride * size if size > 1 else stride
    return True
