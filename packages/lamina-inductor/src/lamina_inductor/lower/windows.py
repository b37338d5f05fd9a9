"""Windows added up where they came from (``overlap_add``) and searches in sorted sequences: values that read their
operand at places they work out themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from lamina_fx import bool_, int64

from ..ir.dtypes import compute_dtype
from ..ir.loops import Index, Value
from .pointwise import filled
from .reductions import reduction
from .table import Call, lowers

__all__: list[str] = []

TERMS = 64
"""More windows than these over one element are added up in a loop."""

SEARCH_STEPS = 40
"""Halvings of a sequence of unknown length."""


# -- overlapping windows ---------------------------------------------------------------------------------


@lowers("overlap_add")
def _overlap_add(call: Call) -> Value | None:
    input, dims = call["input"], tuple(call["dims"])
    rank = len(input.shape) - len(dims)
    sizes = input.shape[rank:]
    plan = tuple(zip(dims, sizes, call["step"], call["dilation"], strict=True))
    if not all(type(n) is int for numbers in plan for n in numbers) or 0 in input.shape:
        return None
    terms = 1
    for _, size, step, dilation in plan:
        terms *= -(-size // step) if dilation == 1 else size
    if terms <= TERMS:
        value = call.value("index", (input,))
        value.rule, value.attrs, value.cost = _write_overlap, plan, 3 * terms
        return value
    whole = Value("index", call.op, call.name, (input,), (*call.value_shape(), *sizes), input.dtype)
    whole.rule, whole.attrs, whole.cost = _write_window, plan, 3
    axes = tuple(range(rank, len(input.shape)))
    return reduction(call, whole, axes, "sum")


def _places(position: Any, count: Any, size: int, step: int, dilation: int) -> Iterator[tuple[Any, Any, list[Any]]]:
    """(window, place in it, conditions) of each pair that may stand at ``position``."""
    if dilation == 1:
        first, rest = (position, 0) if step == 1 else (position // step, position % step)
        for turn in range(-(-size // step)):
            inside = [rest + turn * step < size] if turn * step + step > size else []
            yield first - turn, rest + turn * step, [first - turn >= 0, first - turn < count, *inside]
        return
    for place in range(size):
        yield _window(position, place, step, dilation, count)


def _window(position: Any, place: Any, step: int, dilation: int, count: Any) -> tuple[Any, Any, list[Any]]:
    start = position - place * dilation
    even = [start % step <= 0] if step > 1 else []
    window = start // step if step > 1 else start
    return window, place, [start >= 0, *even, window < count]


def _write_overlap(emitter: Any, value: Value, index: Index) -> Any:
    input = value.inputs[0]
    found = [[*_places(index[d], input.shape[d], size, s, w)] for d, size, s, w in value.attrs]
    total: Any = None
    for choice in product(*found):
        term = _masked_read(emitter, value, index, choice)
        total = term if total is None else emitter.compute_let(value.dtype, "add", [total, term])
    return total


def _write_window(emitter: Any, value: Value, index: Index) -> Any:
    input, plan = value.inputs[0], value.attrs
    rank = len(input.shape) - len(plan)
    places = zip(plan, index[rank:], strict=True)
    choice = tuple([_window(index[d], k, s, w, input.shape[d]) for (d, _, s, w), k in places])
    return _masked_read(emitter, value, index[:rank], choice)


def _masked_read(emitter: Any, value: Value, index: Index, choice: Any) -> Any:
    moved = list(index)
    mask: Any = True
    for (d, *_), (window, _, conditions) in zip(value.attrs, choice, strict=True):
        moved[d] = window
        for condition in map(emitter.condition, conditions):
            mask = _both(emitter, mask, condition)
    moved += [place for _, place, _ in choice]
    held = compute_dtype(value.dtype)
    term = emitter.masked(mask, lambda: emitter.read(value.inputs[0], tuple(moved)), 0, value.dtype)
    return emitter.named(term, held)


def _both(emitter: Any, a: Any, b: Any) -> Any:
    if b is True or a is False:
        return a
    return b if a is True or b is False else emitter.let(bool_, "bitwise_and", a, b)


# -- searches --------------------------------------------------------------------------------------------


@lowers("searchsorted")
def _searchsorted(call: Call) -> Value | None:
    sequence, wanted = call["sorted_sequence"], call["input"]
    if type(wanted) in (int, float) and not call.value_shape():
        wanted = filled(call, (), wanted, sequence.dtype)
    if type(wanted) is not Value or call["sorter"] is not None or sequence.dtype is not wanted.dtype:
        return None
    if not sequence.shape or sequence.dtype.kind not in ("int", "float") or 0 in sequence.shape:
        return None
    value = call.value("index", (sequence, wanted))
    behind = call["right"] or call["side"] == "right"
    length = sequence.shape[-1]
    steps = length.bit_length() if type(length) is int else SEARCH_STEPS
    value.rule, value.attrs, value.cost = _write_search, (behind, steps), 6 * steps
    return value


def _write_search(emitter: Any, value: Value, index: Index) -> Any:
    sequence, wanted = value.inputs
    behind, steps = value.attrs
    held = compute_dtype(sequence.dtype)
    target = emitter.named(emitter.read(wanted, index), held)
    rows = index[:-1] if len(sequence.shape) > 1 else ()
    length = emitter.index_value(sequence.shape[-1])
    count: Any = emitter.named(0, int64)
    for step in reversed(range(steps)):  # count: how many elements are known to stand before the target
        tried = emitter.let(int64, "add", count, 1 << step)
        exists = emitter.let(bool_, "le", tried, length)
        place = emitter.bind(emitter.let(int64, "sub", tried, 1), sequence.shape[-1], value, check=False)
        element = emitter.masked(exists, lambda at=place: emitter.read(sequence, (*rows, at)), 0, sequence.dtype)
        before = _less(emitter, held, target, element) if behind else _less(emitter, held, element, target)
        before = emitter.let(bool_, "logical_not", before) if behind else before
        count = emitter.let(int64, "where", emitter.let(bool_, "bitwise_and", exists, before), tried, count)
    return emitter.convert(count, int64, value.dtype)


def _less(emitter: Any, dtype: Any, a: str, b: str) -> str:
    """``a < b``, with NaN above everything."""
    plain = emitter.let(bool_, "lt", a, b)
    if dtype.kind != "float":
        return plain
    only_b = emitter.let(bool_, "gt", emitter.let(bool_, "isnan", b), emitter.let(bool_, "isnan", a))
    return emitter.let(bool_, "bitwise_or", plain, only_b)
