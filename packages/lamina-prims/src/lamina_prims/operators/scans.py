"""Scans: running sums, products, extrema and log-sum-exp along one dimension.

Strict form: a non-negative ``dim``; the input has the result's dtype already, and ``dtype`` is None where that is what
the input gives by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import DType, TensorSpec, bool_, float32, int8, int64

from ..arrays import array_dtype, array_namespace, numpy_dtype
from ..dims import canonical_dim
from ..ordering import ordered
from ..registry import ops, primitive
from ..samples import call, calls, chain, error, tensor
from ..types import Tensor

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]

_ERRORS = [error(IndexError, "out of range", tensor(2, 3), 2)]
_SAMPLES = chain(
    calls(
        call(tensor(2, 3, 4), 1),
        call(tensor(3, 4), -1),
        call(tensor(4, 3, kind="transposed"), 0),
        call(tensor(), 0),
        call(tensor(0, 3), 1),
        call(tensor(5, dtype="bfloat16"), 0),
    )
)
_DTYPED = chain(
    _SAMPLES,
    calls(
        call(tensor(4, dtype="int32", low=-3, high=4), 0),
        call(tensor(4, dtype="bool"), 0),
        call(tensor(4), 0, dtype=float32),
        call(tensor(4, dtype="int64", low=-3, high=4), 0, dtype=float32),
        call(tensor(3, 5, dtype="int32", low=50, high=90), 1, dtype=int8),
        call(tensor(5, dtype="bool"), 0, dtype=bool_),
    ),
)


def _sum_dtype(input: Any, dtype: DType | None) -> DType:
    have = input.dtype if type(input.dtype) is DType else array_dtype(input.dtype)
    if dtype is not None:
        return dtype
    return int64 if have.kind in ("bool", "int") else have


def _accumulating(name: str) -> Any:
    """Meta of cumsum and cumprod: integers add up in int64."""

    def meta(input: Tensor, dim: int, *, dtype: DType | None = None) -> TensorSpec:
        canonical_dim(name, dim, len(input.shape))
        return TensorSpec(input.shape, _sum_dtype(input, dtype), None, input.device)

    return meta


def _reference(ufunc: str) -> Any:
    def run(input: Any, dim: int, *, dtype: DType | None = None) -> Any:
        xp = array_namespace(input)
        want = _sum_dtype(input, dtype)
        wide = xp.float32 if want.kind == "float" and want.itemsize < 4 else numpy_dtype(want)
        value = xp.asarray(input).astype(wide, order="C")
        if value.ndim:
            value = getattr(xp, ufunc).accumulate(value, axis=dim)
        return value.astype(numpy_dtype(want), copy=False)

    return run


def _strict(op: Any) -> Any:
    """The rule of cumsum and cumprod: convert first, count the dimension from the front."""

    def rule(input: Tensor, dim: int, *, dtype: DType | None = None) -> Any:
        want = _sum_dtype(input, dtype)
        place = canonical_dim(op.id, dim, len(input.shape))
        given = None if want.kind == "float" or want is int64 or want.kind == "complex" else want
        if input.dtype is want and dtype is given and place == dim:
            return NotImplemented
        return op(input if input.dtype is want else ops.convert_element_type(input, want), place, dtype=given)

    return rule


@primitive(
    names=("cumsum", "Tensor.cumsum"),
    in_place=True,
    meta=_accumulating("cumsum"),
    reference=_reference("add"),
    samples=_DTYPED,
    errors=_ERRORS,
)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Sums of the first 1, 2, ... elements along ``dim``. Same shape; bool and integers give int64."""
    ...


cumsum.normalize(_strict(cumsum))


@cumsum.vjp
def _(ct, dim):
    return (ops.flip(cumsum(ops.flip(ct, (dim,)), dim), (dim,)),)


