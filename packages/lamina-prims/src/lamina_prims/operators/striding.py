"""Memory seen with other sizes and strides: the primitive as_strided, and what the front end calls by that name.

The primitive counts its offset from the input's own first element, for a value of a graph has no other memory. The
front end's counts it from the start of the storage that the input is a view of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec

from ..arrays import array_namespace, element_type, spec_of
from ..dims import as_shape, numel
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Shape, Size, Tensor
from .views import permute, reshape

__all__: list[str] = ["as_strided", "as_strided_storage", "extent"]


def extent(size: Any, stride: Any) -> Any:
    """Elements of memory from the first to the last of a tensor (0 of an empty one, where that is known)."""
    if any(type(n) is int and n == 0 for n in size):
        return 0
    last: Any = 0
    for n, s in zip(size, stride, strict=True):
        last = last + (n - 1) * s
    return last + 1


def _strided_meta(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> TensorSpec:
    size, stride = as_shape("as_strided", size), as_shape("as_strided", stride)
    if len(size) != len(stride):
        raise RuntimeError(f"as_strided: mismatch in length of strides {stride} and shape {size}")
    if any(type(s) is int and s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return TensorSpec(size, input.dtype, stride, input.device)


def _room(input: Any) -> tuple[int, int]:
    """How many elements of memory there are before the array's first, and from it on."""
    on_device = getattr(array_namespace(input), "memory_room", None)
    if on_device is not None:
        return on_device(input)
    item = input.itemsize
    own = extent(input.shape, [s // item for s in input.strides])
    owner = input
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not isinstance(owner, np.ndarray):
        return 0, own
    start = input.__array_interface__["data"][0]
    low, high = np.lib.array_utils.byte_bounds(owner)
    return (start - low) // item, (high - start) // item


def _strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    size, stride, offset = as_shape("as_strided", size), as_shape("as_strided", stride), int(storage_offset or 0)
    _strided_meta(spec_of(input), size, stride)
    needed = extent(size, stride)
    before, after = _room(input)
    if needed and (offset + needed > after or offset < -before):
        raise RuntimeError(
            f"as_strided: size {list(size)}, stride {list(stride)} and offset {offset} need {offset + needed} "
            f"elements, the input has {after}"
        )
    strided = array_namespace(input).lib.stride_tricks.as_strided
    step = input.itemsize if offset >= 0 else -input.itemsize
    first = strided(input, (abs(offset) + 1,), (step,))[abs(offset) :] if needed else input
    return strided(first, size, [s * input.itemsize for s in stride])


@primitive(
    meta=_strided_meta,
    reference=_strided,
    alias=True,
    samples=calls(
        call(tensor(4, 4), (4,), (5,)), call(tensor(6), (2, 3), (3, 1), 0), call(tensor(8), (3, 2), (2, 1), 1)
    ),
    errors=[
        error(RuntimeError, "mismatch", tensor(4), (2,), (1, 1)),
        error(RuntimeError, "Negative strides", tensor(4), (2,), (-1,)),
    ],
)
def as_strided(input: Tensor, size: Shape, stride: Shape, storage_offset: Size | None = None) -> Tensor:
    """``input``'s memory seen with this size and stride; the offset counts from ``input``'s first element."""
    ...


def _positions(base: Any, size: Any, stride: Any, offset: Any) -> Any:
    """For each element of the view, which element of ``base`` (in memory order) it is."""
    return _without_gaps(base, _places(size, stride, offset))


def _places(size: Any, stride: Any, offset: Any) -> Any:
    """For each element of the view, its place in memory."""
    index: Any = None
    for dim, step in enumerate(stride):
        term = reshape(ops.mul(ops.iota(size[dim]), step), (size[dim],) + (1,) * (len(size) - dim - 1))
        index = term if index is None else ops.add(index, term)
    index = ops.iota(1) if index is None else index
    return reshape(ops.add(index, offset), (-1,))


def _without_gaps(base: Any, places: Tensor) -> Tensor:
    """Places in memory as positions among the elements of ``base``, which need not be dense."""
    spec = spec_of(base)
    dims = [d for d in _memory_order(base) if not (type(spec.shape[d]) is int and spec.shape[d] == 1)]
    dense = _dense_strides([spec.shape[d] for d in dims])
    if all(spec.strides[d] is step or spec.strides[d] == step for d, step in zip(dims, dense, strict=True)):
        return places
    total: Any = 0
    for d, step in zip(dims, dense, strict=True):
        total = ops.add(ops.mul(ops.floor_divide(places, spec.strides[d]), step), total)
        places = ops.remainder(places, spec.strides[d])
    return total


def _dense_strides(shape: list[Any]) -> list[Any]:
    dense: list[Any] = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        dense[at] = dense[at + 1] * shape[at + 1]
    return dense


def _memory_order(base: Any) -> tuple[int, ...]:
    """Dimensions from the outermost to the innermost in memory."""
    strides = spec_of(base).strides
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


@as_strided.scatter
def _(base, value, size, stride, storage_offset=None):
    order = _memory_order(base)
    flat = reshape(permute(base, order), (-1,))
    flat = ops.index_put(flat, [_positions(base, size, stride, storage_offset or 0)], reshape(value, (-1,)))
    dense = reshape(flat, tuple(base.shape[d] for d in order))
    return permute(dense, tuple(order.index(d) for d in range(len(order))))


@as_strided.vjp
def _(ct, input_spec, size, stride, storage_offset):
    offset = storage_offset or 0
    shape, strides = input_spec.shape, input_spec.strides
    room = extent(shape, strides)
    order = _memory_order(input_spec)
    inside = offset >= 0 and offset + extent(size, stride) <= room
    if inside and room == numel(shape):
        flat = _gathered(ct, room, _places(size, stride, offset))
        dense = reshape(flat, tuple(shape[d] for d in order))
        return (permute(dense, tuple(order.index(d) for d in range(len(order)))),)
    # The memory of both: what lies in gaps of the input or around it has no gradient to give.
    before = -offset if offset < 0 else 0
    needed = before + offset + extent(size, stride)
    needed = needed if needed >= before + room else before + room
    flat = _gathered(ct, needed, _places(size, stride, offset + before))
    times = 1  # how many elements of an expanded input lie at one place: they share the gradient
    for n, s in zip(shape, strides, strict=True):
        times = times * n if type(s) is int and s == 0 else times
    gradient = ops.as_strided(flat, shape, strides, before)
    return (gradient if type(times) is int and times == 1 else ops.div(gradient, times),)


def _gathered(ct: Any, room: Any, places: Any) -> Any:
    flat = ops.zeros((room,), dtype=element_type(ct), device=ct.device)
    return ops.index_put(flat, [places], reshape(ct, (-1,)), accumulate=True)


# -- the front end's -------------------------------------------------------------------------------------


def _out_of_bounds(size: Any, stride: Any, offset: Any, room: Any) -> str:
    return (
        f"as_strided: sizes {list(size)}, strides {list(stride)} and storage offset {offset} need a storage of "
        f"{offset + extent(size, stride)} elements, but it has {room}"
    )


@composite(
    id="as_strided.storage",
    names=both("as_strided"),
    alias=True,
    samples=calls(
        call(tensor(4, 4), (4,), (5,)), call(tensor(6), (2, 3), (3, 1), 0), call(tensor(8), (3, 2), (2, 1), 1)
    ),
    errors=[
        error(RuntimeError, "mismatch", tensor(4), (2,), (1, 1)),
        error(RuntimeError, "invalid storage offset -1", tensor(4), (2,), (1,), -1),
    ],
)
def as_strided_storage(input: Tensor, size: Shape, stride: Shape, storage_offset: Size | None = None) -> Tensor:
    """The storage of ``input`` seen with this size and stride. The offset (default: that of ``input``) counts from the
    storage's start: a view reaches all of the memory. A value that is no view of another has a storage of its own.
    """
    size, stride = as_shape("as_strided", size), as_shape("as_strided", stride)
    _strided_meta(spec_of(input), size, stride)
    own, room = memory_of(input)
    offset = own if storage_offset is None else storage_offset
    if type(offset) is int and offset < 0:
        raise RuntimeError(f"as_strided: Tensor: invalid storage offset {offset}")
    needed = extent(size, stride)
    if room is not None and not (type(needed) is int and needed == 0) and offset + needed > room:
        raise RuntimeError(_out_of_bounds(size, stride, offset, room))
    return ops.as_strided(input, size, stride, offset - own)


def memory_of(input: Any) -> tuple[Any, Any]:
    """(elements of the storage before the first of ``input``, elements of the storage or None where nobody knows).

    Tensors that have a storage tell by ``__lamina_memory__``; other values have one that starts with them.
    """
    tell = getattr(type(input), "__lamina_memory__", None)
    return (0, None) if tell is None else tell(input)
