"""Dimensions and shapes as users write them, brought to one form, with the errors users should see."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from lamina_fx import CPU, Device, Size
from lamina_fx import same_sizes as same_sizes_known

__all__ = [
    "as_shape",
    "broadcast_shapes",
    "canonical_dim",
    "canonical_dims",
    "common_device",
    "numel",
    "same_sizes",
    "surely_same",
]


def canonical_dim(name: str, dim: Any, ndim: int) -> int:
    """``dim`` counted from the front. A tensor without dimensions takes 0 and -1.

    Raises:
        TypeError: not an integer.
        IndexError: out of range.
    """
    if type(dim) is not int:
        if not hasattr(dim, "__index__"):
            raise TypeError(f"{name}: a dimension must be an int, not {type(dim).__name__}")
        dim = dim.__index__()
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})"
        )
    return dim + limit if dim < 0 else dim


def canonical_dims(name: str, dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions to reduce, counted from the front and sorted. None and an empty tuple mean all.

    Raises:
        IndexError: one is out of range.
        RuntimeError: one appears twice.
    """
    if dims is None or (type(dims) in (tuple, list) and not dims):
        return tuple(range(ndim))
    if type(dims) not in (tuple, list):
        dims = (dims,)
    found = sorted(canonical_dim(name, d, ndim) for d in dims)
    for a, b in itertools.pairwise(found):
        if a == b:
            raise RuntimeError(f"{name}: dim {a} appears multiple times in the list of dims {tuple(dims)}")
    return () if ndim == 0 else tuple(found)


def as_shape(name: str, size: Any) -> tuple[Size, ...]:
    """A tuple of sizes from an int or a sequence of them.

    Raises:
        TypeError: something else was given.
    """
    if type(size) is tuple:
        return size
    if isinstance(size, (list, tuple)):
        return tuple(size)
    if isinstance(size, int) or hasattr(size, "__index__"):
        return (size,)
    if isinstance(size, Sequence):
        return tuple(size)
    raise TypeError(f"{name}: a shape must be a sequence of ints, not {type(size).__name__}")


def numel(shape: Sequence[Size]) -> Size:
    """The product of the sizes."""
    count: Size = 1
    for size in shape:
        count = count * size
    return count


def same_sizes(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Are the shapes equal. Asks symbolic sizes (which guards) only where they are not the same object."""
    return len(a) == len(b) and all(x is y or x == y for x, y in zip(a, b, strict=True))


def surely_same(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Are the shapes equal as far as is known without asking: never guards. (As ``lamina_fx.same_sizes``, inlined.)"""
    if a is b:
        return True
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is y:
            continue
        if type(x) is int and type(y) is int:
            if x != y:
                return False
        elif not same_sizes_known((x,), (y,)):
            return False
    return True


def broadcast_shapes(name: str, shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The common shape.

    Raises:
        RuntimeError: two sizes differ and neither is 1; names the operator, the shapes and the dimension.
    """
    first = tuple(shapes[0])
    if all(s is first or surely_same(s, first) for s in shapes[1:]):
        return first
    rank = max(map(len, shapes))
    result: list[Size] = [1] * rank
    for shape in shapes:
        for k in range(1, len(shape) + 1):
            size, have = shape[-k], result[-k]
            if type(have) is int and have == 1:
                result[-k] = size
            elif not (type(size) is int and size == 1) and size is not have and size != have:
                if have == 1:
                    result[-k] = size
                elif size != 1:
                    listed = " and ".join(str(list(s)) for s in shapes)
                    raise RuntimeError(
                        f"{name}: the shapes {listed} do not broadcast: size {have} must match size {size} "
                        f"at dimension {rank - k}"
                    )
    return tuple(result)


def common_device(name: str, tensors: Sequence[Any]) -> Device:
    """The device of these specs; 0-d tensors on the CPU go along with the others.

    Raises:
        RuntimeError: two devices; names both.
    """
    found = None
    for t in tensors:
        device = t.device
        if device is found or device == found:
            continue
        if found is None:
            found, first = device, t
        elif device == CPU and not t.shape:
            continue
        elif found == CPU and not first.shape:
            found, first = device, t
        else:
            raise RuntimeError(
                f"{name}: Expected all tensors to be on the same device, but found at least two devices, {found} and "
                f"{device}!"
            )
    return CPU if found is None else found