@primitive(
    names=("cumprod", "Tensor.cumprod"),
    in_place=True,
    meta=_accumulating("cumprod"),
    reference=_reference("multiply"),
    samples=_DTYPED,
    errors=_ERRORS,
)
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Products of the first 1, 2, ... elements along ``dim``. Same shape; bool and integers give int64."""
    ...


cumprod.normalize(_strict(cumprod))


def _reverse_cumsum(value: Tensor, dim: int) -> Tensor:
    return ops.flip(cumsum(ops.flip(value, (dim,)), dim), (dim,))


@cumprod.vjp
def _(ct, out, input, dim):
    # Up to the first zero the quotient rule holds; there, the product runs over the others; behind it all is 0.
    zero = ops.eq(input, 0)
    zeros_seen = cumsum(zero, dim)
    first = ops.bitwise_and(zero, ops.eq(zeros_seen, 1))
    others = cumprod(ops.where(first, ops.full_like(input, 1), input), dim)
    before = ops.div(_reverse_cumsum(ops.mul(ct, out), dim), ops.where(zero, ops.full_like(input, 1), input))
    at_first = _reverse_cumsum(ops.mul(ct, others), dim)
    nothing = ops.zeros_like(before)
    return (ops.where(ops.eq(zeros_seen, 0), before, ops.where(first, at_first, nothing)),)


def _extremum_meta(name: str) -> Any:
    def meta(input: Tensor, dim: int) -> tuple[TensorSpec, TensorSpec]:
        canonical_dim(name, dim, len(input.shape))
        ordered(name, input.dtype)
        return (
            TensorSpec(input.shape, input.dtype, None, input.device),
            TensorSpec(input.shape, int64, None, input.device),
        )

    return meta


def _extremum_reference(name: str, ufunc: str) -> Any:
    def run(input: Any, dim: int) -> tuple[Any, Any]:
        xp = array_namespace(input)
        input = xp.asarray(input)
        ordered(name, array_dtype(input.dtype))
        if input.ndim == 0:
            return input.copy(), xp.zeros((), xp.int64)
        best = getattr(xp, ufunc).accumulate(input, axis=dim)
        shape = [1] * input.ndim
        shape[dim] = input.shape[dim]
        place = xp.arange(input.shape[dim], dtype=xp.int64).reshape(shape)
        hit = (input == best) | (input != input)  # a NaN is the extremum from where it stands
        return best, xp.maximum.accumulate(xp.where(hit, place, 0), axis=dim)

    return run


def _dim_strict(op: Any) -> Any:
    def rule(input: Tensor, dim: int) -> Any:
        place = canonical_dim(op.id, dim, len(input.shape))
        return NotImplemented if place == dim else op(input, place)

    return rule


_NO_ORDER = error(RuntimeError, "have no order", tensor(3, dtype="complex64"), 0)
_EXTREMA = calls(
    call(tensor(2, 3, 4, kind="distinct"), 1),
    call(tensor(3, 4, kind="distinct"), -1),
    call(tensor(6, dtype="int64", low=0, high=3), 0),
    call(tensor(8, kind="special"), 0),
    call(tensor(), 0),
    call(tensor(0, 3), 1),
)


@primitive(
    result_names=("values", "indices"),
    names=("cummax", "Tensor.cummax"),
    meta=_extremum_meta("cummax"),
    reference=_extremum_reference("cummax", "maximum"),
    samples=_EXTREMA,
    errors=[*_ERRORS, _NO_ORDER],
)
def cummax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """(running maximum along ``dim``, int64 position of its last occurrence so far). NaN wins."""
    ...


@primitive(
    result_names=("values", "indices"),
    names=("cummin", "Tensor.cummin"),
    meta=_extremum_meta("cummin"),
    reference=_extremum_reference("cummin", "minimum"),
    samples=_EXTREMA,
    errors=[*_ERRORS, _NO_ORDER],
)
def cummin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """(running minimum along ``dim``, int64 position of its last occurrence so far). NaN wins."""
    ...


@cummax.vjp
@cummin.vjp
def _(ct, out, dim):
    if len(ct[0].shape) == 0:
        return (ct[0],)
    return (ops.scatter_add(ops.zeros_like(ct[0]), dim, out[1], ct[0]),)


cummax.normalize(_dim_strict(cummax))
cummin.normalize(_dim_strict(cummin))


def _log_meta(input: Tensor, dim: int) -> TensorSpec:
    canonical_dim("logcumsumexp", dim, len(input.shape))
    if input.dtype.kind != "float":
        raise NotImplementedError(f"logcumsumexp is defined for floating-point tensors only, not {input.dtype}")
    return TensorSpec(input.shape, input.dtype, None, input.device)


def _log_reference(input: Any, dim: int) -> Any:
    xp = array_namespace(input)
    input = xp.asarray(input)
    if input.ndim == 0:
        return input.copy()
    wide = input.astype(xp.float32 if input.dtype.itemsize < 4 else input.dtype, order="C")
    with np.errstate(all="ignore"):
        return xp.logaddexp.accumulate(wide, axis=dim).astype(input.dtype, copy=False)


@primitive(
    names=("logcumsumexp", "Tensor.logcumsumexp"),
    meta=_log_meta,
    reference=_log_reference,
    samples=_SAMPLES,
    errors=[*_ERRORS, error(NotImplementedError, "floating-point", tensor(3, dtype="int64"), 0)],
)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """log(cumsum(ops.exp(input), dim)) without overflow. Same shape, floating dtypes only."""
    ...


logcumsumexp.normalize(_dim_strict(logcumsumexp))


@logcumsumexp.vjp
def _(ct, out, input, dim):
    # sum over j >= i of ct_j ops.exp(x_i - out_j), in logarithms, positive and negative cotangents apart
    lowest = ops.full_like(ct, -float("inf"))

    def part(value: Tensor) -> Tensor:
        logs = ops.where(ops.gt(value, 0), ops.log(value), lowest)
        summed = ops.flip(logcumsumexp(ops.flip(ops.sub(logs, out), (dim,)), dim), (dim,))
        return ops.exp(ops.add(summed, input))

    return (ops.sub(part(ct), part(ops.neg(ct))),)
