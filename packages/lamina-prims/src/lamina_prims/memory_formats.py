"""Memory formats: the order in which memory has the dimensions of images (``channels_last``)."""

from __future__ import annotations

from typing import Any

from .arrays import spec_of

__all__ = ["CHANNELS_LAST", "in_format", "order_of"]

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
