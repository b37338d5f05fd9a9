"""scatter, scatter_add and scatter_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec

from ..arrays import array_namespace, element_type
from ..dims import canonical_dim
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Scalar, Tensor
from .index_update import same_layout
from .indexing import check_bounds, check_gather, open_grid

__all__: list[str] = []

_INDEX = {"dtype": "int64", "low": 0, "high": 2}


# -- scatter ---------------------------------------------------------------------------------------------


def _check_scatter(name: str, input: Any, dim: int, index: Any, src: Any) -> int:
    dim = check_gather(name, input, dim, index)
    if element_type(src) is not element_type(input):
        raise RuntimeError(
            f"{name}: expected src of the dtype of input, {element_type(input)}, got {element_type(src)}"
        )
    if len(src.shape) != len(index.shape) or any(
        a is not b and a > b for a, b in zip(index.shape, src.shape, strict=True)
    ):
        raise RuntimeError(f"{name}: index {list(index.shape)} must not be larger than src {list(src.shape)}")
    return dim


def _targets(name: str, input: Any, dim: int, index: Any, src: Any) -> tuple[Any, Any]:
    """Where each element goes, and the elements (the part of src that index covers)."""
    if not input.ndim:
        check_bounds(name, index, 1, 0)
        return (), src
    check_bounds(name, index, input.shape[dim], dim)
    return open_grid(array_namespace(input), index.shape, dim, index), src[tuple(slice(n) for n in index.shape)]


def _scatter(input: Any, dim: int, index: Any, src: Any) -> Any:
    dim = _check_scatter("scatter", input, dim, index, src)
    out = input.copy(order="K")
    where, values = _targets("scatter", input, dim, index, src)
    out[where] = values
    return out


def _scatter_meta(name: str) -> Any:
    def meta(input: Any, dim: int, index: Any, src: Any) -> TensorSpec:
        _check_scatter(name, input, dim, index, src)
        return same_layout(input)

    return meta


_SCATTER_ERRORS = [
    error(RuntimeError, "int32/int64", tensor(2, 3), 0, tensor(2, 3), tensor(2, 3)),
    error(RuntimeError, "dtype of input", tensor(2, 3), 0, tensor(2, 3, **_INDEX), tensor(2, 3, dtype="float64")),
]


@primitive(
    names=both("scatter"),
    in_place=True,
    meta=_scatter_meta("scatter"),
    reference=_scatter,
    samples=calls(
        call(tensor(2, 3), 0, np.array([[1, 0, 1]]), tensor(2, 3)), call(tensor(4), -1, np.array([2, 0]), tensor(2))
    ),
    errors=_SCATTER_ERRORS,
)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with result[index[i][j]][j] = src[i][j] for dim 0, and so on. Equal positions: any one stays."""
    ...


@scatter.vjp
def _(ct, dim, index, src_spec, needs):
    first = (
        ops.scatter(ct, dim, index, ops.zeros(tuple(index.shape), dtype=ct.dtype, device=ct.device))
        if needs[0]
        else None
    )
    return first, None, _back_to(src_spec, ops.gather(ct, dim, index)) if needs[2] else None


def _back_to(spec: Any, value: Any) -> Any:
    """Zeros around a value where src was larger than index."""
    low = (0,) * len(spec.shape)
    return ops.pad(value, low, tuple(a - b for a, b in zip(spec.shape, value.shape, strict=True)))


def _strict_scatter(op: Any, input: Any, dim: int, index: Any, src: Any, *rest: Any) -> Any:
    """dim from the front and src of the shape of index."""
    place = canonical_dim(op.id, dim, len(input.shape))
    part = src
    for d, (a, b) in enumerate(zip(index.shape, src.shape, strict=True)):
        if a is not b and a != b:
            part = ops.slice(part, d, 0, a)
    return NotImplemented if place == dim and part is src else op(input, place, index, part, *rest)


@scatter.normalize
def _(input, dim, index, src):
    return _strict_scatter(ops.scatter, input, dim, index, src)


