"""Small Python functions over NumPy: what capture must do the same as Python. These: functions, data, generators."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
from program_cases import case, x3

GLOBAL_SCALE = 3.0


COUNTER = 0


TABLE = {"a": 1.0, "b": 2.0}


@case()
def arithmetic(x):
    y = x * 2 + 1
    return (y - x) / 3.0**2 + -x


@case()
def methods(x):
    return x.reshape(3, 1).sum(axis=0) + x.mean()


@case()
def attributes(x):
    return x.T + x.shape[0] + x.ndim


@case()
def functions(x):
    return np.where(x > 1, np.sin(x), np.maximum(x, 0.5)) + np.sum(x)


@case()
def loop(x):
    for i in range(4):
        x = x + i
    return x


@case()
def while_loop(x):
    n = 0
    while n < 3:
        x = x * 2
        n += 1
    else:
        x = x - 1
    return x, n


@case()
def containers(x):
    items = [x, x + 1]
    items.append(x * 2)
    table = {"a": items[0], "b": items[-1]}
    total = 0
    for name, value in table.items():
        total = total + value * len(name)
    return {"total": total, "items": tuple(items), "n": len(items)}


@case()
def comprehension(x):
    squares = [x * i for i in range(4) if i % 2]
    table = {i: s for i, s in enumerate(squares)}
    return sum(squares), table[0], {k for k in table}


@case()
def closure(x):
    total = x

    def add(v):
        nonlocal total
        total = total + v
        return total

    add(1)
    add(2)
    return total


def helper(x, y=2, *rest, scale=1.0, **named):
    return x * y * scale + sum(rest) + len(named)


@case()
def calls(x):
    a = helper(x)
    b = helper(x, 3, 4, 5, scale=0.5, other=1)
    c = helper(*[x, 2], **{"scale": 2.0})
    return a + b + c


def recursive(x, n):
    return x if n == 0 else recursive(x + n, n - 1)


@case()
def recursion(x):
    return recursive(x, 5)


@case()
def lambdas(x):
    fs = [lambda v, k=k: v * k for k in range(3)]
    return [f(x) for f in fs], functools.partial(helper, y=5)(x), (lambda *a: a[0])(x)


@case(arguments=lambda: ([1, 2], {"k": 1}, {1, 2}, x3()))
def mutate_containers(items, table, members, x):
    items.append(x + 1)
    items[0] = 5
    table["new"] = x
    del table["k"]
    members.add(3)
    members.discard(1)
    return x * 2


@case()
def mutate_global(x):
    global COUNTER
    COUNTER = COUNTER + 1
    TABLE["c"] = 2.0
    return x + GLOBAL_SCALE + TABLE["a"]


class Context:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("exit" if kind is None else kind.__name__)
        return kind is ValueError


@contextlib.contextmanager
def doubling(log):
    log.append("begin")
    try:
        yield 2
    finally:
        log.append("end")


@case()
def with_block(x):
    log = []
    with Context(log) as c, doubling(log) as factor:
        x = x * factor
        c.log.append("body")
    with Context(log):
        raise ValueError("swallowed")
    with contextlib.suppress(KeyError):
        {}["missing"]
    with contextlib.nullcontext(5) as five:
        x = x + five
    return x, log


@case()
def exceptions(x):
    log = []
    try:
        {}["k"]
    except KeyError as error:
        log.append(error.args)
    else:
        log.append("else")
    finally:
        log.append("finally")
    try:
        try:
            1 // 0  # noqa: B018  (the division is the case)
        except ZeroDivisionError as error:
            raise RuntimeError("outer") from error
    except RuntimeError as error:
        log.append((str(error), type(error.__cause__).__name__))
    try:
        raise ValueError("a", 1)
    except (TypeError, ValueError) as error:
        log.append(error.args)
    return x + 1, log


@case()
def eager_error(x):
    try:
        return x + np.ones(7)
    except ValueError as error:
        return x * 2, "broadcast" in str(error)


def count_up(n, log):
    for i in range(n):
        log.append(i)
        yield i
    return n


def delegating(n, log):
    result = yield from count_up(n, log)
    yield result * 10


@case()
def generators(x):
    log = []
    g = count_up(5, log)
    first = next(g)
    second = next(g)
    rest = list(delegating(2, log))
    return x * second + first, log, rest, sum(i * x for i in range(3))


def echo():
    got = []
    while True:
        try:
            got.append((yield len(got)))
        except ValueError:
            got.append("error")
        if len(got) > 3:
            return got


@case()
def generator_protocol(x):
    g = echo()
    next(g)
    g.send("a")
    g.throw(ValueError)
    g.send("b")
    try:
        g.send("c")
    except StopIteration as stop:
        return x + 1, stop.value


@case()
def strings(x):
    name = "ab" + "c"
    text = f"{name!r:>8} {3.14159:.2f} {len(name)}" + "-".join(["p", "q"]) + "%d items" % 3 + f"{1} {2}"  # noqa: UP031
    return x + len(text), text, name.upper().split("B")


@case()
def unpacking(x):
    a, *b, c = [x, 1, 2, x + 1]
    (d, e), f = (1, 2), 3
    if (n := len(b)) > 1:
        a = a + n
    return a + c, b, [*b, d, e], {**{"f": f}, "g": 1}


@case()
def iteration(x):
    out = []
    for i, (a, b) in enumerate(zip([1, 2, 3], (x, x * 2, x * 3))):
        out.append(a * b + i)
    for v in reversed(out):
        x = x + v
    return x, list(map(lambda v: v + 1, [1, 2])), list(filter(None, [0, 1, 2])), any([0, 1]), all([1, 0])


@case()
def inplace(x):
    y = x * 1
    y += 2
    y *= x
    y[0] = 5.0
    y[1:] = y[1:] + 1
    return y


@case(arguments=lambda: (x3(), x3() + 1))
def inplace_argument(x, y):
    x += y
    z = x[:2]
    z *= 2
    return z


@case()
def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(f(*args, **kwargs))

        return inner

    @twice
    def add(v):
        """Adds."""
        return v + 1

    return add(x), add.__name__


@case()
def returned_function(x):
    y = x * 2

    def scaled(k):
        return y * k

    return scaled(3), callable(scaled)


@case()
def assertion(x):
    assert x.ndim == 1, "one dimension"
    try:
        assert x.ndim == 2, "two dimensions"
    except AssertionError as error:
        return x + 1, str(error)


@case()
def conditional_values(x):
    a = None
    b = a or x
    c = b if a is None else 0
    d = 1 < 2 < 3 and not a
    return c + 1, d, (a is not None), 2 in (1, 2), "k" not in TABLE


@case(graphs=None)
def raises(x):
    LOG.append(1)
    y = x + 1
    raise ValueError(y.shape)


LOG: list = []
