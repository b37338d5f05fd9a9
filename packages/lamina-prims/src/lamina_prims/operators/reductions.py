"""Reduction primitives: sum, prod, amax, amin, any, all, argmax, argmin, and what front ends call max and min."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lamina_fx import DType, TensorSpec, bool_, int64, uint8

from ..arrays import array_dtype, array_namespace, element_type, numpy_dtype, plain_float
from ..dims import canonical_dims
from ..ordering import ordered
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, reduction, tensor
from ..types import Shape, Size, Tensor

__all__ = ["all_", "amax", "amin", "any_", "keep_dims", "prod", "reduced_shape", "sum_"]

Dims = Any


def reduced_shape(shape: Any, dims: tuple[int, ...], keepdim: bool) -> tuple[Size, ...]:
    """The shape that is left when ``dims`` are reduced."""
    if keepdim:
        return tuple(1 if d in dims else s for d, s in enumerate(shape))
    return tuple(s for d, s in enumerate(shape) if d not in dims)


def keep_dims(value: Any, shape: Any, dims: tuple[int, ...]) -> Any:
    """Put sizes of 1 back where ``dims`` of ``shape`` were reduced, so that the value broadcasts again."""
    kept = reduced_shape(shape, dims, True)
    return value if len(value.shape) == len(kept) else ops.reshape(value, kept)


def spread(value: Any, shape: Any, dims: tuple[int, ...]) -> Any:
    """A reduced value repeated over the reduced ``dims`` of ``shape`` (keepdim or not)."""
    if len(value.shape) == len(shape):
        return ops.broadcast_in_dim(value, tuple(shape), tuple(range(len(shape))))
    return ops.broadcast_in_dim(value, tuple(shape), tuple(d for d in range(len(shape)) if d not in dims))


def _summed(dtype: DType) -> DType:
    return int64 if dtype.kind in ("bool", "int") else dtype


def _truth(dtype: DType) -> DType:
    return uint8 if dtype is uint8 else bool_


def _meta(name: str, result: Callable[[DType], DType], needs_elements: bool = False) -> Callable[..., TensorSpec]:
    def meta(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> TensorSpec:
        dims = canonical_dims(name, dim, len(input.shape))
        if needs_elements and any(type(input.shape[d]) is int and input.shape[d] == 0 for d in dims):
            raise IndexError(f"{name}: expected the reduced dimensions of {list(input.shape)} to have non-zero size")
        return TensorSpec(reduced_shape(input.shape, dims, keepdim), dtype or result(input.dtype), None, input.device)

    return meta


def _reference(name: str, numpy_name: str, result: Callable[[DType], DType], needs_elements: bool = False) -> Any:
    def run(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        xp = array_namespace(input)
        dims = canonical_dims(name, dim, input.ndim)
        target = numpy_dtype(dtype or result(array_dtype(input.dtype)))
        if needs_elements and any(input.shape[d] == 0 for d in dims):
            raise IndexError(f"{name}: expected the reduced dimensions of {list(input.shape)} to have non-zero size")
        wide = plain_float(input.astype(target) if dtype is not None and input.dtype != target else input)
        extra = {"dtype": plain_float(np.empty(0, target)).dtype} if numpy_name in ("sum", "prod") else {}
        with np.errstate(all="ignore"):
            value = getattr(xp, numpy_name)(wide, axis=dims, keepdims=keepdim, **extra)
        return xp.asarray(value, dtype=target, order="C")

    return run


def _facets(
    name: str, numpy_name: str, result: Callable[[DType], DType], needs_elements: bool = False
) -> dict[str, Any]:
    return {
        "meta": _meta(name, result, needs_elements),
        "reference": _reference(name, numpy_name, result, needs_elements),
        "errors": [
            error(IndexError, "out of range", tensor(2, 3), 2),
            error(RuntimeError, "multiple times", tensor(2, 3), (0, 0)),
            *([error(RuntimeError, "have no order", tensor(3, dtype="complex64"))] if needs_elements else []),
        ],
    }


def _narrow(op: Any, input: Any, dim: Dims, keepdim: bool, dtype: DType) -> Any:
    """A sum or product in a type smaller than the strict call's: equal modulo its range."""
    wide = op(ops.convert_element_type(input, dtype), dim, keepdim, dtype=_summed(dtype))
    return ops.convert_element_type(wide, dtype)


def _strict(op: Any, input: Any, dim: Dims, keepdim: bool, dtype: DType) -> Any:
    """The strict call: sorted dims, input converted to ``dtype``, no keepdim; NotImplemented when it is strict."""
    ndim = len(input.shape)
    dims = canonical_dims(op.id, dim, ndim)
    if not dims:
        return ops.convert_element_type(input, dtype)
    if not keepdim and dims == dim and element_type(input) is dtype:
        return NotImplemented
    if element_type(input) is not dtype:
        input = ops.ne(input, 0) if dtype is bool_ else ops.convert_element_type(input, dtype)
    value = op(input, dims)
    return ops.reshape(value, reduced_shape(input.shape, dims, True)) if keepdim else value


