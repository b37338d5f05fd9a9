"""Reductions over dimensions."""

from __future__ import annotations

from lamina_fx import int64

from ..ir.loops import Value
from .pointwise import convert_value
from .table import Call, lowers

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
    if kind.startswith("arg"):
        if len(axes) != 1 or call.spec.dtype is not int64:
            return None
    elif call.spec.dtype is not input.dtype:
        input = convert_value(input, call.spec.dtype)
    return reduction(call, input, axes, kind)

