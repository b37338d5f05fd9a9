"""Sorts: two values over one operand, the sorted elements and the places where they stood, where a tile holds a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, int64
from lamina_fx.symbolic import Expr, Integer

from ..ir.loops import Size, Value
from .pointwise import filled
from .table import Call, lowers
from .views import map_value

__all__ = ["SortPlan", "fits_tile", "is_first_part", "longest_row", "sorted_value"]

LONGEST, LONGEST_WIDE = 4096, 2048
"""Elements of a row that is sorted in a tile: with keys of 16 bits, or where only its first part is wanted, and with
longer keys. Beyond that, runs of 1024 that are merged take less time."""


@dataclass(frozen=True, slots=True)
class SortPlan:
    """``places``: the value is where the sorted elements stood (int64), rather than the elements themselves. ``count``:
    it is so many of the first ones only; its loops are those of the whole row."""

    descending: bool
    places: bool
    count: Size | None = None


def longest_row(dtype: DType, part: bool = False) -> int:
    """Elements of the longest row of ``dtype`` that is sorted in a tile, or of which a ``part`` is wanted."""
    return LONGEST if dtype.itemsize <= (4 if part else 2) else LONGEST_WIDE


def fits_tile(size: Size, dtype: DType, part: bool = False) -> bool:
    """Is a row of ``size`` elements certainly no longer than that?"""
    upper: Any = size.range()[1] if isinstance(size, Expr) else size
    upper = upper.value if type(upper) is Integer else upper
    return type(upper) is int and upper <= longest_row(dtype, part)


@lowers("sort")
def _sort(call: Call) -> Value | None:
    input, dim = call["input"], call["dim"]
    if not call.supports("sort", input.dtype):
        return None
    if not input.shape or any(type(n) is int and n == 0 for n in input.shape) or _is_one(input.shape[dim]):
        values = map_value(input, input.shape, lambda index: index, lambda index: index)
        values.outputs += [values, filled(call, input.shape, 0, int64)]
        return values
    if not fits_tile(input.shape[dim], input.dtype):
        return None
    values = sorted_value(call, input, dim, SortPlan(call["descending"], False))
    values.outputs += [values, sorted_value(call, input, dim, SortPlan(call["descending"], True))]
    return values


def _is_one(size: Size) -> bool:
    return type(size) is int and size == 1


def sorted_value(call: Call, input: Value, dim: int, plan: SortPlan) -> Value:
    """The value of a sort of ``input`` along ``dim``, which must fit a tile."""
    name = f"{call.name}_places" if plan.places else call.name
    shape = input.shape if plan.count is None else (*input.shape[:dim], plan.count, *input.shape[dim + 1 :])
    value = Value("sort", call.op, name, (input,), shape, int64 if plan.places else input.dtype)
    value.axes, value.attrs, value.cost = (dim,), plan, 64
    return value


def is_first_part(value: Value) -> bool:
    """Has the value fewer elements than the loops that make it? Then nothing else is made of it in them."""
    return value.kind == "sort" and value.attrs.count is not None
