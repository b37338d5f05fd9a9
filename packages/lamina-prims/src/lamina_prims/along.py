"""Vectors laid along one dimension of a larger shape, so that they broadcast there."""

from __future__ import annotations

from typing import Any

from .registry import ops

__all__ = ["along", "positions"]


def along(vector: Any, dim: int, rank: int) -> Any:
    """A vector as a tensor of ``rank`` dimensions, its elements along ``dim``, sizes of 1 elsewhere."""
    shape: list[Any] = [1] * rank
    shape[dim] = vector.shape[0]
    return ops.reshape(vector, tuple(shape))


def positions(tensor: Any, dim: int) -> Any:
    """The int64 numbers 0, 1, ... along ``dim`` of ``tensor``, sizes of 1 elsewhere."""
    return along(ops.arange(tensor.shape[dim], device=tensor.device), dim, len(tensor.shape))
