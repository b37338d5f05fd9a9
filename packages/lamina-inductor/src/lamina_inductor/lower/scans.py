"""Scans: running sums, products, extrema and log-sum-exp along one dimension, as loops that carry a value."""

from __future__ import annotations

from typing import Any

from lamina_fx import bool_, int32, int64

from ..ir.dtypes import compute_dtype
from ..ir.loops import Index, Value
from .pointwise import convert_value, filled
from .table import Call, lowers
from .views import map_value

__all__ = ["SCANS"]

SCANS: dict[str, str] = {
    "cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min", "logcumsumexp": "logaddexp",
}  # fmt: skip
"""Operator id -> how the next element is combined with those before it."""


def _scan(call: Call, input: Value, kind: str) -> Value:
    value = Value("scan", call.op, call.name, (input,), input.shape, input.dtype)
    value.axes, value.attrs = (call["dim"],), kind
    return value


def _nothing_to_add(call: Call, input: Value) -> bool:
    """No dimension, one element along it, or no element at all."""
    shape = input.shape
    return (
        not shape
        or any(type(n) is int and n == 0 for n in shape)
        or (type(shape[call["dim"]]) is int and shape[call["dim"]] == 1)
    )


@lowers("cumsum", "cumprod", "logcumsumexp")
def _running(call: Call) -> Value | None:
    input = call["input"]
    if input.dtype is not call.spec.dtype or not call.supports(call.op, input.dtype):
        return None
    if _nothing_to_add(call, input):
        return map_value(input, input.shape, lambda index: index, lambda index: index)
    return _scan(call, input, SCANS[call.op])


@lowers("cummax", "cummin")
def _running_extremum(call: Call) -> Value | None:
    input = call["input"]
    if not call.supports(call.op, input.dtype):
        return None
    if _nothing_to_add(call, input):
        best = map_value(input, input.shape, lambda index: index, lambda index: index)
        best.outputs += [best, filled(call, input.shape, 0, int64)]
        return best
    best = _scan(call, input, SCANS[call.op])
    size = input.shape[call["dim"]]
    narrow = type(size) is int and size <= 1 << 31
    place = Value("point", call.op, f"{call.name}_place", (input, best), input.shape, int32 if narrow else int64)
    place.rule, place.attrs, place.cost = _write_place, call["dim"], 3
    last = _scan(call, place, "max")
    best.outputs += [best, convert_value(last, int64) if narrow else last]
    return best


def _write_place(emitter: Any, value: Value, index: Index) -> Any:
    """The position of an element that is the extremum so far (a NaN is, from where it stands), else 0."""
    dtype = compute_dtype(value.inputs[0].dtype)
    element, best = (emitter.named(emitter.read(v, index), dtype) for v in value.inputs)
    hit = emitter.let(bool_, "eq", element, best)
    if dtype.kind == "float":
        hit = emitter.let(bool_, "bitwise_or", hit, emitter.let(bool_, "isnan", element))
    position = emitter.named(emitter.index_value(index[value.attrs], value.dtype), value.dtype)
    return emitter.let(value.dtype, "where", hit, position, 0)
