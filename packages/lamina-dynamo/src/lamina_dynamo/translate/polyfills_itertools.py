"""The iterators of ``itertools``, written in Python so that they can be traced (see ``polyfills``)."""

# ruff: noqa: D103  (each does what the function of its name in the standard library does)

from __future__ import annotations

__all__ = [
    "chain",
    "chain_from_iterable",
    "islice",
    "product",
    "permutations",
    "combinations",
    "combinations_with_replacement",
    "accumulate",
    "takewhile",
    "dropwhile",
    "filterfalse",
    "starmap",
    "compress",
    "pairwise",
    "cycle",
    "zip_longest",
    "groupby",
]


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
