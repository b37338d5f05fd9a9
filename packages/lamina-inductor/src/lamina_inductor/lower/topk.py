"""The largest or smallest elements along a dimension, for a backend that keeps ``topk``: the first part of a sort where
a tile holds the row, else a step of its own."""

from __future__ import annotations

from lamina_fx import int64
from lamina_prims.dims import canonical_dim

from ..ir.loops import Size, Value
from .externs import host_call
from .pointwise import filled
from .sorts import SortPlan, fits_tile, sorted_value
from .table import Call, lowers, size_of
from .views import map_value

__all__: list[str] = []


@lowers("topk")
def _topk(call: Call) -> Value:
    input, count = call["input"], size_of(call["k"])
    if not input.shape:
        return _same(call, input)
    dim = canonical_dim("topk", call["dim"], len(input.shape))
    shape, size = (*input.shape[:dim], count, *input.shape[dim + 1 :]), input.shape[dim]
    if any(type(n) is int and n == 0 for n in shape):
        return _with(filled(call, shape, 0, input.dtype), filled(call, shape, 0, int64))
    if _is_one(size):
        return _same(call, input)
    if not call.supports("sort", input.dtype) or not fits_tile(size, input.dtype, True):
        return host_call(call)
    part = None if count is size or (type(count) is int and count == size) else count
    plans = [SortPlan(bool(call["largest"]), places, part) for places in (False, True)]
    return _with(*[sorted_value(call, input, dim, plan) for plan in plans])


def _with(values: Value, places: Value) -> Value:
    values.outputs += [values, places]
    return values


def _same(call: Call, input: Value) -> Value:
    values = map_value(input, input.shape, lambda index: index, lambda index: index)
    return _with(values, filled(call, input.shape, 0, int64))


def _is_one(size: Size) -> bool:
    return type(size) is int and size == 1