@composite(
    id="scatter.value",
    names=both("scatter"),
    in_place=True,
    samples=calls(call(tensor(2, 3), 0, np.array([[1, 0, 1]]), 2.5)),
)
def scatter_value(input: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor:
    """``scatter`` of one number."""
    return ops.scatter(
        input, dim, index, ops.full(tuple(index.shape), value, dtype=element_type(input), device=input.device)
    )


@composite(
    id="scatter.reduce",
    names=both("scatter"),
    in_place=True,
    samples=calls(call(tensor(2, 3), 0, np.array([[1, 0, 1]]), tensor(2, 3), reduce="add")),
)
def scatter_with(input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """``scatter`` that adds (``"add"``) or multiplies (``"multiply"``)."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"scatter: reduce must be 'add' or 'multiply', not {reduce!r}")
    return ops.scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


def _scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    dim = _check_scatter("scatter_add", input, dim, index, src)
    out = input.copy(order="K")
    where, values = _targets("scatter_add", input, dim, index, src)
    array_namespace(input).add.at(out, where, values)
    return out


@primitive(
    names=both("scatter_add"),
    in_place=True,
    meta=_scatter_meta("scatter_add"),
    reference=_scatter_add,
    samples=calls(
        call(tensor(2, 3), 0, tensor(4, 3, **_INDEX), tensor(4, 3)),
        call(tensor(4), -1, tensor(6, **_INDEX), tensor(6)),
    ),
    errors=_SCATTER_ERRORS,
)  # fmt: skip
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with result[index[i][j]][j] += src[i][j] for dim 0, and so on."""
    ...


@scatter_add.vjp
def _(ct, dim, index, src_spec, needs):
    return ct, None, _back_to(src_spec, ops.gather(ct, dim, index)) if needs[2] else None


@scatter_add.normalize
def _(input, dim, index, src):
    return _strict_scatter(ops.scatter_add, input, dim, index, src)


_REDUCE = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum", "mean": "add"}


def _check_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str) -> int:
    if reduce not in _REDUCE:
        raise RuntimeError(f"scatter_reduce: reduce must be one of {', '.join(_REDUCE)}, not {reduce!r}")
    return _check_scatter("scatter_reduce", input, dim, index, src)


def _reduce_meta(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> TensorSpec:
    _check_reduce(input, dim, index, src, reduce)
    return same_layout(input)


def _scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    xp = array_namespace(input)
    dim = _check_reduce(input, dim, index, src, reduce)
    where, values = _targets("scatter_reduce", input, dim, index, src)
    out = input.copy(order="K")
    if not include_self:
        least, most = (
            (-np.inf, np.inf) if input.dtype.kind == "f" else (np.iinfo(input.dtype).min, np.iinfo(input.dtype).max)
        )
        out[where] = {"prod": 1, "amax": least, "amin": most}.get(reduce, 0)
    getattr(xp, _REDUCE[reduce]).at(out, where, values)
    if reduce == "mean":
        count = xp.full(input.shape, int(include_self))
        xp.add.at(count, where, 1)
        divide = xp.true_divide if input.dtype.kind in "fc" else xp.floor_divide
        out = divide(out, xp.maximum(count, 1)).astype(input.dtype)
    return out


@primitive(
    names=both("scatter_reduce"),
    in_place=True,
    meta=_reduce_meta,
    reference=_scatter_reduce,
    samples=calls(
        *[
            call(
                tensor(3, 3),
                0,
                tensor(4, 3, **_INDEX),
                tensor(4, 3, kind="distinct"),
                how,
                include_self=own,
                gradient=how != "prod",
            )
            for how in ("sum", "prod", "amax", "amin", "mean")
            for own in (True, False)
        ]
    ),
    errors=[error(RuntimeError, "reduce must be one of", tensor(2), 0, tensor(2, **_INDEX), tensor(2), "max")],
)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``input`` with the elements of ``src`` that go to one position reduced: sum, prod, amax, amin or mean.

    ``include_self=False``: what stood there takes no part. At the primitive level only prod, amax and amin stay.
    """
    ...


@scatter_reduce.vjp
def _(ct, out, input, dim, index, src, reduce, include_self):
    shape, kind = tuple(input.shape), {"dtype": ct.dtype, "device": ct.device}
    ones = ops.ones(tuple(index.shape), **kind)
    hit = ops.scatter(ops.zeros(shape, **kind), dim, index, ones)
    own = ops.mul(ct, ops.sub(1, hit)) if not include_self else ct
    if reduce == "sum":
        return own, None, _back_to(src, ops.gather(ct, dim, index))
    if reduce == "mean":
        start = ops.ones(shape, **kind) if include_self else ops.sub(1, hit)
        share = ops.div(ct, ops.scatter_add(start, dim, index, ones))
        return (
            share if include_self else ops.mul(share, ops.sub(1, hit)),
            None,
            _back_to(src, ops.gather(share, dim, index)),
        )
    if reduce == "prod":
        raise RuntimeError("scatter_reduce: reduce='prod' has no derivative; use sum, mean, amax or amin")
    whole = src
    for d, size in enumerate(index.shape):
        src = ops.slice(src, d, 0, size)
    chosen = ops.convert_element_type(ops.eq(src, ops.gather(out, dim, index)), element_type(ct))
    mine = ops.convert_element_type(ops.eq(input, out), element_type(ct))
    mine = mine if include_self else ops.mul(mine, ops.sub(1, hit))
    share = ops.div(ct, ops.maximum(ops.scatter_add(mine, dim, index, chosen), 1))
    return ops.mul(mine, share), None, _back_to(whole, ops.mul(chosen, ops.gather(share, dim, index)))


@scatter_reduce.normalize
def _(input, dim, index, src, reduce, *, include_self=True):
    ones = ops.full(tuple(index.shape), 1, dtype=element_type(input), device=input.device)
    if not include_self:
        input = ops.scatter(input, dim, index, _neutral(input, index, reduce))
    if reduce in ("sum", "mean"):
        total = ops.scatter_add(input, dim, index, src)
        if reduce == "sum":
            return total
        start = ops.full(tuple(input.shape), int(include_self), dtype=element_type(input), device=input.device)
        count = ops.maximum(ops.scatter_add(start, dim, index, ones), 1)
        return (
            ops.div(total, count)
            if element_type(input).kind in ("float", "complex")
            else ops.floor_divide(total, count)
        )
    if not include_self:
        return ops.scatter_reduce(input, dim, index, src, reduce)
    result = _strict_scatter(ops.scatter_reduce, input, dim, index, src, reduce)
    return result


def _neutral(input: Any, index: Any, reduce: str) -> Any:
    dtype = element_type(input)
    if reduce in ("sum", "mean", "prod"):
        value: Any = int(reduce == "prod")
    elif dtype.kind == "float":
        value = float("-inf") if reduce == "amax" else float("inf")
    else:
        bits = dtype.itemsize * 8 - dtype.is_signed
        low = -(2**bits) if dtype.is_signed else 0
        value = low if reduce == "amax" else 2**bits - 1
    return ops.full(tuple(index.shape), value, dtype=dtype, device=input.device)
