"""View primitives and their relatives: the strict names for every change of shape.

Each view primitive has a scatter rule, which says how writing to the view changes what it views, and its
reference returns a NumPy view where NumPy can.
"""

from __future__ import annotations

from typing import Any


from lamina_fx import TensorSpec

from ..arrays import array_namespace, spec_of
from ..dims import as_shape, canonical_dim, numel, same_sizes
from ..registry import both, ops, primitive
from ..samples import call, calls, error, tensor
from ..strides import view_strides
from ..types import Shape, Size, Tensor

__all__ = ["as_strided", "broadcast_in_dim", "detach", "permute", "reshape", "slice_", "slice_bounds", "whole_shape"]


# -- broadcast_in_dim ------------------------------------------------------------------------------------


def _broadcast_meta(input: Any, shape: Shape, dims: Any) -> TensorSpec:
    shape, dims = as_shape("broadcast_in_dim", shape), tuple(dims)
    if len(dims) != len(input.shape) or any(b <= a for a, b in zip(dims, dims[1:], strict=False)):
        raise RuntimeError(
            f"broadcast_in_dim: dims {dims} must be increasing, one for each dimension of {list(input.shape)}"
        )
    strides: list[Size] = [0] * len(shape)
    for dim, size, stride in zip(dims, input.shape, input.strides, strict=True):
        want = shape[dim]
        if size is want or size == want:
            strides[dim] = stride
        elif size != 1:
            raise RuntimeError(f"broadcast_in_dim: {list(input.shape)} does not broadcast to {list(shape)} along {dims}")
    return TensorSpec(shape, input.dtype, strides, input.device)


def _broadcast(input: Any, shape: Shape, dims: Any) -> Any:
    xp = array_namespace(input)
    strides = [0] * len(shape)
    for dim, size, stride in zip(dims, input.shape, input.strides, strict=True):
        if size == shape[dim]:
            strides[dim] = stride
        elif size != 1:
            _broadcast_meta(spec_of(input), shape, dims)
    return xp.lib.stride_tricks.as_strided(input, tuple(map(int, shape)), strides)


@primitive(
    meta=_broadcast_meta,
    reference=_broadcast,
    alias=True,
    samples=calls(
        call(tensor(3), (2, 3), (1,)), call(tensor(2, 1), (2, 4, 5), (0, 2)), call(tensor(), (2,), ()),
        call(tensor(2, 3, kind="transposed"), (2, 4, 3), (0, 2)), call(tensor(2, 3), (1, 2, 3), (1, 2)),
    ),
    errors=[error(RuntimeError, "does not broadcast", tensor(3), (2, 4), (1,))],
)  # fmt: skip
def broadcast_in_dim(input: Tensor, shape: Shape, dims: Shape) -> Tensor:
    """Put dimension i of ``input`` at ``dims[i]`` of ``shape``; sizes of 1 and the other dimensions repeat."""
    ...


@broadcast_in_dim.vjp
def _(ct, input_spec, shape, dims):
    sizes = input_spec.shape
    new = [d for d in range(len(shape)) if d not in dims]
    stretched = [d for d, size in zip(dims, sizes, strict=True) if size is not shape[d] and size != shape[d]]
    total = ops.sum(ct, tuple(sorted(new + stretched))) if new or stretched else ct
    return (reshape(total, sizes) if stretched else total,)


@broadcast_in_dim.normalize
def _(input, shape, dims):
    if len(shape) == len(input.shape) and same_sizes(shape, input.shape):
        return input
    return NotImplemented


@broadcast_in_dim.scatter
def _(base, value, shape, dims):
    if not same_sizes([shape[d] for d in dims], base.shape) or numel(shape) != numel(base.shape):
        raise RuntimeError(
            "more than one element of the written-to tensor refers to a single memory location; "
            "clone() the expanded tensor before writing to it"
        )
    return reshape(value, base.shape)


# -- reshape ---------------------------------------------------------------------------------------------


