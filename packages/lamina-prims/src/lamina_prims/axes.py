"""Dimension numbers: negative ones, ranges of them, and PyTorch's errors for bad ones."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["canonical_dim", "canonical_dims"]


def canonical_dim(name: str, dim: int, ndim: int) -> int:
    """``dim`` counted from the front. A 0-d tensor takes 0 and -1.

    Raises:
        IndexError: out of range.
        TypeError: not an integer.
    """
    if type(dim) is not int:
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"{name}: dim must be an integer, got {type(dim).__name__}")
        dim = int(dim)
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})"
        )
    return dim + limit if dim < 0 else dim


def canonical_dims(name: str, dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in the order given; None means all.

    Raises:
        IndexError: out of range.
        RuntimeError: one occurs twice.
    """
    if dims is None:
        return tuple(range(ndim))
    listed = (dims,) if isinstance(dims, int) else tuple(dims)
    result = tuple(canonical_dim(name, d, ndim) for d in listed)
    if len(set(result)) != len(result):
        raise RuntimeError(f"{name}: dim {dims} names a dimension twice")
    return result
