"""Small functions for capture to do as Python does: with breaks in all places, and what is printed or raised."""

# ruff: noqa: B018
from __future__ import annotations

from program_cases import case, outside
from programs import Context
from programs_classes import Layer


@case(graphs=2)
def break_outside(x):
    y = x + 1
    outside("hello")
    return y * 2


@case(graphs=2)
def break_in_with(x):
    log = []
    with Context(log) as c:
        y = x + 1
        outside("in with")
        c.log.append("after")
        z = y * 2
    return z, log


@case(graphs=2)
def break_in_try(x):
    try:
        y = x + 1
        outside("in try")
        z = y * 2
        raise ValueError("later")
    except ValueError as error:
        return z, str(error)


@case(graphs=None)
def break_in_loop(x):
    for i in range(4):
        x = x + i
        outside("loop", i)
        x = x * 2
    return x


@case(graphs=None)
def branch_on_data(x):
    y = x * 2
    if y.sum() > 1:
        return y + 1
    return y - 1


def breaking_callee(x):
    y = x * 3
    outside("callee")
    return y + 1


@case(graphs=None)
def break_in_callee(x):
    y = breaking_callee(x + 1)
    return y * 2


@case(graphs=None)
def break_nested_with_loop(x):
    log = []
    for i in range(3):
        with Context(log):
            x = x + i
            outside(i)
            if i == 1:
                continue
            x = x * 2
    return (x, log)


@case(graphs=None)
def break_in_comp(x):
    return [outside(i) or x * i for i in range(3)]


@case(graphs=None)
def break_in_gen(x):

    def g():
        for i in range(3):
            outside(i)
            yield (x * i)

    return list(g())


@case(graphs=None)
def break_in_except(x):
    try:
        1 // 0
    except ZeroDivisionError as e:
        y = x + 1
        outside(str(e))
        z = y * 2
        try:
            raise
        except ZeroDivisionError as e2:
            return (z, e2 is e or str(e2))


@case(graphs=None)
def break_deep(x):

    def a(v):
        w = v + 1

        def b(u):
            t = u * w
            outside("deep")
            return t + w

        return b(v) * 2

    return a(x) + 1


@case(graphs=None)
def break_method(x):
    class_ = Layer(x)
    f = class_.forward
    y = f(x)
    outside("m")
    return (f(y), class_)


@case(graphs=None)
def cond_data_loop(x):
    n = 0
    while x.sum() < 50:
        x = x * 2 + 1
        n += 1
    return (x, n)


@case(graphs=None)
def break_lambda_sort(x):

    def key(v):
        outside(v)
        return -v

    return (sorted([1, 3, 2], key=key), x + 1)


@case(graphs=None)
def item_loop(x):
    t = 0.0
    for v in x:
        t += float(v)
    return t * x


def shout(x):
    print("in a callee", x + 1, sep="|")
    return x * 2


@case()
def prints(x):
    print("first", x, len(x), [1, "a"])
    y = shout(x)
    print(f"{y.shape}", end="!\n")
    return y


@case()
def prints_before_a_write(x):
    print(x)
    x += 1
    return x * 2
