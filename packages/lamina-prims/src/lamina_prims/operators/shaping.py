"""cat, flip, pad and the scatters: primitives that move elements, and what writes through slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_fx import TensorSpec

from ..arrays import array_namespace, element_type, numpy_dtype, spec_of
from ..dims import canonical_dim, canonical_dims, common_device, surely_same
from ..promotion import result_dtype
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..strides import elementwise_strides
from ..types import Scalar, Shape, Size, Tensor
from .slicing import slice_bounds

__all__ = ["cat", "flip", "pad", "slice_scatter"]


# -- cat -------------------------------------------------------------------------------------------------


def _legacy_empty(tensors: Any) -> list[Any]:
    """Without the empty 1-d tensors, which cat skips when the others have more dimensions."""
    if any(len(t.shape) != 1 for t in tensors):
        return [t for t in tensors if len(t.shape) != 1 or not (type(t.shape[0]) is int and t.shape[0] == 0)]
    return list(tensors)


def _cat_meta(tensors: Any, dim: int = 0) -> TensorSpec:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"cat: tensors must be a list or tuple of tensors, not {type(tensors).__name__}")
    if not tensors:
        raise ValueError("cat: expected a non-empty list of tensors")
    for position, t in enumerate(tensors):
        if not hasattr(t, "dtype"):
            raise TypeError(f"cat: element {position} must be a tensor, not {type(t).__name__}")
        if not t.shape:
            raise RuntimeError(f"cat: zero-dimensional tensor (at position {position}) cannot be concatenated")
    dtype, device = result_dtype(*tensors), common_device("cat", tensors)
    tensors = _legacy_empty(tensors)
    first = tensors[0]
    dim = canonical_dim("cat", dim, len(first.shape))
    total: Size = 0
    for position, t in enumerate(tensors):
        same = len(t.shape) == len(first.shape) and all(
            a is b or a == b for d, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if d != dim
        )
        if not same:
            raise RuntimeError(
                f"cat: sizes of tensors must match except in dimension {dim}: {list(first.shape)} and "
                f"{list(t.shape)} (tensor number {position} in the list)"
            )
        total = total + t.shape[dim]
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    return TensorSpec(shape, dtype, None, device)


def _cat(tensors: Any, dim: int = 0) -> Any:
    spec = _cat_meta(
        [spec_of(t) if hasattr(t, "dtype") else t for t in tensors] if isinstance(tensors, (list, tuple)) else tensors,
        dim,
    )
    to = numpy_dtype(spec.dtype)
    parts = [t if t.dtype == to else t.astype(to) for t in _legacy_empty(tensors)]
    xp = array_namespace(*tensors)
    return xp.ascontiguousarray(xp.concatenate(parts, canonical_dim("cat", dim, len(spec.shape))))


@primitive(
    names=("cat", "concat", "concatenate"),
    meta=_cat_meta,
    reference=_cat,
    samples=calls(
        call([tensor(2, 3), tensor(1, 3)]), call([tensor(2, 3), tensor(2, 1), tensor(2, 0)], 1), call([tensor(2)], -1),
        call([tensor(2, 3), tensor(2, 3, dtype="float64")]), call([tensor(0), tensor(2, 3)], gradient=False),
    ),
    errors=[
        error(RuntimeError, "except in dimension 0", [tensor(2, 3), tensor(3, 2)]),
        error(ValueError, "non-empty", []),
        error(IndexError, "out of range", [tensor(2, 3)], 2),
    ],
)  # fmt: skip
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along ``dim``; dtypes are promoted."""
    ...


@cat.vjp
def _(ct, tensors_spec, dim):
    dim = canonical_dim("cat", dim, len(ct.shape))
    grads: list[Any] = []
    start: Size = 0
    for spec in tensors_spec:
        if len(spec.shape) != len(ct.shape):
            grads.append(None)
            continue
        end = start + spec.shape[dim]
        grads.append(ops.slice(ct, dim, start, end))
        start = end
    return (grads,)