@primitive(
    id="sum",
    names=both("sum"),
    **_facets("sum", "sum", _summed),
    samples=reduction(),
)
def sum_(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over ``dim`` (all dimensions when None). Integers and bools are summed in int64."""
    ...


@sum_.vjp
def _(ct, input_spec, dim):
    shape = input_spec.shape
    return (spread(ct, shape, canonical_dims("sum", dim, len(shape))),)


@sum_.normalize
def _(input, dim=None, keepdim=False, *, dtype=None):
    target = dtype or _summed(element_type(input))
    if _summed(target) is not target:
        return _narrow(ops.sum, input, dim, keepdim, target)
    result = _strict(ops.sum, input, dim, keepdim, target)
    return ops.sum(input, dim) if result is NotImplemented and dtype is not None else result


@primitive(names=both("prod"), **_facets("prod", "prod", _summed), samples=reduction())
def prod(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over ``dim`` (all dimensions when None). Integers and bools are multiplied in int64."""
    ...


@prod.vjp
def _(ct, input, dim):
    shape = tuple(input.shape)
    dims = canonical_dims("prod", dim, len(shape))
    zero = ops.eq(input, 0)
    zeros = spread(ops.sum(zero, dims), shape, dims)
    rest = ops.where(zero, 1, input)  # dividing the product by the element fails where the element is 0
    product = ops.mul(spread(ct, shape, dims), spread(ops.prod(rest, dims), shape, dims))
    alone = ops.eq(zeros, ops.convert_element_type(zero, int64))
    return (ops.where(alone, ops.div(product, rest), 0),)


@prod.normalize
def _(input, dim=None, keepdim=False, *, dtype=None):
    target = dtype or _summed(element_type(input))
    if _summed(target) is not target:
        return _narrow(ops.prod, input, dim, keepdim, target)
    result = _strict(ops.prod, input, dim, keepdim, target)
    return ops.prod(input, dim) if result is NotImplemented and dtype is not None else result


@primitive(
    names=both("amax"),
    **_facets("amax", "max", partial(ordered, "amax"), True),
    samples=reduction(kind="distinct", empty=False, dtypes=("float32", "float64", "int64")),
)
def amax(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False) -> Tensor:
    """The largest element over ``dim``; nan when there is one."""
    ...


@primitive(
    names=both("amin"),
    **_facets("amin", "min", partial(ordered, "amin"), True),
    samples=reduction(kind="distinct", empty=False, dtypes=("float32", "float64", "int64")),
)
def amin(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False) -> Tensor:
    """The smallest element over ``dim``; nan when there is one."""
    ...


def _extremum_vjp(ct: Any, out: Any, input: Any, dim: Any) -> Any:
    """The cotangent, shared evenly between the elements that are equal to the extremum."""
    shape = tuple(input.shape)
    dims = canonical_dims("amax", dim, len(shape))
    chosen = ops.eq(input, spread(out, shape, dims))
    count = spread(ops.sum(chosen, dims), shape, dims)
    return (ops.where(chosen, ops.div(spread(ct, shape, dims), count), 0),)


@amax.vjp
def _(ct, out, input, dim):
    return _extremum_vjp(ct, out, input, dim)


@amin.vjp
def _(ct, out, input, dim):
    return _extremum_vjp(ct, out, input, dim)


@amax.normalize
def _(input, dim=None, keepdim=False):
    return _strict(ops.amax, input, dim, keepdim, element_type(input))


@amin.normalize
def _(input, dim=None, keepdim=False):
    return _strict(ops.amin, input, dim, keepdim, element_type(input))


@primitive(
    id="any",
    names=both("any"),
    **_facets("any", "any", _truth),
    samples=reduction(dtypes=("bool", "float32", "int64", "uint8")),
)
def any_(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False) -> Tensor:
    """Is some element over ``dim`` not 0. Bools (uint8 of uint8)."""
    ...


@primitive(
    id="all",
    names=both("all"),
    **_facets("all", "all", _truth),
    samples=reduction(dtypes=("bool", "float32", "int64", "uint8")),
)
def all_(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False) -> Tensor:
    """Is no element over ``dim`` 0. Bools (uint8 of uint8)."""
    ...


any_.vjp(lambda: (None,))
all_.vjp(lambda: (None,))


def _strict_truth(op: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    result = _strict(op, input, dim, keepdim, bool_)
    return ops.convert_element_type(result, uint8) if element_type(input) is uint8 else result


@any_.normalize
def _(input, dim=None, keepdim=False):
    return _strict_truth(ops.any, input, dim, keepdim)


@all_.normalize
def _(input, dim=None, keepdim=False):
    return _strict_truth(ops.all, input, dim, keepdim)


@composite(names=both("count_nonzero"), samples=calls(call(tensor(2, 3)), call(tensor(2, 3, dtype="bool"), 1)))
def count_nonzero(input: Tensor, dim: int | Shape | None = None) -> Tensor:
    """How many elements over ``dim`` are not 0."""
    return ops.sum(input if element_type(input) is bool_ else ops.ne(input, 0), dim)


@composite(names=both("nansum"), samples=calls(call(tensor(12, kind="special"), gradient=False), call(tensor(2, 3), 1)))
def nansum(
    input: Tensor, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum over ``dim``, nan counting as 0."""
    clean = ops.where(ops.isnan(input), 0, input) if element_type(input).kind == "float" else input
    return ops.sum(clean, dim, keepdim, dtype=dtype)


@composite(names=("Tensor.sum_to_size",), variadic="size", samples=calls(call(tensor(4, 2, 3), (2, 1))))
def sum_to_size(input: Tensor, size: Shape) -> Tensor:
    """Sum over the dimensions in which ``input`` was broadcast from ``size``."""
    lead = len(input.shape) - len(size)
    dims = list(range(lead))
    for d, want in enumerate(size):
        have = input.shape[lead + d]
        if have is not want and have != want:
            dims.append(lead + d)
    if not dims:
        return input
    return ops.reshape(ops.sum(input, tuple(dims)), tuple(size))
