"""More small functions: the corners of the language and of the standard library. ``CASES`` is the table of the tests."""

# ruff: noqa: B018, B028, E501, E741, F841, SIM105, UP031
from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import functools
import json
import logging
import math
import random
import re
import string
import typing
import warnings

import numpy as np
import programs
from programs import Case, Color, Frozen, outside

CASES: list[Case] = []


def case(graphs=1, arguments=lambda: (np.arange(3.0),)):
    def register(function):
        CASES.append(Case(function, arguments, graphs))
        return function

    return register


@case()
def slots_mut(x):
    s = programs.Slotted(x)
    s.a = x * 2
    s.b = 1
    del s.b
    return (s.a, hasattr(s, "b"))


class P:
    def __init__(self):
        self._v = 1
        self.log = []

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, n):
        self.log.append(n)
        self._v = n

    @v.deleter
    def v(self):
        self._v = None

    def m(self, a, *, b=2):
        return a * b

    pm = functools.partialmethod(m, b=5)


@case(arguments=lambda: (P(), np.arange(3.0)))
def props(p, x):
    p.v = 5
    p.v += 1
    return (x * p.v, p.log)


@case()
def partialm(x):
    return P().pm(x)


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


@functools.lru_cache
def cached(n):
    return n * 2


@case(graphs=None)
def lru(x):
    return x * cached(3) + cached(3)


@functools.singledispatch
def sd(v):
    return "obj"


@sd.register
def _(v: int):
    return "int"


@case(graphs=None)
def singled(x):
    return (sd(1), sd("s"), x + 1)


@case()
def enum_iter(x):
    return ([c.name for c in Color], Color["RED"], Color(2), x + len(Color))


@case(graphs=None)
def copies(x):
    a = [1, [2, 3]]
    b = copy.copy(a)
    c = copy.deepcopy(a)
    b.append(4)
    c[1].append(5)
    return (a, b, c, x + 1, dataclasses.replace(Frozen(1), n=9))


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


@case()
def dict_views(x):
    d = {"a": 1, "b": 2}
    e = {"b": 3, "c": 4}
    return (
        d.keys() & e.keys(),
        d.keys() | e.keys(),
        sorted(d.items()),
        list(reversed(d)),
        d | e,
        x + 1,
        {**d, **e},
        dict(zip("ab", [1, 2])),
        d.keys() == e.keys(),
    )


@case()
def sets(x):
    a = {1, 2, 3}
    b = frozenset([2, 3, 4])
    return (a & b, a | b, a - b, a ^ b, a <= b, 2 in a, len(a), sorted(a), x * len(b))


@case(graphs=None)
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as st:
        st.callback(log.append, "cb")
        c = st.enter_context(programs.Context(log))
        y = x + 1
    return (y, log)


@case(graphs=None)
def regex(x):
    m = re.match("(\\d+)-(\\w+)", "12-ab")
    return (x * int(m.group(1)), m.group(2))


@case(graphs=None)
def jsonx(x):
    return (json.dumps({"a": [1, 2]}), x + 1)


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
def numbers(x):
    return (
        divmod(7, 2),
        7 // 2,
        -7 % 3,
        2**10,
        round(2.567, 1),
        abs(-3),
        int("12"),
        float("1.5"),
        bool([]),
        complex(1, 2),
        0.1 + 0.2,
        10000000000.0,
        math.gcd(4, 6),
        math.isclose(1, 1.0),
        hex(10),
        chr(97),
        ord("a"),
        bin(5),
        (5).bit_length(),
        x + 1,
        pow(2, 3, 5),
        sum([0.1] * 3),
        math.floor(2.5),
        (3).__add__(4),
        int.from_bytes(b"\x01", "big"),
    )


@case()
def strs(x):
    s = "hello world"
    return (
        s.title(),
        s.split(),
        s.replace("o", "0"),
        s.find("w"),
        s.startswith("he"),
        f"{s:>20}|{3:05d}|{2.5:.3e}|{x.shape}",
        s[1:4],
        "a,b".partition(","),
        s.encode(),
        "%s-%d" % ("a", 3),
        ",".join(str(i) for i in range(3)),
        s.count("l"),
        s * 2,
        string.ascii_lowercase[:3],
        "{:>5}".format("x"),
        x * 2,
    )


@case(arguments=lambda: ({"a": {"b": [1, 2, {"c": 3}]}}, np.arange(3.0)))
def nested_mut(d, x):
    d["a"]["b"][2]["c"] += 1
    d["a"]["n"] = x * 2
    d["a"]["b"].insert(0, "z")
    d.setdefault("q", []).append(1)
    d["a"]["b"].pop()
    return len(d)


@case(arguments=lambda: ([3, 1, 2], np.arange(3.0)))
def sort_arg(l, x):
    l.sort()
    l.reverse()
    l += [9]
    l *= 2
    m = l
    m.append(0)
    return (x + len(l), m is l)


@case(
    arguments=lambda: (
        collections.deque([1, 2, 3], maxlen=3),
        collections.OrderedDict(a=1, b=2),
        collections.defaultdict(list),
        collections.Counter("ab"),
        np.arange(3.0),
    )
)
def coll_mut(q, o, d, c, x):
    q.append(4)
    q.rotate(1)
    o.move_to_end("a")
    d["k"].append(x)
    c["a"] += 2
    c.update("bb")
    return (x + len(q), c.most_common(1) if False else c["b"])


@case()
def cyc(x):
    a = []
    a.append(a)
    d = {"self": None}
    d["self"] = d
    return (len(a), d["self"] is d, x + 1)


@case()
def ret_cyc(x):
    n = programs.Layer(x)
    n.me = n
    return (n.me is n, x + 1)


@case(graphs=None)
def rng(x):
    random.seed(0)
    a = random.random()
    np.random.seed(0)
    b = np.random.rand()
    return x * a + b


@case(graphs=None)
def warn_log(x):
    logging.getLogger("q").debug("no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("w")
    return x + 1


@case(graphs=None)
def break_nested_with_loop(x):
    log = []
    for i in range(3):
        with programs.Context(log):
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
    class_ = programs.Layer(x)
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
