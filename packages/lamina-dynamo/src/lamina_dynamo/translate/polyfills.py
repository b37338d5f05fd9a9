"""Functions of the standard library that C code implements, written in Python so that they can be traced like the user's code.

The interpreter inlines these; nothing here may use what it cannot trace.
"""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
from typing import Any

__all__ = ["BY_FUNCTION", "BY_NAME"]


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


def chain(*iterables):
    for iterable in iterables:
        yield from iterable


def chain_from_iterable(iterables):
    for iterable in iterables:
        yield from iterable


def islice(values, *bounds):
    limits = slice(*bounds)
    start = 0 if limits.start is None else limits.start
    step = 1 if limits.step is None else limits.step
    stop = limits.stop
    iterator = iter(values)
    position = 0
    wanted = start
    while stop is None or wanted < stop:
        try:
            value = next(iterator)
        except StopIteration:
            return
        if position == wanted:
            yield value
            wanted += step
        position += 1
    while stop is not None and position < stop:
        try:
            next(iterator)
        except StopIteration:
            return
        position += 1


def product(*iterables, repeat=1):
    pools = [tuple(pool) for pool in iterables] * repeat
    results = [()]
    for pool in pools:
        results = [(*x, y) for x in results for y in pool]
    yield from results


def permutations(values, r=None):
    pool = tuple(values)
    n = len(pool)
    r = n if r is None else r
    for indices in product(range(n), repeat=r):
        if len(set(indices)) == r:
            yield tuple([pool[i] for i in indices])


def combinations(values, r):
    pool = tuple(values)
    for indices in permutations(range(len(pool)), r):
        if sorted(indices) == list(indices):
            yield tuple([pool[i] for i in indices])


def combinations_with_replacement(values, r):
    pool = tuple(values)
    for indices in product(range(len(pool)), repeat=r):
        if sorted(indices) == list(indices):
            yield tuple([pool[i] for i in indices])


def accumulate(values, func=None, *, initial=None):
    iterator = iter(values)
    total = initial
    if initial is None:
        try:
            total = next(iterator)
        except StopIteration:
            return
    yield total
    for value in iterator:
        total = total + value if func is None else func(total, value)
        yield total


def takewhile(predicate, values):
    for value in values:
        if not predicate(value):
            return
        yield value


def dropwhile(predicate, values):
    iterator = iter(values)
    for value in iterator:
        if not predicate(value):
            yield value
            break
    yield from iterator


def filterfalse(predicate, values):
    for value in values:
        if not (value if predicate is None else predicate(value)):
            yield value


def starmap(function, values):
    for args in values:
        yield function(*args)


def compress(values, selectors):
    for value, chosen in zip(values, selectors):
        if chosen:
            yield value


def pairwise(values):
    iterator = iter(values)
    try:
        previous = next(iterator)
    except StopIteration:
        return
    for value in iterator:
        yield previous, value
        previous = value


def cycle(values):
    saved = []
    for value in values:
        yield value
        saved.append(value)
    while saved:
        yield from saved


def zip_longest(*iterables, fillvalue=None):
    iterators = [iter(values) for values in iterables]
    active = len(iterators)
    done = [False] * active
    while active:
        row = []
        for number in range(len(iterators)):
            if done[number]:
                row.append(fillvalue)
                continue
            try:
                row.append(next(iterators[number]))
            except StopIteration:
                done[number] = True
                active -= 1
                if not active:
                    return
                row.append(fillvalue)
        yield tuple(row)


def groupby(values, key=None):
    group = []
    current = None
    for value in values:
        value_key = value if key is None else key(value)
        if group and value_key == current:
            group.append(value)
            continue
        if group:
            yield current, iter(group)
        current, group = value_key, [value]
    if group:
        yield current, iter(group)


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


BY_NAME: dict[str, Any] = {name: value for name, value in globals().items() if callable(value) and hasattr(value, "__code__")}
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