@cat.normalize
def _(tensors, dim=0):
    parts = _legacy_empty(tensors)
    dtype = result_dtype(*tensors)
    place = canonical_dim("cat", dim, len(parts[0].shape))
    if len(parts) == 1:
        return ops.convert_element_type(parts[0], dtype)
    if place == dim and len(parts) == len(tensors) and all(element_type(t) is dtype for t in tensors):
        return NotImplemented
    return ops.cat([ops.convert_element_type(t, dtype) for t in parts], place)


# -- flip ------------------------------------------------------------------------------------------------


def _flip_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    return canonical_dims("flip", given, ndim) if given else ()


def _flip_meta(input: Any, dims: Any) -> TensorSpec:
    _flip_dims(dims, len(input.shape))
    return TensorSpec(input.shape, input.dtype, elementwise_strides(input.shape, (input,)), input.device)


def _flip(input: Any, dims: Any) -> Any:
    out = array_namespace(input).empty_like(input)
    out[...] = array_namespace(input).flip(input, _flip_dims(dims, input.ndim))
    return out


@primitive(
    names=both("flip"),
    meta=_flip_meta,
    reference=_flip,
    variadic="dims",
    samples=calls(call(tensor(2, 3), (0,)), call(tensor(2, 3, 4), (-1, 0)), call(tensor(2, 3), 1)),
    errors=[
        error(IndexError, "out of range", tensor(2), (1,)),
        error(RuntimeError, "multiple times", tensor(2), (0, 0)),
    ],
)
def flip(input: Tensor, dims: Shape) -> Tensor:
    """The order of the elements reversed along ``dims`` (a copy)."""
    ...


@flip.vjp
def _(ct, dims):
    return (ops.flip(ct, dims),)


@flip.normalize
def _(input, dims):
    order = _flip_dims(dims, len(input.shape))
    return NotImplemented if order == dims else ops.flip(input, order) if order else input


# -- pad -------------------------------------------------------------------------------------------------


def _pad_meta(input: Any, low: Any, high: Any, value: Any = 0, interior: Any = None) -> TensorSpec:
    ndim = len(input.shape)
    if len(low) != ndim or len(high) != ndim or (interior is not None and len(interior) != ndim):
        raise RuntimeError(f"pad: one amount for each of the {ndim} dimensions is wanted, got {low} and {high}")
    shape = []
    for d, size in enumerate(input.shape):
        gaps = 0 if interior is None or (type(interior[d]) is int and interior[d] == 0) else (size - 1) * interior[d]
        new = low[d] + size + gaps + high[d]
        if type(new) is int and new < 0:
            raise RuntimeError(f"pad: dimension {d} of {list(input.shape)} would get the size {new}")
        shape.append(new)
    return TensorSpec(shape, input.dtype, None, input.device)


