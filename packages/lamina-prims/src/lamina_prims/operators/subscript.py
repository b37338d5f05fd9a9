"""``x[...]`` on proxies and specs: Python's index expression as views and gathers.

Eager tensors have their own, faster ``__getitem__``; this is for code that is traced by hand.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import bool_, uint8

from ..arrays import element_type
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__ = ["subscript"]


def _is_tensor(item: Any) -> bool:
    return hasattr(item, "dtype") and hasattr(item, "shape")


def _is_number(item: Any) -> bool:
    return not isinstance(item, bool) and (isinstance(item, int) or type(item).__name__ == "SymInt")


def _uses(item: Any) -> int:
    """How many of the input's dimensions the item takes."""
    if item is None or item is True or item is False:
        return 0
    if _is_tensor(item) and element_type(item) in (bool_, uint8):
        return len(item.shape)
    return 1


def _whole(index: Any, ndim: int) -> list[Any]:
    """The items with the ellipsis replaced by full slices."""
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(_uses(item) for item in items if item is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices for a tensor of dimension {ndim}: {used}")
    if dots:
        items[dots[0] : dots[0] + 1] = [slice(None)] * (ndim - used)
    return items


@composite(
    names=("Tensor.__getitem__",),
    samples=calls(
        call(tensor(4, 3), 1), call(tensor(4, 3), (slice(1, None), -1)), call(tensor(4, 3, 2), (Ellipsis, None, 0)),
        call(tensor(4, 3), (slice(None, None, 2), slice(0, 2))),
        call(tensor(4, 3), tensor(2, 2, dtype="int64", low=0, high=4)),
        call(tensor(4, 3, 2), (slice(None), tensor(2, dtype="int64", low=0, high=3), 1)),
    ),
    errors=[
        error(IndexError, "out of bounds for dimension 0", tensor(2, 3), 5),
        error(IndexError, "too many indices", tensor(2), (0, 0)),
        error(IndexError, "single ellipsis", tensor(2), (Ellipsis, Ellipsis)),
        error(TypeError, "int, slice, None, ... or tensor", tensor(2), "a"),
    ],
)  # fmt: skip
def subscript(input: Tensor, index: Any) -> Tensor:
    """``input[index]``: ints, slices with a positive step, None, an ellipsis, integer and boolean tensors."""
    value, dim = input, 0
    gathered: list[Any] = []
    for item in _whole(index, len(input.shape)):
        if item is None:
            value = ops.unsqueeze(value, dim)
        elif isinstance(item, slice):
            value = ops.slice(value, dim, item.start, item.stop, 1 if item.step is None else item.step)
        elif _is_number(item):
            value = ops.select(value, dim, item)
            continue
        elif _is_tensor(item):
            places = _positions(item)
            gathered += [None] * (dim - len(gathered)) + places
            dim += len(places) - 1
        else:
            raise TypeError(f"an index is an int, slice, None, ... or tensor, not {type(item).__name__}")
        dim += 1
    return ops.index(value, gathered) if gathered else value


def _positions(item: Any) -> list[Any]:
    """Index tensors that an index tensor means: itself, or where a mask is true."""
    if element_type(item) in (bool_, uint8):
        places = ops.nonzero(item)
        return [ops.select(places, 1, d) for d in range(len(item.shape))]
    return [item]
