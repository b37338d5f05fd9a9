"""Index transforms: broadcast, reshape, permute, slice, flip and friends. None of them touches memory."""

from __future__ import annotations

from typing import Any

from ..ir.loops import Index, Size, Value
from .table import Call, lowers, size_of, sizes_of

__all__ = ["flatten_index", "index_map", "map_value", "regroup", "reshape_map", "unflatten_index"]


def flatten_index(index: Index, shape: tuple[Size, ...]) -> Size:
    """Row-major number of an element."""
    total: Any = 0
    for i, size in zip(index, shape, strict=True):
        total = total * size + i if not (type(total) is int and total == 0) else i
    return total


def unflatten_index(number: Any, shape: tuple[Size, ...]) -> Index:
    """Index of the element with this row-major number."""
    result: list[Size] = []
    for position in range(len(shape) - 1, 0, -1):
        size = shape[position]
        if type(size) is int and size <= 1:  # of no elements, none has an index
            result.append(0)
            continue
        result.append(number % size)
        number = number // size
    if shape:
        result.append(0 if type(shape[0]) is int and shape[0] <= 1 else number)
    result.reverse()
    return tuple(result)


def regroup(source: tuple[Size, ...], target: tuple[Size, ...]) -> list[tuple[range, range]] | None:
    """Matching runs of dimensions with equal products: how a reshape splits and merges. None when a size is symbolic
    and unclear."""
    runs: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        start_i, start_j = i, j
        have: Any = 1
        want: Any = 1
        if i < len(source):
            have, i = source[i], i + 1
        if j < len(target):
            want, j = target[j], j + 1
        while not _same(have, want):
            if type(have) is int and type(want) is int and have > want and j < len(target):
                want, j = want * target[j], j + 1
            elif type(have) is int and type(want) is int and have < want and i < len(source):
                have, i = have * source[i], i + 1
            elif _is_multiple(have, want) and j < len(target):
                want, j = want * target[j], j + 1
            elif _is_multiple(want, have) and i < len(source):
                have, i = have * source[i], i + 1
            else:
                return None
        runs.append((range(start_i, i), range(start_j, j)))
    return runs


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is int and type(b) is int and a == b)


def _is_multiple(a: Any, b: Any) -> bool:
    """Is it known of two sizes, of which one at least is symbolic?"""
    if (type(a) is int and type(b) is int) or (type(b) is int and b == 0):
        return False
    return _same(a // b * b, a)


def map_value(input: Value, shape: tuple[Size, ...], forward: Any, back: Any) -> Value:
    """An index transform of ``input`` that no node of the graph stands for."""
    value = Value("map", "view", input.name, (input,), shape, input.dtype)
    value.forward, value.back, value.cost, value.origin = forward, back, 0, input.origin
    return value


def index_map(call: Call, input: Value, forward: Any, back: Any) -> Value:
    """The call as an index transform of ``input``."""
    value = call.value("map", (input,))
    value.forward, value.back, value.cost = forward, back, 0
    return value


def reshape_map(source: tuple[Size, ...], target: tuple[Size, ...]) -> Any:
    """Function from an index into ``target`` to the index into ``source`` of the same element."""
    runs = regroup(source, target) if 0 not in source else None
    if runs is None:
        return lambda index: unflatten_index(flatten_index(index, target), source)

    def forward(index: Index) -> Index:
        result: list[Size] = []
        for s, t in runs:
            if len(s) == 1 and len(t) == 1:
                result.append(index[t[0]])
            else:
                number = flatten_index(index[t.start : t.stop], target[t.start : t.stop])
                result.extend(unflatten_index(number, source[s.start : s.stop]))
        return tuple(result)

    return forward


@lowers("reshape")
def _reshape(call: Call) -> Value:
    input = call["input"]
    target = sizes_of(call.spec.shape)
    return index_map(call, input, reshape_map(input.shape, target), reshape_map(target, input.shape))


@lowers("broadcast_in_dim")
def _broadcast(call: Call) -> Value:
    input = call["input"]
    dims = tuple(call["dims"])
    shape = sizes_of(call.spec.shape)
    kept = tuple([not (type(s) is int and s == 1) or shape[d] == 1 for s, d in zip(input.shape, dims, strict=True)])

    def forward(index: Index) -> Index:
        return tuple([index[d] if keep else 0 for d, keep in zip(dims, kept, strict=True)])

    value = index_map(call, input, forward, None)
    value.attrs = (dims, kept)
    return value


@lowers("permute")
def _permute(call: Call) -> Value:
    input = call["input"]
    dims = tuple([d % len(input.shape) for d in call["dims"]])
    inverse = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    return index_map(
        call,
        input,
        lambda index: tuple([index[k] for k in inverse]),
        lambda index: tuple([index[d] for d in dims]),
    )


@lowers("slice")
def _slice(call: Call) -> Value | None:
    start = 0 if call["start"] is None else size_of(call["start"])
    dim, step = call["dim"], size_of(call["step"])

    def forward(index: Index) -> Index:
        moved = index[dim] if type(step) is int and step == 1 else index[dim] * step
        moved = moved if type(start) is int and start == 0 else moved + start
        return (*index[:dim], moved, *index[dim + 1 :])

    return index_map(call, call["input"], forward, None)


@lowers("flip")
def _flip(call: Call) -> Value:
    input = call["input"]
    dims = call.get("dims", "dim")
    flipped = frozenset((dims,) if type(dims) is int else dims)
    shape = input.shape

    def forward(index: Index) -> Index:
        return tuple([shape[k] - 1 - i if k in flipped else i for k, i in enumerate(index)])

    return index_map(call, input, forward, forward)


@lowers("alias", "detach", "clone", "device_put")
def _same_value(call: Call) -> Value:
    return index_map(call, call["input"], lambda index: index, lambda index: index)


@lowers("sliding_window")
def _sliding_window(call: Call) -> Value:
    input, dims = call["input"], tuple(call["dims"])
    steps, dilations = tuple(call["step"]), tuple(call["dilation"])
    rank = len(input.shape)

    def forward(index: Index) -> Index:
        result = list(index[:rank])
        for number, (d, step, dilation) in enumerate(zip(dims, steps, dilations, strict=True)):
            result[d] = index[d] * step + index[rank + number] * dilation
        return tuple(result)

    return index_map(call, input, forward, None)
