"""Iterators that live across a graph break go on where they were, and as one object for all who hold them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from captures import assert_captured, leaf, outside

CASES: dict[str, tuple[Callable[..., Any], int, int, Callable[[], tuple[Any, ...]]]] = {}


def case(graphs: int, breaks: int, make: Callable[[], tuple[Any, ...]] = leaf) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, graphs, breaks, make
        return function

    return register


# -- held twice ----------------------------------------------------------------------------------------------


@case(2, 3)
def pairs_of_one_iterator(x):
    it = iter([1, 2, 3, 4])
    pairs = zip(it, it)
    y = x + 1
    outside()
    a = next(it)
    return y * a, list(pairs)


@case(2, 5)
def iterator_under_enumerate(x):
    it = iter([1, 2, 3, 4, 5])
    numbered = enumerate(it, 3)
    next(numbered)
    y = x * 2
    outside()
    return y + next(it), next(numbered), list(it), list(numbered)


@case(1, 4)
def range_iterator_in_a_list_twice(x):
    it = iter(range(0, 10, 3))
    next(it)
    held = [it, it]
    y = x + 1
    outside()
    return y, next(held[0]), next(held[1]), list(it)


@case(1, 4)
def count_held_twice(x):
    count = itertools.count(5, 2)
    next(count)
    held = (count, count)
    y = x + 1
    outside()
    return y, next(held[0]), next(held[1]), next(count)


@case(1, 2)
def in_a_container(x):
    held = {"it": iter([1, 2, 3])}
    next(held["it"])
    y = x + 1
    outside()
    return y, list(held["it"])


def step(it, x):
    y = x * next(it)
    outside()
    return y + next(it)


@case(3, 6)
def across_a_break_in_a_callee(x):
    it = iter([1, 2, 3, 4])
    r = step(it, x)
    return r * next(it), list(it)


# -- what they iterate over changes --------------------------------------------------------------------------


@case(1, 4)
def dict_items_see_new_values(x):
    d = {"a": 1, "b": 2, "c": 3}
    out = []
    for _, v in d.items():
        out.append(v)
        d["c"] = v + 10
        outside()
    return x * out[-1], out


@case(1, 0)
def dict_items_see_new_values_without_a_break(x):
    d = {"a": 1, "b": 2, "c": 3}
    out = []
    for _, v in d.items():
        out.append(v)
        d["c"] = v + 10
    return x * out[-1], out


@case(1, 0)
def dict_that_grows(x):
    d, out = {"a": 1, "b": 2}, []
    try:
        for k in d:
            out.append(k)
            d[k + "x"] = 1
    except RuntimeError as error:
        out.append(str(error))
    return x * len(out), out


@case(0, 2)
def dict_that_grows_behind_a_break(x):
    d, out = {"a": 1, "b": 2}, []
    try:
        for k in d:
            outside()
            out.append(k)
            d[k + "x"] = 1
    except RuntimeError as error:
        out.append(str(error))
    return out


@case(2, 3)
def dict_values_of_an_argument(x):
    d = {"a": x, "b": x * 2}
    total = 0
    for i, (_, v) in enumerate(d.items()):
        total = total + v * i
        outside()
    return total


@case(1, 7)
def list_that_grows(x):
    values, out = [1, 2], []
    for v in values:
        outside()
        if len(values) < 5:
            values.append(v * 2)
        out.append(v)
    return x * len(out), out


@case(1, 2)
def reversed_list_that_changes(x):
    values = [1, 2, 3]
    it = reversed(values)
    next(it)
    values[0] = 9
    y = x + 1
    outside()
    values[1] = 7
    return y, list(it)


@case(1, 2)
def used_up_before_the_list_grows(x):
    values = [1]
    it = iter(values)
    list(it)
    y = x + 1
    outside()
    values.append(2)
    return y, list(it)


@case(1, 4, lambda: (*leaf(), [1, 2]))
def callers_list_grown_before(x, values):
    values.extend([3, 4, 5])
    it = reversed(values)
    next(it)
    outside()
    values[0] = 7
    return x * 2, list(it)


@case(1, 2, lambda: (*leaf(), [1, 2, 3, 4, 5]))
def callers_list_cut(x, values):
    it = iter(values)
    next(it)
    del values[1:]
    outside()
    values.extend([8, 9, 10])
    return x * 2, list(it)


@case(1, 6, lambda: (*leaf(), {"a": 1}))
def callers_dict_grown_before(x, table):
    table["b"] = 2
    out = []
    for k, v in table.items():
        outside()
        out.append((k, v))
        table["b"] = 9
    return x * 2, out


# -- lazy iterators and generators ---------------------------------------------------------------------------


@case(2, 3)
def map_with_effects(x):
    log = []
    m = map(lambda a: log.append(a) or a * 2, [1, 2, 3])
    y = x * next(m)
    outside()
    return y * next(m), list(m), log


@case(2, 3)
def filter_of_values(x):
    m = filter(None, [0, 1, 0, 2, 3])
    y = x * next(m)
    outside()
    return y * next(m), list(m)


@case(1, 5)
def zip_of_all_kinds(x):
    z = zip([1, 2, 3], (a for a in [4, 5, 6]), "abc", strict=True)
    next(z)
    y = x + 1
    outside()
    return y, list(z)


@case(2, 5)
def generator_with_send(x):
    def powers(n):
        t = x
        for _ in range(n):
            t = t * 2
            yield t

    it = powers(4)
    a = next(it)
    outside()
    b = it.send(2)
    return a + b + sum(it)


@case(1, 4)
def generator_that_is_closed(x):
    log = []

    def values():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    it = values()
    y = x * next(it)
    outside()
    it.close()
    return y, log


@case(2, 2)
def generator_not_yet_started(x):
    g = (x * i for i in range(5))
    y = x + 1
    outside()
    return y + sum(g)


@case(1, 5)
def loop_over_a_generator(x):
    t = x
    for v in (x * i for i in range(4)):
        t = t + v
        outside()
    return t


@case(1, 4)
def chain_started(x):
    c = itertools.chain([1, 2], [3, 4])
    y = x * next(c)
    outside()
    return y, list(c)


@case(2, 1)
def objects_of_itertools_keep_their_types(x):
    made = [
        itertools.product([1], [2]), itertools.pairwise([1, 2]), itertools.accumulate([1, 2]),
        itertools.starmap(max, [(1, 2)]), operator.itemgetter(1), operator.attrgetter("a.b"),
        operator.methodcaller("index", 2), reversed([1]), iter({1: 2}.items()),
    ]  # fmt: skip
    y = x + 1
    outside()
    kinds = [type(v).__name__ for v in made]
    return y * 2, kinds


@pytest.mark.parametrize("name", CASES)
def test_iterator(name: str) -> None:
    function, graphs, breaks, make = CASES[name]
    assert_captured(function, make, graphs=graphs, breaks=breaks, backend="reference")
