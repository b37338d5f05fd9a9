"""Writing at computed positions: index_put, scatter and scatter_add become kernels of their own.

The result starts as a copy of the input; then the updates are stored in order. Iterations that could meet at one
element stay in
one thread, in order, so results are the same for any number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lamina_fx import float32

from ..ir.dtypes import compute_dtype
from ..ir.loops import Index, Value
from .pointwise import convert_value, filled
from .table import Call, lowers
from .views import map_value

__all__ = ["ScatterPlan"]


@dataclass(frozen=True, slots=True)
class ScatterPlan:
    """Inputs: what is copied, the updates, then index tensors.

    given: dimensions of the result that index tensors number; place: where their common dimensions stand among those
    of the updates.
    whole: index tensors have the shape of the updates (scatter). mode: ``"set"``, or ``"add"``, ``"mul"``,
    ``"max"``, ``"min"``, which combine with what is there.
    """

    given: tuple[int, ...]
    place: int
    whole: bool
    mode: str

    def takes_view(self, item: Value, root: Value) -> bool:
        """Its loops read through any index transform of what lies in memory."""
        return True

    def kept(self, updates: Value, indices: tuple[Value, ...]) -> tuple[int, ...]:
        """Dimensions of the updates along which different positions never meet."""
        rank = len(updates.shape)
        if self.whole:
            return tuple([d for d in range(rank) if d not in self.given])
        common = len(indices[0].shape)
        return tuple([d for d in range(rank) if not self.place <= d < self.place + common])

    def target(self, emitter: Any, value: Value, index: Index) -> Index:
        """Index into the result of the update at ``index``."""
        tensors = value.inputs[2:]
        if self.whole:
            dim = self.given[0]
            found = emitter.bind(emitter.read(tensors[0], index), value.shape[dim], value, dim=dim)
            return (*index[:dim], found, *index[dim + 1 :])
        count = len(tensors[0].shape)
        common = index[self.place : self.place + count]
        rest = iter((*index[: self.place], *index[self.place + count :]))
        bound = {
            d: emitter.bind(emitter.read(t, common), value.shape[d], value, wrap=True, dim=d)
            for d, t in zip(self.given, tensors, strict=True)
        }
        return tuple([bound[d] if d in bound else next(rest) for d in range(len(value.shape))])


def _scatter(call: Call, input: Value, updates: Value, indices: tuple[Value, ...], plan: ScatterPlan) -> Value | None:
    if _empty(input) or not input.shape:
        return None
    if _empty(updates):
        return map_value(input, input.shape, lambda index: index, lambda index: index)
    unusual = plan.mode not in ("set", "add") or (plan.mode == "add" and input.dtype.kind in ("bool", "complex"))
    floating = plan.mode == "add" and input.dtype.kind == "float"  # no atomics where the order must be certain
    if (unusual or floating) and not call.supports(f"scatter_{plan.mode}", compute_dtype(input.dtype)):
        return None
    narrow = compute_dtype(input.dtype) is not input.dtype and plan.mode != "set"
    if narrow:  # added up in float32, rounded once
        input, updates = convert_value(input, float32), convert_value(updates, float32)
    value = call.value("extern", (input, updates, *indices), input.dtype)
    value.attrs = plan
    return convert_value(value, call.spec.dtype) if narrow else value


def _empty(value: Value) -> bool:
    return any(type(n) is int and n == 0 for n in value.shape)


@lowers("index_put")
def _index_put(call: Call) -> Value | None:
    indices = tuple(call["indices"])
    given = tuple([d for d, i in enumerate(indices) if i is not None])
    place = given[0] if given[-1] - given[0] == len(given) - 1 else 0
    plan = ScatterPlan(given, place, False, "add" if call["accumulate"] else "set")
    return _scatter(call, call["input"], call["values"], tuple([indices[d] for d in given]), plan)


@lowers("scatter", "scatter_add")
def _scatter_along(call: Call) -> Value | None:
    plan = ScatterPlan((call["dim"],), 0, True, "add" if call.op == "scatter_add" else "set")
    return _scatter(call, call["input"], call["src"], (call["index"],), plan)


_REDUCE = {"sum": ("add", 0), "prod": ("mul", 1), "amax": ("max", -math.inf), "amin": ("min", math.inf)}
"""How ``scatter_reduce`` combines, and what changes nothing then (floats)."""


@lowers("scatter_reduce")
def _scatter_reduce(call: Call) -> Value | None:
    input, updates, index = call["input"], call["src"], call["index"]
    if call["reduce"] not in _REDUCE or input.dtype.kind == "complex":
        return None
    mode, start = _REDUCE[call["reduce"]]
    dims = (call["dim"] % max(1, len(input.shape)),)
    if not call["include_self"]:
        if input.dtype.kind != "float" and mode in ("max", "min"):
            return None
        fill = filled(call, index.shape, start, input.dtype)
        cleared = _scatter(call, input, fill, (index,), ScatterPlan(dims, 0, True, "set"))
        if cleared is None:
            return None
        input = cleared
    return _scatter(call, input, updates, (index,), ScatterPlan(dims, 0, True, mode))
