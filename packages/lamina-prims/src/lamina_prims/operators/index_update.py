"""Writing at computed positions, functionally: index_put, the scatters, masked_scatter, copy_to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_fx import TensorSpec, bool_

from ..arrays import array_namespace, converted, element_type
from ..dims import broadcast_shapes, canonical_dim, same_sizes, surely_same
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..strides import elementwise_strides
from ..types import Scalar, Tensor
from .indexing import index_shape, numpy_index, strict_indices

__all__ = ["copy_to", "index_put"]

_INDEX = {"dtype": "int64", "low": 0, "high": 2}


def same_layout(input: Any) -> TensorSpec:
    return TensorSpec(input.shape, input.dtype, elementwise_strides(input.shape, (input,)), input.device)


# -- index_put -------------------------------------------------------------------------------------------


def _check_put(input: Any, indices: Any, values: Any) -> None:
    shape, _, _ = index_shape("index_put", input.shape, indices)
    if element_type(values) is not element_type(input) and len(values.shape):
        raise RuntimeError(
            f"index_put: expected values of the dtype of input, {element_type(input)}, got {element_type(values)}"
        )
    if not same_sizes(broadcast_shapes("index_put", [shape, values.shape]), shape):
        raise RuntimeError(f"index_put: values of shape {list(values.shape)} do not broadcast to {list(shape)}")


def _put_meta(input: Any, indices: Any, values: Any, accumulate: bool = False) -> TensorSpec:
    _check_put(input, indices, values)
    return same_layout(input)


def _put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    _check_put(input, indices, values)
    out = input.copy(order="K")
    where = numpy_index("index_put", input, indices)
    if not accumulate:
        out[where] = values
    elif out.dtype.kind == "b":
        array_namespace(input).logical_or.at(out, where, values)
    else:
        array_namespace(input).add.at(out, where, values.astype(out.dtype))
    return out


@primitive(
    names=both("index_put"),
    in_place=True,
    meta=_put_meta,
    reference=_put,
    samples=calls(
        call(tensor(4, 3), [tensor(2, dtype="int64", low=0, high=4)], tensor(2, 3), True),
        call(tensor(6), [np.array([4, 1])], tensor(2)),
        call(tensor(4, 3), [None, np.array([2, 0])], tensor()),
        call(tensor(4, 3, 5), [np.array([0, 3]), None, np.array([[1], [2]])], tensor(2, 2, 3)),
    ),
    errors=[
        error(IndexError, "out of bounds", tensor(2, 3), [tensor(1, dtype="int64", low=5, high=6)], tensor(3)),
        error(RuntimeError, "dtype of input", tensor(2), [np.array([0])], tensor(1, dtype="float64")),
    ],
)  # fmt: skip
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``input[indices] = values`` done (or ``+=``: repeated positions add up)."""
    ...


@index_put.vjp
def _(ct, indices, values_spec, accumulate, needs):
    places = [None] * len(indices)
    first = None
    if needs[0]:
        zero = ops.zeros((), dtype=ct.dtype, device=ct.device)
        first = ct if accumulate else ops.index_put(ct, indices, zero)
    return first, places, ops.index(ct, indices) if needs[-1] else None


@index_put.normalize
def _(input, indices, values, accumulate=False):
    if not any(i is not None for i in indices):
        value = ops.broadcast_to(values, tuple(input.shape))
        return ops.add(input, value) if accumulate else value
    strict = strict_indices(input, indices) or indices
    shape, _, _ = index_shape("index_put", input.shape, strict)
    wide = (
        values if element_type(values) is element_type(input) else ops.convert_element_type(values, element_type(input))
    )
    if not surely_same(wide.shape, shape):
        wide = ops.broadcast_in_dim(wide, shape, tuple(range(len(shape) - len(wide.shape), len(shape))))
    return NotImplemented if wide is values and strict is indices else ops.index_put(input, strict, wide, accumulate)


# -- along one dimension ---------------------------------------------------------------------------------


def _along(input: Any, dim: int) -> list[None]:
    return [None] * canonical_dim("index", dim, len(input.shape))


_ROW = calls(
    call(tensor(4, 3), 0, np.array([3, 1]), tensor(2, 3)), call(tensor(2, 3), -1, np.array([2, 0]), tensor(2, 2))
)


@composite(names=both("index_add"), in_place=True, samples=_ROW)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
    """``input`` with alpha * source[i] added to slice index[i] along ``dim``."""
    return ops.index_put(
        input,
        [*_along(input, dim), index],
        source if type(alpha) in (int, float) and alpha == 1 else ops.mul(source, alpha),
        True,
    )


