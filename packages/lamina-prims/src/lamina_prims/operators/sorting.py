"""Sorting: sort and what follows from it, such as topk, median and mode.

NaN counts as greater than every number. Sorting is always stable.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec, int64

from ..along import positions
from ..arrays import array_dtype, array_namespace
from ..dims import canonical_dim
from ..ordering import ordered
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .scans import cummax

__all__ = [
    "argsort", "kthvalue", "median", "median_all", "mode", "msort", "nanmedian",
    "sort", "topk",
]  # fmt: skip

_NO_ORDER = error(RuntimeError, "have no order", tensor(3, dtype="complex64"))
_RANGE = error(IndexError, "out of range", tensor(2, 3), dim=2)


def _sort_meta(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> tuple[TensorSpec, TensorSpec]:
    canonical_dim("sort", dim, len(input.shape))
    ordered("sort", input.dtype)
    spec = TensorSpec(input.shape, input.dtype, None, input.device)
    return spec, TensorSpec(input.shape, int64, None, input.device)


def _sort_reference(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Any, Any]:
    xp = array_namespace(input)
    input = xp.asarray(input)
    ordered("sort", array_dtype(input.dtype))
    if input.ndim == 0:
        return input.copy(), xp.zeros((), xp.int64)
    keys = input.astype(xp.float32) if input.dtype.kind not in "biuf" else input
    if descending:
        order = xp.flip(xp.argsort(xp.flip(keys, dim), axis=dim, kind="stable"), dim)
        order = input.shape[dim] - 1 - order
    else:
        order = xp.argsort(keys, axis=dim, kind="stable")
    return xp.take_along_axis(input, order, dim), order.astype(xp.int64)


@primitive(
    result_names=("values", "indices"),
    names=("sort", "Tensor.sort"),
    meta=_sort_meta,
    reference=_sort_reference,
    samples=calls(
        call(tensor(2, 5, kind="distinct")),
        call(tensor(2, 5, 3, kind="distinct"), 1, True),
        call(tensor(8, dtype="int64", low=0, high=3), descending=True),
        call(tensor(9, kind="special")),
        call(tensor(9, kind="special"), descending=True),
        call(tensor(6, dtype="bfloat16", kind="distinct")),
        call(tensor(5, dtype="bool")),
        call(tensor()),
        call(tensor(0, 3), 1),
    ),
    errors=[_RANGE, _NO_ORDER],
)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """(values sorted along ``dim``, int64 indices that sort it). Both have the input's shape."""
    ...


