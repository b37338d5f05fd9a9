"""View primitives and their relatives: the strict names for every change of shape.

Each view primitive has a scatter rule, which says how writing to the view changes what it views, and its
reference returns a NumPy view where NumPy can.
"""

from __future__ import annotations

import itertools
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import array_namespace, spec_of
from ..dims import as_shape, canonical_dim, numel, same_sizes, surely_same
from ..registry import both, ops, primitive
from ..samples import call, calls, error, tensor
from ..strides import view_strides
from ..types import Shape, Size, Tensor

__all__ = ["broadcast_in_dim", "detach", "permute", "reshape", "whole_shape"]


# -- broadcast_in_dim ------------------------------------------------------------------------------------


def _broadcast_meta(input: Any, shape: Shape, dims: Any) -> TensorSpec:
    shape, dims = as_shape("broadcast_in_dim", shape), tuple(dims)
    if len(dims) != len(input.shape) or any(b <= a for a, b in itertools.pairwise(dims)):
        raise RuntimeError(
            f"broadcast_in_dim: dims {dims} must be increasing, one for each dimension of {list(input.shape)}"
        )
    strides: list[Size] = [0] * len(shape)
    for dim, size, stride in zip(dims, input.shape, input.strides, strict=True):
        want = shape[dim]
        if type(size) is int and size == 1 and type(want) is not int:
            continue  # whether the symbolic size is 1 need not be asked: strides of such dimensions mean nothing
        if size is want or size == want:
            strides[dim] = stride
        elif size != 1:
            raise RuntimeError(
                f"broadcast_in_dim: {list(input.shape)} does not broadcast to {list(shape)} along {dims}"
            )
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
    return input if surely_same(shape, input.shape) else NotImplemented


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
        raise RuntimeError(
            f"{name}: cannot tell the size for -1 in {list(shape)}, because the other sizes have no elements"
        )
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
        call(tensor(3, 2, kind="transposed"), (6,)), call(tensor(0, 3), (3, 0)),
        call(tensor(4, 6, kind="strided"), (2, 2, 6)),
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
    if surely_same(new, input.shape):
        return input
    return reshape(input, new) if new is not shape else NotImplemented


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
