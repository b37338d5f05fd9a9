"""Attention as a step of its own, forward and backward; only in graphs of a backend that keeps these operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import TensorSpec, bool_

from ..ir.dtypes import compute_dtype
from ..ir.loops import Size, Value
from .externs import host_call, strided_view
from .pointwise import convert_value
from .table import Call, lowers, sizes_of

__all__ = ["LEAD", "AttentionPlan"]

LEAD = 3
"""Dimensions in front of the matrices: batch, heads, groups of queries that share a head."""


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Inputs by name (``query``, ``mask``, ...) and numbers. ``lead``: the result's sizes in front of its matrices.

    ``results``: names of what the step makes, in the order of the operator's results.
    """

    names: tuple[str, ...]
    results: tuple[str, ...]
    lead: tuple[Size, ...]
    causal: bool
    scale: float
    dropout: float

    def takes_view(self, item: Value, root: Value) -> bool:
        """Any strides but for the width of a matrix, whose elements lie together."""
        found = strided_view(item, root)
        if found is None:
            return False
        if not item.shape or item.dtype is bool_:
            return True
        return _is(found[1][-1], 1) or _is(item.shape[-1], 1)


def _is(size: Size, number: int) -> bool:
    return type(size) is int and size == number


@lowers("attention_with_lse")
def _attention(call: Call) -> Value | None:
    return _lowered(call, ("query", "key", "value"), ("out", "lse"), call.spec[0])


@lowers("attention_backward")
def _attention_backward(call: Call) -> Value | None:
    names = ("grad_out", "grad_lse", "output", "lse", "query", "key", "value")
    return _lowered(call, names, ("grad_query", "grad_key", "grad_value"), call["output"])


def _lowered(call: Call, names: tuple[str, ...], results: tuple[str, ...], out: Any) -> Value:
    shape = sizes_of(out.shape)
    if not _regular(call, shape):
        return host_call(call)
    inputs = {name: call[name] for name in names if call[name] is not None}
    wide = compute_dtype(call["query"].dtype)
    mask = call["attn_mask"]
    if mask is not None:
        inputs["mask"] = mask if mask.dtype in (bool_, wide) else convert_value(mask, wide)
    if call["state"] is not None:
        inputs["state"] = call["state"]
    value = Value("extern", call.op, call.name, tuple(inputs.values()), (), call.spec[0].dtype)
    value.attrs = AttentionPlan(
        tuple(inputs), results, shape[:-2], bool(call["is_causal"]), float(call["scale"]), float(call["dropout_p"])
    )
    for number, spec in enumerate(call.spec):
        assert isinstance(spec, TensorSpec)
        item = Value("item", call.op, f"{call.name}_{number}", (value,), sizes_of(spec.shape), spec.dtype)
        item.attrs = number
        value.outputs.append(item)
    return value


def _regular(call: Call, out: tuple[Size, ...]) -> bool:
    """Is it what the step computes: queries and keys of the result's sizes, real numbers of one dtype?"""
    query, key, value, mask = (call[name] for name in ("query", "key", "value", "attn_mask"))
    if query.dtype.kind != "float" or query.dtype.itemsize < 2 or not query.dtype is key.dtype is value.dtype:
        return False
    if len(out) > LEAD + 2 or not _same(query.shape[-2], out[-2]) or query.dtype.name.startswith("float8"):
        return False
    scores = [x for x in (query, key, mask) if x is not None]
    if any(not any(_covers(x.shape, len(out) - d, out[d]) for x in scores) for d in range(len(out) - 2)):
        return False  # values with more matrices than scores
    return mask is None or (_fits(mask.shape[-2:], (out[-2], key.shape[-2])))


def _same(a: Size, b: Size) -> bool:
    return a is b or (type(a) is int and type(b) is int and a == b)


def _covers(shape: tuple[Size, ...], back: int, size: Size) -> bool:
    """Does the dimension ``back`` from the end have this size (1 needs none)?"""
    return _is(size, 1) or (len(shape) >= back and _same(shape[-back], size))


def _fits(shape: tuple[Size, ...], whole: tuple[Size, ...]) -> bool:
    return all(_is(a, 1) or _same(a, b) for a, b in zip(shape[::-1], whole[::-1], strict=False))