def whole_shape(name: str, shape: Any, have: Shape) -> tuple[Size, ...]:
    """``shape`` with its -1 replaced so that it holds as many elements as ``have``.

    Raises:
        RuntimeError: the numbers of elements differ, several -1, or one that cannot be told.
    """
    shape = as_shape(name, shape)
    total = numel(have)
    unknown = [i for i, s in enumerate(shape) if type(s) is int and s < 0]
    if not unknown:
        count = numel(shape)
        if count is not total and count != total:
            raise RuntimeError(f"{name}: shape {list(shape)} is invalid for input of size {total} ({list(have)})")
        return shape
    if len(unknown) > 1 or shape[unknown[0]] != -1:
        raise RuntimeError(f"{name}: only one dimension can be inferred, got {list(shape)}")
    rest = numel([s for i, s in enumerate(shape) if i != unknown[0]])
    if type(rest) is int and rest == 0:
        raise RuntimeError(f"{name}: cannot tell the size for -1 in {list(shape)}, because the other sizes have no elements")
    if total % rest != 0:
        raise RuntimeError(f"{name}: shape {list(shape)} is invalid for input of size {total} ({list(have)})")
    return (*shape[: unknown[0]], total // rest, *shape[unknown[0] + 1 :])


def _reshape_meta(input: Any, shape: Any) -> TensorSpec:
    shape = whole_shape("reshape", shape, input.shape)
    return TensorSpec(shape, input.dtype, view_strides(input.shape, input.strides, shape), input.device)


def _reshape_views(input: Any, shape: Any) -> bool:
    return view_strides(input.shape, input.strides, whole_shape("reshape", shape, input.shape)) is not None


@primitive(
    names=both("reshape"),
    meta=_reshape_meta,
    reference=lambda input, shape: input.reshape(whole_shape("reshape", shape, input.shape)),
    alias=_reshape_views,
    variadic="shape",
    samples=calls(
        call(tensor(2, 3), (3, 2)), call(tensor(2, 3), -1), call(tensor(2, 3, 4), (6, -1)), call(tensor(), (1, 1)),
        call(tensor(3, 2, kind="transposed"), (6,)), call(tensor(0, 3), (3, 0)), call(tensor(4, 6, kind="strided"), (2, 2, 6)),
    ),
    errors=[error(RuntimeError, r"\[4\] is invalid for input of size 6", tensor(2, 3), (4,))],
)  # fmt: skip
def reshape(input: Tensor, shape: Shape) -> Tensor:
    """The elements in row-major order in a new shape; one size may be -1. A view when the strides allow it."""
    ...


@reshape.vjp
def _(ct, input_spec):
    return (reshape(ct, input_spec.shape),)


@reshape.normalize
def _(input, shape):
    new = whole_shape("reshape", shape, input.shape)
    if same_sizes(new, input.shape):
        return input
    return reshape(input, new) if new is not shape and new != shape else NotImplemented


@reshape.scatter
def _(base, value, shape):
    return reshape(value, base.shape)


# -- permute ---------------------------------------------------------------------------------------------


def _permutation(dims: Any, ndim: int) -> tuple[int, ...]:
    given = as_shape("permute", dims)
    if len(given) != ndim:
        raise RuntimeError(f"permute: {len(given)} dims were given for a tensor of {ndim} dimensions: {given}")
    order = tuple(canonical_dim("permute", d, ndim) for d in given)
    if len(set(order)) != ndim:
        raise RuntimeError(f"permute: duplicate dims are not allowed: {given}")
    return order


def _permute_meta(input: Any, dims: Any) -> TensorSpec:
    order = _permutation(dims, len(input.shape))
    shape, strides = input.shape, input.strides
    return TensorSpec([shape[d] for d in order], input.dtype, [strides[d] for d in order], input.device)


@primitive(
    names=both("permute"),
    meta=_permute_meta,
    reference=lambda input, dims: input.transpose(_permutation(dims, input.ndim)),
    alias=True,
    variadic="dims",
    samples=calls(call(tensor(2, 3), (1, 0)), call(tensor(2, 3, 4), (-1, 0, 1)), call(tensor(), ())),
    errors=[
        error(RuntimeError, "duplicate", tensor(2, 3), (0, 0)),
        error(RuntimeError, "3 dims were given", tensor(2, 3), (0, 1, 2)),
        error(IndexError, "out of range", tensor(2, 3), (0, 2)),
    ],
)
def permute(input: Tensor, dims: Shape) -> Tensor:
    """Dimension i of the result is dimension ``dims[i]`` of ``input``."""
    ...


def _inverse(dims: Any, ndim: int) -> tuple[int, ...]:
    order = _permutation(dims, ndim)
    return tuple(order.index(i) for i in range(ndim))


@permute.vjp
def _(ct, dims):
    return (permute(ct, _inverse(dims, len(ct.shape))),)


@permute.normalize
def _(input, dims):
    order = _permutation(dims, len(input.shape))
    if order == tuple(range(len(order))):
        return input
    return permute(input, order) if order != dims else NotImplemented


@permute.scatter
def _(base, value, dims):
    return permute(value, _inverse(dims, len(base.shape)))


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
def slice_(
    input: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1
) -> Tensor:
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
def _(input, dim=0, start=None, end=None, step=1):
    size = input.shape[dim]
    new = slice_bounds(input, dim, start, end, step)
    whole = type(new[1]) is int and new[1] == 0 and type(step) is int and step == 1
    if whole and (new[2] is size or new[2] == size):
        return input
    return slice_(input, *new, step) if new != (dim, start, end) else NotImplemented


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
    samples=calls(call(tensor(4, 4), (4,), (5,)), call(tensor(6), (2, 3), (3, 1), 0), call(tensor(8), (3, 2), (2, 1), 1)),
    errors=[error(RuntimeError, "mismatch", tensor(4), (2,), (1, 1))],
)
def as_strided(input: Tensor, size: Shape, stride: Shape, storage_offset: Size | None = None) -> Tensor:
    """``input``'s memory seen with this size and stride; the offset counts from ``input``'s first element."""
    ...


def _positions(base: Any, size: Any, stride: Any, offset: Any) -> Any:
    """For each element of the view, which element of ``base`` (dense, in memory order) it is."""
    index: Any = None
    for dim, step in enumerate(stride):
        term = reshape(ops.mul(ops.iota(size[dim]), step), (size[dim],) + (1,) * (len(size) - dim - 1))
        index = term if index is None else ops.add(index, term)
    index = ops.iota(1) if index is None else index
    return reshape(ops.add(index, offset or 0), (-1,))


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




# -- detach ----------------------------------------------------------------------------------------------


@primitive(
    names=both("detach"),
    meta=lambda input: input,
    reference=lambda input: input[...],
    alias=True,
    samples=calls(call(tensor(2, 3), gradient=False)),
)
def detach(input: Tensor) -> Tensor:
    """The same memory as a tensor through which no gradient flows."""
    ...


@detach.vjp
def _():
    return (None,)


@detach.normalize
def _(input):
    return input


@detach.scatter
def _(base, value):
    return value
