"""Functions of the standard library that C code implements, written in Python so that they can be traced like the
user's code.

The interpreter inlines these; nothing here may use what it cannot trace.
"""

# ruff: noqa: SIM110  (each does what the function of its name in the standard library does)

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
from typing import Any

from .polyfills_itertools import (
    accumulate,
    chain,
    chain_from_iterable,
    combinations,
    combinations_with_replacement,
    compress,
    cycle,
    dropwhile,
    filterfalse,
    groupby,
    islice,
    pairwise,
    permutations,
    product,
    starmap,
    takewhile,
    zip_longest,
)

__all__ = ["BY_FUNCTION", "BY_NAME", "ORIGINALS"]


def sequence_iterator(values):
    index = 0
    while True:
        try:
            value = values[index]
        except IndexError:
            return
        yield value
        index += 1


def dict_fromkeys(cls, keys, value=None):
    made = cls()
    for key in keys:
        made[key] = value
    return made


def reduce(function, values, *initial):
    iterator = iter(values)
    if initial:
        result = initial[0]
    else:
        try:
            result = next(iterator)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    for value in iterator:
        result = function(result, value)
    return result


def sum_values(values, /, start=0):
    total = start
    for value in values:
        total = total + value
    return total


def any_of(values):
    for value in values:
        if value:
            return True
    return False


def all_of(values):
    for value in values:
        if not value:
            return False
    return True


def extremum(values, key, default, has_default, name, least):
    iterator = iter(values)
    try:
        best = next(iterator)
    except StopIteration:
        if has_default:
            return default
        raise ValueError(name + "() arg is an empty sequence") from None
    if key is None:
        for value in iterator:
            if (value < best) if least else (value > best):
                best = value
        return best
    best_key = key(best)
    for value in iterator:
        value_key = key(value)
        if (value_key < best_key) if least else (value_key > best_key):
            best, best_key = value, value_key
    return best


def bisect_left(a, x, lo=0, hi=None, *, key=None):
    hi = len(a) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        value = a[middle] if key is None else key(a[middle])
        if value < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a, x, lo=0, hi=None, *, key=None):
    hi = len(a) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        value = a[middle] if key is None else key(a[middle])
        if x < value:
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_right(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_left(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def _sift_down(heap, start, position):
    item = heap[position]
    while position > start:
        parent = (position - 1) >> 1
        if not item < heap[parent]:
            break
        heap[position] = heap[parent]
        position = parent
    heap[position] = item


def _sift_up(heap, position):
    end = len(heap)
    start = position
    item = heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _sift_down(heap, start, position)


def heappush(heap, item):
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


def heappop(heap):
    last = heap.pop()
    if not heap:
        return last
    top = heap[0]
    heap[0] = last
    _sift_up(heap, 0)
    return top


def heapify(heap):
    for position in reversed(range(len(heap) // 2)):
        _sift_up(heap, position)


def heapreplace(heap, item):
    top = heap[0]
    heap[0] = item
    _sift_up(heap, 0)
    return top


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sift_up(heap, 0)
    return item


def itemgetter_call(keys, value):
    if len(keys) == 1:
        return value[keys[0]]
    return tuple([value[key] for key in keys])


def attrgetter_call(names, value):
    results = []
    for name in names:
        found = value
        for part in name.split("."):
            found = getattr(found, part)
        results.append(found)
    return results[0] if len(results) == 1 else tuple(results)


def methodcaller_call(name, args, kwargs, value):
    return getattr(value, name)(*args, **kwargs)


def update_wrapper(wrapper, wrapped, assigned=functools.WRAPPER_ASSIGNMENTS, updated=functools.WRAPPER_UPDATES):
    for name in assigned:
        if hasattr(wrapped, name) and name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(wrapper, name, getattr(wrapped, name))
    wrapper.__wrapped__ = wrapped
    return wrapper


def copy_value(value):
    if isinstance(value, (list, dict, set)):
        return value.copy()
    if isinstance(value, tuple):
        return value
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__)
    return made


def percent_format(template, values):
    if not isinstance(values, tuple):
        values = (values,)
    return template % tuple([v if isinstance(v, (int, float, str)) else str(v) for v in values])


def count_elements(mapping, values):
    for value in values:
        mapping[value] = mapping.get(value, 0) + 1


BY_NAME: dict[str, Any] = {
    name: value for name, value in globals().items() if callable(value) and hasattr(value, "__code__")
}
"""Every function above."""

BY_FUNCTION: dict[Any, Any] = {
    functools.reduce: reduce,
    functools.update_wrapper: update_wrapper,
    itertools.chain: chain,
    itertools.chain.from_iterable: chain_from_iterable,
    itertools.islice: islice,
    itertools.product: product,
    itertools.permutations: permutations,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.accumulate: accumulate,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.filterfalse: filterfalse,
    itertools.starmap: starmap,
    itertools.compress: compress,
    itertools.pairwise: pairwise,
    itertools.cycle: cycle,
    itertools.zip_longest: zip_longest,
    itertools.groupby: groupby,
    bisect.bisect_left: bisect_left,
    bisect.bisect_right: bisect_right,
    bisect.insort_right: insort_right,
    bisect.insort_left: insort_left,
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapify: heapify,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
    collections._count_elements: count_elements,  # type: ignore[attr-defined]
    sum: sum_values,
    any: any_of,
    all: all_of,
}
"""C function or class -> what is traced instead."""

ORIGINALS: dict[Any, Any] = {traced: original for original, traced in BY_FUNCTION.items()}
"""The other way round: what makes the real object, where one must be made behind a break."""
