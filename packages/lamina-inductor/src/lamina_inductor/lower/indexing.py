"""Values made from indices: creation, concatenation, padding, gathers, random words."""

from __future__ import annotations

from typing import Any

from lamina_fx import bool_, int64, uint32
from lamina_fx.symbolic import Expr, SymFloat

from ..ir.loops import Index, Value
from .externs import CatPlan
from .pointwise import cast_constant, write_size
from .rotations import rotation
from .symbolic_floats import write_float
from .table import Call, lowers, size_of, sizes_of
from .views import flatten_index

__all__: list[str] = []


def _indexed(call: Call, inputs: tuple[Value, ...], rule: Any, attrs: Any, cost: int = 1) -> Value:
    value = call.value("index", inputs)
    value.rule, value.attrs, value.cost = rule, attrs, cost
    return value


# -- creation --------------------------------------------------------------------------------------------


@lowers("full", "empty")
def _full(call: Call) -> Value | None:
    fill = call.get("fill_value", default=0)
    if isinstance(fill, Value):
        return None
    if isinstance(fill, Expr):
        return _indexed(call, (), write_size, fill, cost=0)
    if isinstance(fill, SymFloat):
        return _indexed(call, (), write_float, fill, cost=0)
    return _indexed(call, (), _write_full, cast_constant(fill, call.spec.dtype), cost=0)


def _write_full(emitter: Any, value: Value, index: Index) -> Any:
    return value.attrs


@lowers("iota")
def _iota(call: Call) -> Value:
    return _indexed(call, (), _write_iota, (call["start"], call["step"]))


def _write_iota(emitter: Any, value: Value, index: Index) -> Any:
    start, step = (size_of(v) for v in value.attrs)
    number = emitter.index_value(index[0] * step + start)
    if value.dtype is int64:
        return number
    return emitter.convert(emitter.named(number, int64), int64, value.dtype)


@lowers("philox")
def _philox(call: Call) -> Value:
    return _indexed(call, (call["state"],), _write_philox, None, cost=40)


def _write_philox(emitter: Any, value: Value, index: Index) -> Any:
    state = value.inputs[0]
    seed, offset = emitter.read(state, (0,)), emitter.read(state, (1,))
    number = emitter.index_value(flatten_index(index, value.shape))
    return emitter.let(uint32, "philox", seed, offset, number)


# -- pieces ----------------------------------------------------------------------------------------------


_FUSED_PARTS = 16
"""As many parts as an element is worth comparing its position with."""


@lowers("cat")
def _cat(call: Call) -> Value | None:
    parts = tuple(call["tensors"])
    turned = rotation(call, parts, call["dim"])
    if turned is not None:
        return turned
    if len(parts) > _FUSED_PARTS:
        value = call.value("extern", parts)
        value.attrs = CatPlan(call["dim"])
        return value
    ends: list[Any] = []
    total: Any = 0
    for part in parts:
        total = total + part.shape[call["dim"]]
        ends.append(total)
    return _indexed(call, parts, _write_cat, (call["dim"], tuple(ends)), cost=len(parts))


def _write_cat(emitter: Any, value: Value, index: Index) -> Any:
    dim, ends = value.attrs
    position = index[dim]

    def read(part: int) -> Any:
        begin = ends[part - 1] if part else 0
        moved = (*index[:dim], position - begin, *index[dim + 1 :])
        return emitter.read(value.inputs[part], moved)

    def choose(part: int) -> Any:
        if part == len(ends) - 1:
            return read(part)
        inside = emitter.condition(position < ends[part])
        if inside is True:
            return read(part)
        if inside is False:
            return choose(part + 1)
        here = emitter.masked(inside, lambda: read(part), 0, value.dtype)
        outside = emitter.condition(position >= ends[part])
        rest = emitter.masked(outside, lambda: choose(part + 1), 0, value.dtype)
        return emitter.compute_let(value.dtype, "where", [inside, here, rest])

    return choose(0)


@lowers("pad")
def _pad(call: Call) -> Value:
    rank = len(call["input"].shape)
    interior = call["interior"] or (0,) * rank
    fill = cast_constant(call["value"], call.spec.dtype)
    return _indexed(call, (call["input"],), _write_pad, (sizes_of(call["low"]), sizes_of(interior), fill), cost=3)


def _write_pad(emitter: Any, value: Value, index: Index) -> Any:
    low, interior, fill = value.attrs
    input = value.inputs[0]
    moved: list[Any] = []
    conditions: list[Any] = []
    for i, before, gap, size in zip(index, low, interior, input.shape, strict=True):
        position = i - before
        if not (type(gap) is int and gap == 0):
            conditions.append(position % (gap + 1) <= 0)
            position = position // (gap + 1)
        conditions += [position >= 0, position < size]
        moved.append(position)
    mask: Any = True
    for condition in map(emitter.condition, conditions):
        if condition is True or mask is False:
            continue
        mask = condition if mask is True or condition is False else emitter.let(bool_, "bitwise_and", mask, condition)
    return emitter.masked(mask, lambda: emitter.read(input, tuple(moved)), fill, value.dtype)


# -- gathers ---------------------------------------------------------------------------------------------


@lowers("gather")
def _gather(call: Call) -> Value | None:
    input, index, dim = call["input"], call["index"], call["dim"]
    if not input.shape or any(type(n) is int and n == 0 for n in input.shape):
        return None
    value = _indexed(call, (input, index), _write_gather, (dim, call.get("sparse_grad", default=False)), cost=2)
    value.gathers = dim
    return value


def _write_gather(emitter: Any, value: Value, index: Index) -> Any:
    input, positions = value.inputs
    dim = value.attrs[0]
    place = emitter.bind(emitter.read(positions, index), input.shape[dim], value, dim=dim)
    return emitter.read(input, (*index[:dim], place, *index[dim + 1 :]))


@lowers("index")
def _index(call: Call) -> Value | None:
    input, indices = call["input"], tuple(call["indices"])
    if any(type(n) is int and n == 0 for n in input.shape):
        return None
    given = [d for d, i in enumerate(indices) if i is not None]
    place = given[0] if given[-1] - given[0] == len(given) - 1 else 0
    tensors = tuple([indices[d] for d in given])
    return _indexed(call, (input, *tensors), _write_index, (tuple(given), place), cost=2)


def _write_index(emitter: Any, value: Value, index: Index) -> Any:
    input, *tensors = value.inputs
    given, place = value.attrs
    count = len(tensors[0].shape)
    common = index[place : place + count]
    rest = iter((*index[:place], *index[place + count :]))
    found = {
        d: emitter.bind(emitter.read(t, common), input.shape[d], value, wrap=True, dim=d)
        for d, t in zip(given, tensors, strict=True)
    }
    return emitter.read(input, tuple([found[d] if d in found else next(rest) for d in range(len(input.shape))]))
