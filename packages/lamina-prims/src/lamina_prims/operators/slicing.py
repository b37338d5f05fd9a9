"""The view primitives slice and as_strided."""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec

from ..arrays import array_namespace, spec_of
from ..dims import as_shape, canonical_dim, numel, surely_same
from ..registry import both, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Shape, Size, Tensor
from .views import permute, reshape

__all__: list[str] = ["as_strided", "slice_", "slice_bounds"]


# -- slice -----------------------------------------------------------------------------------------------


def _clamped(value: Any, default: Any, size: Any) -> Any:
    if value is None:
        return default
    if type(value) is int and value == 0:
        return 0
    if type(value) is int and type(size) is not int and value > 2**62:
        return size
    if value < 0:
        value = value + size
        return value if value >= 0 else 0
    return value if value is size or value <= size else size


def slice_bounds(input: Any, dim: int, start: Any, end: Any, step: Any) -> tuple[int, Any, Any]:
    """(dim, start, end) with 0 <= start <= end <= size."""
    if not input.shape:
        raise IndexError("slice: a tensor without dimensions cannot be sliced")
    if step <= 0:
        raise ValueError(f"slice: step must be greater than zero, not {step}")
    dim = canonical_dim("slice", dim, len(input.shape))
    size = input.shape[dim]
    start = _clamped(start, 0, size)
    end = _clamped(end, size, size)
    if not (type(start) is int and start == 0) and end is not start and end < start:
        end = start
    return dim, start, end


