"""Reductions over dimensions."""

from __future__ import annotations

from lamina_fx import int64

from ..ir.loops import Value
from .pointwise import cast_constant, convert_value
from .table import Call, lowers
from .views import map_value, reshape_map

__all__ = ["REDUCTIONS", "reduction"]

REDUCTIONS: dict[str, str] = {
    "sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "max": "max", "min": "min", "any": "any", "all": "all",
    "argmax": "argmax", "argmin": "argmin", "xor_sum": "xor", "reduce_xor": "xor",
}  # fmt: skip
"""Operator id -> kind of accumulator."""


def reduction(call: Call, input: Value, axes: tuple[int, ...], kind: str) -> Value:
    """A reduce value over ``axes`` of ``input``."""
    value = call.value("reduce", (input,))
    value.axes = axes
    value.attrs = kind
    return value


@lowers(*REDUCTIONS)
def _reduce(call: Call) -> Value | None:
    input = call["input"]
    if type(input) is not Value or type(call.spec) is tuple:
        return None
    rank = len(input.shape)
    dim = call.get("dim", "dims")
    dims = range(rank) if dim is None else (dim,) if type(dim) is int else dim
    axes = tuple(sorted({d % rank for d in dims})) if rank else ()
    if call.get("keepdim", default=False):
        return None
    kind = REDUCTIONS[call.op]
    if any(type(input.shape[d]) is int and input.shape[d] == 0 for d in axes):
        value = call.value("index", ())
        start = cast_constant(kind in ("prod", "all"), call.spec.dtype)
        value.rule, value.cost = (lambda emitter, value, index: start), 0
        return value
    if all(type(input.shape[d]) is int and input.shape[d] == 1 for d in axes):
        return _of_one(call, input, kind)
    if kind.startswith("arg"):
        if len(axes) != 1 or call.spec.dtype is not int64:
            return None
    elif call.spec.dtype is not input.dtype:
        input = convert_value(input, call.spec.dtype)
    return reduction(call, input, axes, kind)


def _of_one(call: Call, input: Value, kind: str) -> Value | None:
    """A reduction over dimensions of size 1: the same elements, or index 0."""
    if kind.startswith("arg"):
        value = call.value("index", ())
        value.rule, value.cost = (lambda emitter, value, index: 0), 0
        return value
    if call.spec.dtype is not input.dtype:
        return None
    shape = call.value_shape()
    return map_value(input, shape, reshape_map(input.shape, shape), reshape_map(shape, input.shape))
