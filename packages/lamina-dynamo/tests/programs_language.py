"""Small functions for capture to do as Python does: corners of the language."""

# ruff: noqa: B018, SIM105
from __future__ import annotations

import abc
import collections
import contextlib
import typing

from program_cases import case
from programs_classes import Color, Layer


@case()
def try_finally_return(x):

    def f():
        try:
            return x + 1
        finally:
            log.append("f")

    log = []

    def g():
        for i in range(3):
            try:
                if i == 1:
                    continue
                if i == 2:
                    break
            finally:
                log.append(i)
        else:
            log.append("else")
        return log

    return (f(), g())


@case()
def gen_with_finally(x):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    it = g()
    a = next(it)
    it.close()

    def h():
        with contextlib.nullcontext(3) as v:
            y = yield v
            log.append(y)

    it = h()
    next(it)
    try:
        it.send("s")
    except StopIteration:
        pass
    return (x * a, log)


@case()
def shared_cells(x):

    def make():
        n = 0

        def inc():
            nonlocal n
            n += 1
            return n

        def get():
            return n

        return (inc, get)

    inc, get = make()
    inc()
    inc()
    return (inc, get, x * get())


@case(graphs=0)
def returns_generator(x):
    return (x * i for i in range(2))


@case()
def fact(x):

    def f(n):
        return 1 if n < 2 else n * f(n - 1)

    return x * f(5)


@case()
def enum_iter(x):
    return ([c.name for c in Color], Color["RED"], Color(2), x + len(Color))


@case()
def constant_slices(x):
    """3.14 folds slices, also in tuples of them."""
    a = [0, 1, 2, 3, 4]
    first, *rest = a[1:]
    return a[1:3], a[:-1], a[::2], "lamina"[1:4], (5, 6, 7)[1:], first, rest, x[:1], x[0:2]


@case()
def slicing(x):
    a = list(range(6))
    a[1:3] = [9]
    del a[0]
    a[::2] = [7] * len(a[::2])
    b = a[::-1]
    return (a, b, x[1:], (1, 2, 3)[1:], "abc"[::-1])


@case()
def del_local(x):
    y = x + 1
    del y
    try:
        y
    except NameError as e:
        return (x * 2, str(e))


@case(graphs=None)
def klass(x):

    class A:
        z = 3

        def f(self, v):
            return v * self.z

    return A().f(x)


@case()
def walrus(x):
    out = [y for i in range(4) if (y := (i * 2)) > 2]
    return (out, x + y)


@case()
def chained(x):
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None
    except ValueError as e:
        return (x + 1, e.__cause__, e.__suppress_context__, repr(e))


@case()
def custom_exc(x):
    class_ = MyErr
    try:
        raise class_("m", code=3)
    except class_ as e:
        return (x + e.code, e.args, str(e))


class MyErr(Exception):
    def __init__(self, msg, code):
        super().__init__(msg)
        self.code = code


class Abst(abc.ABC):
    @abc.abstractmethod
    def f(self, x): ...


class Conc(Abst):
    def f(self, x):
        return x * 2


@case()
def abcs(x):
    c = Conc()
    return (
        c.f(x),
        isinstance(c, Abst),
        issubclass(Conc, Abst),
        isinstance([], typing.Sized) if False else 1,
        isinstance([1], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping),
    )


T = typing.TypeVar("T")


class Gen(typing.Generic[T]):
    def __init__(self, v):
        self.v = v


@case()
def generics(x):
    return (Gen(x).v + 1, Gen[int](2).v)


@case()
def cyc(x):
    a = []
    a.append(a)
    d = {"self": None}
    d["self"] = d
    return (len(a), d["self"] is d, x + 1)


@case()
def ret_cyc(x):
    n = Layer(x)
    n.me = n
    return (n.me is n, x + 1)