@composite(names=both("index_copy"), in_place=True, samples=_ROW)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with slice index[i] along ``dim`` replaced by source[i]."""
    return ops.index_put(input, [*_along(input, dim), index], source)


@composite(names=both("index_fill"), in_place=True, samples=calls(call(tensor(4, 3), 0, np.array([3, 1]), 2.5)))
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Scalar) -> Tensor:
    """``input`` with the slices ``index`` along ``dim`` filled with ``value``."""
    if not hasattr(value, "dtype"):
        value = ops.full((), value, dtype=element_type(input), device=input.device)
    return ops.index_put(input, [*_along(input, dim), index], value)


@composite(names=both("put"), in_place=True, samples=calls(call(tensor(2, 3), np.array([4, 1]), tensor(2))))
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with the elements of the flat tensor at ``index`` replaced by (or, accumulate, raised by) source."""
    flat = ops.index_put(ops.reshape(input, (-1,)), [ops.reshape(index, (-1,))], ops.reshape(source, (-1,)), accumulate)
    return ops.reshape(flat, tuple(input.shape))


@composite(
    names=both("masked_scatter"),
    in_place=True,
    samples=calls(call(tensor(2, 3), np.array([[True, False, True], [False, True, False]]), tensor(4))),
)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where ``mask`` is true replaced by those of ``source``, in order."""
    if element_type(mask) is not bool_:
        raise RuntimeError(f"masked_scatter: expected a boolean mask, got {element_type(mask)}")
    shape = broadcast_shapes("masked_scatter", [input.shape, mask.shape])
    input, mask = ops.broadcast_to(input, shape), ops.broadcast_to(mask, shape)
    order = ops.sub(ops.cumsum(ops.reshape(mask, (-1,)), 0), 1)
    taken = ops.index(ops.reshape(source, (-1,)), [ops.maximum(order, 0)])
    return ops.where(mask, ops.reshape(taken, shape), input)


@composite(
    names=both("diagonal_scatter"),
    samples=calls(
        call(tensor(3, 4), tensor(3)), call(tensor(3, 4), tensor(2), -1), call(tensor(2, 3, 4), tensor(2, 3), 0, 1, 2)
    ),
)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """``input`` with its diagonal replaced by ``src``."""
    ndim = len(input.shape)
    a, b = canonical_dim("diagonal_scatter", dim1, ndim), canonical_dim("diagonal_scatter", dim2, ndim)
    rows, columns = ops.iota(input.shape[a], device=input.device), ops.iota(input.shape[b], device=input.device)
    on = ops.eq(ops.add(ops.reshape(rows, (input.shape[a], 1)), offset), columns)
    down = max(-offset, 0)
    spread = ops.pad(src, (0,) * (ndim - 2) + (down,), (0,) * (ndim - 2) + (input.shape[a] - down - src.shape[-1],))
    rest = [d for d in range(ndim) if d not in (a, b)]
    wide = ops.broadcast_in_dim(
        spread, (*(input.shape[d] for d in rest), input.shape[a], input.shape[b]), tuple(range(ndim - 1))
    )
    order = [*rest, a, b]
    wide = ops.permute(wide, tuple(order.index(d) for d in range(ndim)))
    mask = on if a < b else ops.permute(on, (1, 0))
    return ops.where(_place(mask, ndim, min(a, b), max(a, b)), wide, input)


def _place(mask: Any, ndim: int, a: int, b: int) -> Any:
    shape = [1] * ndim
    shape[a], shape[b] = mask.shape
    return ops.reshape(mask, tuple(shape))


# -- writing ---------------------------------------------------------------------------------------------


def _copy_meta(input: Any, value: Any) -> None:
    if not same_sizes(broadcast_shapes("copy_to", [input.shape, value.shape]), input.shape):
        raise RuntimeError(f"copy_to: {list(value.shape)} does not broadcast to {list(input.shape)}")
    return


def _copy_to(input: Any, value: Any) -> None:
    _copy_meta(input, value)
    with np.errstate(all="ignore"):
        input[...] = converted(value, input.dtype)


@primitive(meta=_copy_meta, reference=_copy_to, effect="write")
def copy_to(input: Tensor, value: Tensor) -> None:
    """Write ``value`` (broadcast, converted) into the memory of ``input``. Returns nothing."""
    ...


@copy_to.normalize
def _(input, value):
    wide = ops.convert_element_type(value, element_type(input))
    if not surely_same(wide.shape, input.shape):
        wide = ops.broadcast_in_dim(
            wide, tuple(input.shape), tuple(range(len(input.shape) - len(wide.shape), len(input.shape)))
        )
    return NotImplemented if wide is value else ops.copy_to(input, wide)