def _pad(input: Any, low: Any, high: Any, value: Any = 0, interior: Any = None) -> Any:
    xp = array_namespace(input)
    shape = tuple(int(s) for s in _pad_meta(spec_of(input), low, high, value, interior).shape)
    out = xp.full(shape, np.asarray(value).astype(input.dtype)[()], dtype=input.dtype)
    source, target = [], []
    for d, size in enumerate(input.shape):
        step, start = (0 if interior is None else int(interior[d])) + 1, int(low[d])
        first = max(0, (step - 1 - start) // step if start < 0 else 0)
        last = min(size, (shape[d] - 1 - start) // step + 1) if shape[d] else 0
        source.append(slice(first, max(last, first)))
        target.append(
            slice(
                start + first * step,
                start + max(last - 1, first) * step + 1 if last > first else start + first * step,
                step,
            )
        )
    out[tuple(target)] = input[tuple(source)]
    return out


@primitive(
    meta=_pad_meta,
    reference=_pad,
    samples=calls(
        call(tensor(2, 3), (1, 0), (0, 2), 1.5), call(tensor(4), (-1,), (-1,)), call(tensor(3), (1,), (1,), 0.0, (1,)),
        call(tensor(5), (-1,), (-1,), 0.0, (1,)),
    ),
    errors=[
        error(RuntimeError, "one amount for each", tensor(2, 3), (1,), (1,)),
        error(RuntimeError, "size -1", tensor(1), (-1,), (-1,)),
    ],
)  # fmt: skip
def pad(input: Tensor, low: Shape, high: Shape, value: Scalar = 0, interior: Shape | None = None) -> Tensor:
    """``value`` around (low and high, negative crops) and between (interior) the elements of each dimension."""
    ...


@pad.vjp
def _(ct, input_spec, low, high, interior):
    ndim = len(input_spec.shape)
    opposite = ops.pad(ct, tuple(-a for a in low), tuple(-a for a in high))
    for d in range(ndim):
        if interior is not None and interior[d]:
            opposite = ops.slice(opposite, d, 0, None, interior[d] + 1)
    return (opposite,)


@pad.normalize
def _(input, low, high, value=0, interior=None):
    if not any(type(a) is not int or a for a in (*low, *high, *(interior or ()))):
        return input
    given = interior if interior is not None else (0,) * len(input.shape)
    kind = element_type(input).kind
    number = (
        bool(value)
        if kind == "bool"
        else int(value)
        if kind == "int"
        else float(value)
        if kind == "float"
        else complex(value)
    )
    if interior is given and type(value) is type(number) and all(type(x) is tuple for x in (low, high, given)):
        return NotImplemented
    return ops.pad(input, tuple(low), tuple(high), number, tuple(given))


# -- scatters --------------------------------------------------------------------------------------------


@composite(
    names=both("slice_scatter"),
    samples=calls(
        call(tensor(5, 3), tensor(2, 3), 0, 1, 3), call(tensor(5, 3), tensor(5, 1), 1, -1),
        call(tensor(7), tensor(3), 0, 0, 6, 2), call(tensor(3), tensor(3)),
    ),
)  # fmt: skip
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1
) -> Tensor:
    """``input`` with ``input[start:end:step]`` along ``dim`` replaced by ``src``."""
    ndim, dtype = len(input.shape), element_type(input)
    dim, start, end = slice_bounds(input, dim, start, end, step)
    size, length = input.shape[dim], src.shape[dim]
    src = src if element_type(src) is dtype else ops.convert_element_type(src, dtype)
    if (
        type(step) is int
        and step == 1
        and type(start) is int
        and start == 0
        and end is not None
        and surely_same((end,), (size,))
    ):
        return src
    if type(length) is int and length == 0:
        return input
    low: list[Any] = [0] * ndim
    high, interior = list(low), list(low)
    low[dim], interior[dim] = start, step - 1
    high[dim] = size - start - ((length - 1) * step + 1)
    padded = ops.pad(src, tuple(low), tuple(high), 0, tuple(interior))
    return ops.where(_inside(ops.iota(size, device=input.device), start, end, step, ndim - dim - 1), padded, input)


def _inside(place: Any, start: Any, end: Any, step: Any, trailing: int) -> Any:
    """Bools along one dimension: is the place in ``range(start, end, step)``."""
    chosen = ops.bitwise_and(ops.ge(place, start), ops.lt(place, end))
    if not (type(step) is int and step == 1):
        chosen = ops.bitwise_and(chosen, ops.eq(ops.remainder(ops.sub(place, start), step), 0))
    return ops.reshape(chosen, (place.shape[0],) + (1,) * trailing)


@composite(
    names=both("select_scatter"),
    samples=calls(call(tensor(5, 3), tensor(3), 0, 2), call(tensor(2, 3), tensor(2), 1, -1)),
)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: Size) -> Tensor:
    """``input`` with the element ``index`` along ``dim`` replaced by ``src``."""
    dim = canonical_dim("select_scatter", dim, len(input.shape))
    chosen = ops.eq(ops.iota(input.shape[dim], device=input.device), index if index >= 0 else index + input.shape[dim])
    chosen = ops.reshape(chosen, (input.shape[dim],) + (1,) * (len(input.shape) - dim - 1))
    src = ops.convert_element_type(src, element_type(input)) if element_type(src) is not element_type(input) else src
    return ops.where(chosen, ops.unsqueeze(src, dim), input)