@sort.normalize
def _(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    place = canonical_dim("sort", dim, len(input.shape))
    return NotImplemented if place == dim else sort(input, place, descending, stable)


@sort.vjp
def _(ct, out, input, dim):
    return (_to_places(ct[0], out[1], input, dim),)


def _to_places(ct: Tensor, index: Tensor, input: Tensor, dim: int) -> Tensor:
    """Zeros like ``input`` with ``ct`` at ``index`` along ``dim``."""
    if len(input.shape) == 0:
        return ops.reshape(ct, ())
    return ops.scatter_add(ops.zeros_like(input), dim, index, ct)


@composite(
    names=("argsort", "Tensor.argsort"),
    samples=calls(call(tensor(2, 5)), call(tensor(2, 5), 0, True), call(tensor(4, dtype="int64"), stable=True)),
    errors=[_RANGE],
)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices (int64) that sort along ``dim``."""
    return sort(input, dim, descending, stable)[1]


@composite(names=("msort", "Tensor.msort"), samples=calls(call(tensor(4, 2, kind="distinct"))))
def msort(input: Tensor) -> Tensor:
    """The values sorted along the first dimension."""
    return sort(input, 0)[0]


def _first(value: Tensor, dim: int, count: Any, start: Any = 0) -> Tensor:
    return ops.slice(value, dim, start, start + count)


def _kept(value: Tensor, dim: int, count: Any, start: Any = 0) -> Tensor:
    """A part in memory of its own: the whole is not needed any longer."""
    return ops.contiguous(_first(value, dim, count, start))


@composite(
    result_names=("values", "indices"),
    names=("topk", "Tensor.topk"),
    samples=calls(
        call(tensor(3, 6, kind="distinct"), 2),
        call(tensor(6, 3, kind="distinct"), 4, 0, False),
        call(tensor(5, dtype="int64", kind="distinct"), 5),
        call(tensor(), 1),
    ),
    errors=[error(RuntimeError, "out of range", tensor(3), 4), error(IndexError, "out of range", tensor(3), 1, 2)],
)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """(the ``k`` largest or smallest values along ``dim`` in order, their int64 indices)."""
    place = canonical_dim("topk", dim, len(input.shape))
    limit = input.shape[place] if len(input.shape) else 1
    if not 0 <= k <= limit:
        raise RuntimeError(f"topk: selected index k={k} out of range for a dimension of size {limit}")
    values, indices = sort(input, place, largest, True)
    if len(input.shape) == 0:
        return values, indices
    return _kept(values, place, k), _kept(indices, place, k)


@topk.vjp
def _(ct, out, input, dim):
    return (_to_places(ct[0], out[1], input, dim),)


@composite(
    result_names=("values", "indices"),
    names=("kthvalue", "Tensor.kthvalue"),
    samples=calls(
        call(tensor(3, 6, kind="distinct"), 2),
        call(tensor(6, 3, kind="distinct"), 4, 0, True),
        call(tensor(), 1),
    ),
    errors=[error(RuntimeError, "out of range", tensor(3), 0)],
)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(the ``k``-th smallest value along ``dim``, counted from 1; its int64 index)."""
    place = canonical_dim("kthvalue", dim, len(input.shape))
    limit = input.shape[place] if len(input.shape) else 1
    if not 1 <= k <= limit:
        raise RuntimeError(f"kthvalue: selected number k={k} out of range for a dimension of size {limit}")
    values, indices = sort(input, place, False, True)
    if len(input.shape) == 0:
        return values, indices
    values, indices = _kept(values, place, 1, k - 1), _kept(indices, place, 1, k - 1)
    return (values, indices) if keepdim else (ops.squeeze(values, place), ops.squeeze(indices, place))


@kthvalue.vjp
def _(ct, out, input, dim, keepdim):
    return (_selected_gradient(ct[0], out[1], input, dim, keepdim),)


def _selected_gradient(ct: Tensor, index: Tensor, input: Tensor, dim: int, keepdim: bool) -> Tensor:
    if len(input.shape) and not keepdim:
        ct, index = ops.unsqueeze(ct, dim), ops.unsqueeze(index, dim)
    return _to_places(ct, index, input, dim)


def _middle(input: Tensor, dim: int, keepdim: bool, name: str, skip_nan: bool) -> tuple[Tensor, Tensor]:

    place = canonical_dim(name, dim, len(input.shape))
    values, indices = sort(input, place, False, True)
    if len(input.shape) == 0:
        return values, indices
    size = input.shape[place]
    good = ops.sum(ops.eq(input, input), place, True)  # how many are no NaN
    middle = ops.floor_divide(ops.sub(good, 1), 2)
    if skip_nan:
        middle = ops.where(ops.eq(good, 0), ops.zeros_like(middle), middle)
    else:
        middle = ops.where(ops.eq(good, size), middle, good)  # the first NaN, when there is one
    value, index = ops.gather(values, place, middle), ops.gather(indices, place, middle)
    return (value, index) if keepdim else (ops.squeeze(value, place), ops.squeeze(index, place))


_MEDIANS = calls(
    call(tensor(3, 5, kind="distinct"), 1),
    call(tensor(4, 3, kind="distinct"), 0, True),
    call(tensor(2, 12, kind="special"), -1, gradient=False),
    call(tensor(6, dtype="int64", kind="distinct"), 0),
)


@composite(result_names=("values", "indices"), id="median.dim", names=("median", "Tensor.median"), samples=_MEDIANS)
def median(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(lower median along ``dim``, its int64 index). NaN when there is one."""
    return _middle(input, dim, keepdim, "median", False)


@composite(
    result_names=("values", "indices"), id="nanmedian.dim", names=("nanmedian", "Tensor.nanmedian"), samples=_MEDIANS
)
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(lower median of the numbers along ``dim``, its int64 index). NaN only where there is no number."""
    return _middle(input, dim, keepdim, "nanmedian", True)


@median.vjp
@nanmedian.vjp
def _(ct, out, input, dim, keepdim):
    return (_selected_gradient(ct[0], out[1], input, dim, keepdim),)


_WHOLE = calls(call(tensor(3, 5, kind="distinct")), call(tensor(12, kind="special"), gradient=False), call(tensor()))


@composite(id="median", names=("median", "Tensor.median"), samples=_WHOLE)
def median_all(input: Tensor) -> Tensor:
    """The lower median of all elements, 0-d. NaN when there is one."""
    return median(ops.reshape(input, (-1,)), 0)[0]


@median_all.vjp
def _(ct, out, input):
    return (_even_share(ct, out, input),)


def _even_share(ct: Tensor, out: Tensor, input: Tensor) -> Tensor:
    """The gradient of a chosen value, divided among the elements that equal it (or are NaN as it is)."""
    both_nan = ops.logical_and(ops.ne(input, input), ops.ne(out, out))
    hit = ops.logical_or(ops.eq(input, out), both_nan)
    return ops.where(hit, ops.div(ct, ops.sum(hit)), 0.0)


@composite(id="nanmedian", names=("nanmedian", "Tensor.nanmedian"), samples=_WHOLE)
def nanmedian_all(input: Tensor) -> Tensor:
    """The lower median of all numbers among the elements, 0-d."""
    return nanmedian(ops.reshape(input, (-1,)), 0)[0]


@nanmedian_all.vjp
def _(ct, out, input):
    return (_even_share(ct, out, input),)


@composite(
    result_names=("values", "indices"),
    names=("mode", "Tensor.mode"),
    samples=calls(
        call(tensor(3, 9, dtype="int64", low=0, high=4)),
        call(tensor(9, 3, dtype="int64", low=0, high=4), 0, True),
        call(tensor(2, 5, kind="distinct"), gradient=False),
    ),
)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(the most frequent value along ``dim``, the smallest among equals; int64 index of its last occurrence)."""

    place = canonical_dim("mode", dim, len(input.shape))
    values, indices = sort(input, place, False, True)
    if len(input.shape) == 0:
        return values, indices
    size = input.shape[place]
    where_am_i = positions(input, place)
    before = ops.cat([_first(values, place, 1), _first(values, place, size - 1)], place)
    starts = ops.where(ops.ne(values, before), where_am_i, ops.zeros_like(where_am_i))
    run = ops.sub(where_am_i, cummax(starts, place)[0])  # how many equal ones stand before
    best = ops.argmax(run, place, True)
    value, index = ops.gather(values, place, best), ops.gather(indices, place, best)
    return (value, index) if keepdim else (ops.squeeze(value, place), ops.squeeze(index, place))


@mode.vjp
def _(ct, out, input, dim, keepdim):
    return (_selected_gradient(ct[0], out[1], input, dim, keepdim),)
