"""Operators whose result depends on which values occur: unique, histc, quantile."""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import TensorSpec, int64

from ..arrays import array_namespace, element_type
from ..dims import canonical_dim, numel
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .indexing import unbacked_size

__all__: list[str] = []


def _unique_meta(input: Any, dim: int | None, consecutive: bool) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    device = input.device
    if dim is None:
        count = unbacked_size("unique", numel(input.shape))
        values, places = (count,), tuple(input.shape)
    else:
        place = canonical_dim("unique", dim, len(input.shape))
        count = unbacked_size("unique", input.shape[place])
        values = (*input.shape[:place], count, *input.shape[place + 1 :])
        places = (input.shape[place],)
    return (
        TensorSpec(values, input.dtype, None, device),
        TensorSpec(places, int64, None, device),
        TensorSpec((count,), int64, None, device),
    )


def _unique_reference(input: Any, dim: int | None, consecutive: bool) -> tuple[Any, Any, Any]:
    xp = array_namespace(input)
    array = input.reshape(-1) if dim is None else xp.moveaxis(input, dim, 0)
    rows = array.reshape(array.shape[0], math.prod(array.shape[1:]))
    if consecutive:
        starts = xp.ones(len(rows), bool)
        starts[1:] = (rows[1:] != rows[:-1]).any(1)
        inverse = xp.cumsum(starts) - 1
        values = array[starts]
        counts = xp.bincount(inverse, minlength=len(values)) if len(rows) else xp.zeros(0, xp.int64)
    else:
        # each NaN is a value of its own, as in PyTorch
        axis = None if array.ndim == 1 else 0
        values, inverse, counts = xp.unique(array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = inverse.reshape(input.shape if dim is None else -1).astype(xp.int64)
    return values if dim is None else xp.moveaxis(values, 0, dim), inverse, counts.astype(xp.int64)


_REPEATED = tensor(3, 4, dtype="int64", low=0, high=5)
_SETS = calls(
    call(_REPEATED),
    call(tensor(7, kind="special")),
    call(tensor(4, 2, dtype="int64", low=0, high=2), dim=0),
    call(tensor(2, 5, dtype="int64", low=0, high=2), dim=1),
)


@primitive(
    meta=_unique_meta,
    reference=_unique_reference,
    tags=frozenset({"dynamic"}),
    samples=calls(call(_REPEATED, None, False), call(_REPEATED, None, True), call(_REPEATED, 0, False)),
)
def unique_with_counts(input: Tensor, dim: int | None, consecutive: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(values that occur, for each element the place of its value, how often each occurs).

    ``dim``: whole slices along it are the values. ``consecutive``: only neighbours count as equal, nothing is sorted.
    """
    ...


unique_with_counts.vjp(lambda: (None,))


def _wanted(result: tuple[Tensor, Tensor, Tensor], return_inverse: bool, return_counts: bool) -> Any:
    parts = [result[0]]
    if return_inverse:
        parts.append(result[1])
    if return_counts:
        parts.append(result[2])
    return parts[0] if len(parts) == 1 else tuple(parts)


@composite(names=both("unique"), samples=_SETS, tags=frozenset({"dynamic"}))
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor:
    """The values that occur, ascending; with inverse places and counts when asked for. The size depends on values."""
    return _wanted(ops.unique_with_counts(input, dim, False), return_inverse, return_counts)


@composite(names=both("unique_consecutive"), samples=_SETS, tags=frozenset({"dynamic"}))
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor:
    """The values with runs of equal ones taken together. The size depends on values."""
    return _wanted(ops.unique_with_counts(input, dim, True), return_inverse, return_counts)


@composite(
    names=both("histc"),
    samples=calls(call(tensor(3, 4), 5, -2, 2), call(tensor(9), 4, 0, 1), call(tensor(9, dtype="float64"), 3, -1, 1)),
    errors=[error(RuntimeError, "bins", tensor(3), 0, 0, 1)],
)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of ``bins`` equal bins of [min, max] (the last one is closed)."""
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins}")
    if min > max:
        raise RuntimeError(f"histc: max must be larger than min, got {max} < {min}")
    flat = ops.reshape(input, (-1,))
    dtype = element_type(input)
    low: Any = min
    high: Any = max
    if min == max:
        low, high = ops.amin(flat), ops.amax(flat)
        same = ops.eq(low, high)
        low, high = ops.where(same, ops.sub(low, 1), low), ops.where(same, ops.add(high, 1), high)
    scaled = ops.div(ops.mul(ops.sub(flat, low), bins), ops.sub(high, low) if min == max else max - min)
    place = ops.clamp(ops.convert_element_type(ops.floor(scaled), int64), 0, bins - 1)
    inside = ops.convert_element_type(ops.logical_and(ops.ge(flat, low), ops.le(flat, high)), dtype)
    return ops.scatter_add(ops.zeros((bins,), dtype=dtype, device=input.device), 0, place, inside)


def _quantiles(input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool, name: str) -> Tensor:
    if element_type(input).kind != "float" or element_type(input).itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    scalar = not hasattr(q, "shape")
    if scalar and not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    rank = len(input.shape)
    value = ops.reshape(input, (-1,)) if dim is None else ops.movedim(input, canonical_dim(name, dim, rank), -1)
    ordered = ops.sort(value, -1)[0]
    good = ops.sum(ops.eq(value, value), -1, True)
    last = ops.sub(ops.convert_element_type(good, element_type(input)), 1.0) if skip_nan else float(value.shape[-1] - 1)
    point = (
        ops.full((1,), float(q), dtype=element_type(input), device=input.device) if scalar else ops.reshape(q, (-1,))
    )
    position = ops.mul(ops.expand(point, (*value.shape[:-1], point.shape[0])), last)
    result = _between(ordered, ops.maximum(position, 0.0), interpolation)
    if not skip_nan:
        result = ops.where(ops.eq(good, value.shape[-1]), result, float("nan"))
    return _placed(result, input, q, dim, keepdim, scalar)


def _between(ordered: Tensor, position: Tensor, interpolation: str) -> Tensor:
    low, high = ops.floor(position), ops.ceil(position)
    if interpolation == "nearest":
        low = high = ops.round(position)
    below = ops.gather(ordered, -1, ops.convert_element_type(low, int64))
    if interpolation in ("lower", "nearest"):
        return below
    above = ops.gather(ordered, -1, ops.convert_element_type(high, int64))
    if interpolation == "higher":
        return above
    share = 0.5 if interpolation == "midpoint" else ops.sub(position, low)
    return ops.lerp(below, above, share)


def _placed(result: Tensor, input: Tensor, q: Any, dim: Any, keepdim: bool, scalar: bool) -> Tensor:
    """From (*, quantiles) to PyTorch's layout: the quantiles first (when q has a dimension), ``dim`` kept or not."""
    rank = len(input.shape)
    result = ops.movedim(result, -1, 0)
    if keepdim:
        if dim is None:
            result = ops.reshape(result, (result.shape[0], *(1,) * rank))
        else:
            result = ops.unsqueeze(result, canonical_dim("quantile", dim, rank) + 1)
    return ops.squeeze(result, 0) if scalar or len(q.shape) == 0 else result


_QUANTILES = calls(
    call(tensor(3, 5, kind="distinct"), 0.3),
    call(tensor(3, 5, kind="distinct"), 0.6, 1, True),
    call(tensor(3, 5, kind="distinct"), tensor(2, low=0, high=1), 0, gradient=False),
    call(tensor(3, 5, kind="distinct"), 0.3, 1, interpolation="midpoint"),
    call(tensor(3, 5, kind="distinct"), 0.3, 1, interpolation="nearest"),
    call(tensor(12, kind="special"), 0.4, gradient=False),
)
_BAD = [
    error(RuntimeError, "range", tensor(3), 1.5),
    error(RuntimeError, "interpolation", tensor(3), 0.5, interpolation="cubic"),
]


@composite(names=both("quantile"), samples=_QUANTILES, errors=_BAD)
def quantile(
    input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantile of all elements or along ``dim``; NaN where there is one."""
    return _quantiles(input, q, dim, keepdim, interpolation, False, "quantile")


@composite(names=both("nanquantile"), samples=_QUANTILES, errors=_BAD)
def nanquantile(
    input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantile of the numbers among the elements."""
    return _quantiles(input, q, dim, keepdim, interpolation, True, "nanquantile")