def _slice_meta(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> TensorSpec:
    dim, start, end = slice_bounds(input, dim, start, end, step)
    shape, strides = list(input.shape), list(input.strides)
    length = end - start
    shape[dim] = length if type(step) is int and step == 1 else (length + step - 1) // step
    strides[dim] = strides[dim] * step
    return TensorSpec(shape, input.dtype, strides, input.device)


def _slice(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    dim, start, end = slice_bounds(input, dim, start, end, step)
    return input[(slice(None),) * dim + (slice(int(start), int(end), int(step)),)]


@primitive(
    id="slice",
    meta=_slice_meta,
    reference=_slice,
    alias=True,
    samples=calls(
        call(tensor(5, 3), 0, 1, 4), call(tensor(5, 3), 1, -2), call(tensor(5, 3), 0, None, None, 2),
        call(tensor(7), 0, 1, 6, 3), call(tensor(5), 0, 4, 2), call(tensor(5, 3, kind="transposed"), -1, 1, 99),
    ),
    errors=[error(IndexError, "out of range", tensor(2, 3), 2), error(ValueError, "step", tensor(3), 0, 0, 2, 0)],
)  # fmt: skip
def slice_(input: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Tensor:
    """``input[start:end:step]`` along ``dim``; bounds are clamped as in Python, ``step`` is positive."""
    ...


@slice_.vjp
def _(ct, input_spec, dim, start, end, step):
    dim, start, _ = slice_bounds(input_spec, dim, start, end, step)
    ndim, length = len(input_spec.shape), ct.shape[dim]
    if type(length) is int and length == 0:
        return (ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device),)
    after = input_spec.shape[dim] - start - ((length - 1) * step + 1)
    low, high, interior = [0] * ndim, [0] * ndim, [0] * ndim
    low[dim], high[dim], interior[dim] = start, after, step - 1
    return (ops.pad(ct, tuple(low), tuple(high), 0, tuple(interior)),)


@slice_.normalize
def _(input, dim=0, start=None, end=None, step=None):
    size, by = input.shape[dim], 1 if step is None else step
    new = slice_bounds(input, dim, start, end, by)
    whole = type(new[1]) is int and new[1] == 0 and type(by) is int and by == 1
    if whole and surely_same((new[2],), (size,)):
        return input
    given: list[Any] = [start, end]
    if step is not None and new[0] == dim and surely_same(new[1:], given):
        return NotImplemented
    return slice_(input, *new, by)


@slice_.scatter
def _(base, value, dim=0, start=None, end=None, step=1):
    return ops.slice_scatter(base, value, dim, start, end, step)


# -- as_strided ------------------------------------------------------------------------------------------


def _strided_meta(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> TensorSpec:
    size, stride = as_shape("as_strided", size), as_shape("as_strided", stride)
    if len(size) != len(stride):
        raise RuntimeError(f"as_strided: mismatch in length of strides {stride} and shape {size}")
    return TensorSpec(size, input.dtype, stride, input.device)


def _strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    size, stride, offset = as_shape("as_strided", size), as_shape("as_strided", stride), int(storage_offset or 0)
    _strided_meta(spec_of(input), size, stride, offset)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    extent = 1 + sum((n - 1) * s // input.itemsize for n, s in zip(input.shape, input.strides, strict=True))
    if 0 not in size and (last >= extent or offset < 0):
        raise RuntimeError(
            f"as_strided: size {list(size)}, stride {list(stride)} and offset {offset} need {last + 1} elements, "
            f"the input has {extent}"
        )
    xp = array_namespace(input)
    flat = xp.lib.stride_tricks.as_strided(input, (max(extent, 0),), (input.itemsize,))[offset:]
    return xp.lib.stride_tricks.as_strided(flat, size, [s * input.itemsize for s in stride])


@primitive(
    names=both("as_strided"),
    meta=_strided_meta,
    reference=_strided,
    alias=True,
    samples=calls(
        call(tensor(4, 4), (4,), (5,)), call(tensor(6), (2, 3), (3, 1), 0), call(tensor(8), (3, 2), (2, 1), 1)
    ),
    errors=[error(RuntimeError, "mismatch", tensor(4), (2,), (1, 1))],
)
def as_strided(input: Tensor, size: Shape, stride: Shape, storage_offset: Size | None = None) -> Tensor:
    """``input``'s memory seen with this size and stride; the offset counts from ``input``'s first element."""
    ...


def _positions(base: Any, size: Any, stride: Any, offset: Any) -> Any:
    """For each element of the view, which element of ``base`` (in memory order) it is."""
    index: Any = None
    for dim, step in enumerate(stride):
        term = reshape(ops.mul(ops.iota(size[dim]), step), (size[dim],) + (1,) * (len(size) - dim - 1))
        index = term if index is None else ops.add(index, term)
    index = ops.iota(1) if index is None else index
    return _without_gaps(base, reshape(ops.add(index, offset or 0), (-1,)))


def _without_gaps(base: Any, places: Tensor) -> Tensor:
    """Places in memory as positions among the elements of ``base``, which need not be dense."""
    spec = spec_of(base)
    dims = [d for d in _memory_order(base) if not (type(spec.shape[d]) is int and spec.shape[d] == 1)]
    dense: list[Size] = [1] * len(dims)
    for at in range(len(dims) - 2, -1, -1):
        dense[at] = dense[at + 1] * spec.shape[dims[at + 1]]
    if all(spec.strides[d] is step or spec.strides[d] == step for d, step in zip(dims, dense, strict=True)):
        return places
    total: Any = 0
    for d, step in zip(dims, dense, strict=True):
        total = ops.add(ops.mul(ops.floor_divide(places, spec.strides[d]), step), total)
        places = ops.remainder(places, spec.strides[d])
    return total


def _memory_order(base: Any) -> tuple[int, ...]:
    """Dimensions from the outermost to the innermost in memory."""
    strides = spec_of(base).strides
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


@as_strided.scatter
def _(base, value, size, stride, storage_offset=None):
    order = _memory_order(base)
    flat = reshape(permute(base, order), (-1,))
    flat = ops.index_put(flat, [_positions(base, size, stride, storage_offset)], reshape(value, (-1,)))
    dense = reshape(flat, tuple(base.shape[d] for d in order))
    return permute(dense, tuple(order.index(d) for d in range(len(order))))


@as_strided.vjp
def _(ct, input_spec, size, stride, storage_offset):
    order = _memory_order(input_spec)
    flat = ops.zeros((numel(input_spec.shape),), dtype=ct.dtype, device=ct.device)
    index = _positions(input_spec, size, stride, storage_offset)
    flat = ops.index_put(flat, [index], reshape(ct, (-1,)), accumulate=True)
    dense = reshape(flat, tuple(input_spec.shape[d] for d in order))
    return (permute(dense, tuple(order.index(d) for d in range(len(order)))),)
