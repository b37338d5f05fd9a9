"""Small Python functions over NumPy: what capture must do the same as Python. ``CASES`` is the table of the tests."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lamina_dynamo.eval import disable

GLOBAL_SCALE = 3.0


@disable
def outside(*args):
    """What is printed here is not captured: a graph break."""
    print(*args)


COUNTER = 0
TABLE = {"a": 1.0, "b": 2.0}


def x3():
    return np.arange(3.0)


@dataclasses.dataclass
class Case:
    """A function, fresh arguments for each call, and how many graphs it takes (None: not checked)."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]] = lambda: (x3(),)
    graphs: int | None = 1
    calls: int = 2


CASES: list[Case] = []


def case(graphs: int | None = 1, arguments: Callable[[], tuple[Any, ...]] = lambda: (x3(),), calls: int = 2):
    def register(function):
        CASES.append(Case(function, arguments, graphs, calls))
        return function

    return register


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


class Layer:
    scale = 2.0

    def __init__(self, weight):
        self.weight = weight
        self.calls = 0

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x * self.weight * self.scale + self.bias

    @property
    def bias(self):
        return self.weight.sum()

    @staticmethod
    def double(x):
        return x * 2

    @classmethod
    def named(cls, x):
        return x * cls.scale

    def __getattr__(self, name):
        if name == "magic":
            return 7
        raise AttributeError(name)


LAYER = Layer(x3())


@case()
def objects(x):
    return LAYER(x) + LAYER.double(x) + Layer.named(x) + LAYER.magic + getattr(LAYER, "missing", 1)


@case()
def new_object(x):
    layer = Layer(x + 1)
    layer.extra = x
    return layer(x) + layer.extra, isinstance(layer, Layer)


@case(arguments=lambda: (Layer(x3()), x3()))
def mutate_object(layer, x):
    layer.calls += 1
    layer.last = x * 2
    layer.weight = layer.weight + 1
    return layer(x)


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


class Base:
    def __init__(self, scale):
        self.scale = scale

    def run(self, x):
        return x * self.scale


class Derived(Base):
    def __init__(self, scale, shift):
        super().__init__(scale)
        self.shift = shift

    def run(self, x):
        return super().run(x) + self.shift


@case()
def inheritance(x):
    return Derived(2.0, 1.0).run(x)


class Point(NamedTuple):
    a: Any
    b: float = 1.0


@dataclasses.dataclass
class Config:
    width: int
    scale: float = 2.0
    parts: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    n: int = 3


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@case()
def tuples(x):
    p = Point(x)
    q = p._replace(b=3.0)
    a, b = q
    return p.a * q.b + a, b, p


@case()
def dataclass(x):
    c = Config(3)
    c.parts.append(x)
    f = Frozen(x * 2)
    return c, f.value + c.width * c.scale, f


@case()
def enums(x):
    c = Color.RED
    if c is Color.RED and c == Color.RED and c.value == 1:
        x = x + 1
    return x, Color.BLUE


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
def matching(x):
    results = []
    for value in ([1, 2, 3], {"k": 5}, Point(1.0, 2.0), Config(4), "word", 7, (1, (2, 3))):
        match value:
            case [a, *rest] if len(rest) == 2:
                results.append(("list", a, rest))
            case {"k": v}:
                results.append(("map", v))
            case Point(a, b):
                results.append(("point", a, b))
            case Config(width=w):
                results.append(("config", w))
            case str():
                results.append("str")
            case 7 | 8:
                results.append("seven")
            case (1, (a, b)):
                results.append((a, b))
            case _:
                results.append(None)
    return x * len(results), results


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
def modules(x):
    a = list(itertools.chain([1], [2, 3])) + list(itertools.islice(itertools.count(5), 3))
    b = functools.reduce(operator.add, [1, 2, 3])
    c = list(itertools.product([1, 2], repeat=2)) + list(itertools.accumulate([1, 2, 3]))
    d = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    return x * math.sqrt(4) + math.pi, a, b, c, d, [heapq.heappop(heap) for _ in range(4)]


@case()
def collections_kinds(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    o = collections.OrderedDict(a=1, b=2)
    o.move_to_end("a")
    c = collections.Counter("aab")
    return x + len(d["a"]), d, q, o, c["a"], frozenset([1, 2])


@case()
def sorting(x):
    a = sorted([3, 1, 2], reverse=True)
    b = [("b", 2), ("a", 1)]
    b.sort(key=lambda p: p[0])
    return x * max(a) + min(1, 2), a, b, sorted({"z": 1, "y": 2}), sum([1, 2], 3)


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


class Stack(list):
    def top(self):
        return self[-1]


class Registry(dict):
    def __missing__(self, key):
        return key * 2


class Version(tuple):
    __slots__ = ()


@case()
def builtin_subclasses(x):
    s = Stack([1])
    s.append(x)
    r = Registry(a=1)
    return s.top() + 1, r["b"], len(s), s, r


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = "meta"
        return made


class Tagged(metaclass=Meta):
    def __init__(self, v):
        self.v = v


class Typed:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2)


class WithDescriptor:
    size = Typed()


@case()
def class_machinery(x):
    s = Slotted(x)
    s.b = 2
    t = Tagged(3)
    w = WithDescriptor()
    w.size = 5
    return s.a * s.b, t.tag, t.v, w.size, s


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Number(self.v + (other.v if isinstance(other, Number) else other))

    __radd__ = __add__

    def __eq__(self, other):
        return isinstance(other, Number) and self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, other):
        return self.v < other.v

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return self.v + i

    def __contains__(self, item):
        return item == self.v

    def __bool__(self):
        return self.v > 0


@case()
def special_methods(x):
    n = Number(1) + Number(2) + 3
    m = sum([Number(1), Number(2)], Number(0))
    table = {Number(1): "one"}
    return (
        x * n.v,
        m == Number(3),
        table[Number(1)],
        list(Number(5)),
        5 in Number(5),
        len(n),
        bool(Number(0)),
        max(Number(1), Number(2)).v,
    )


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
def raises(x):
    LOG.append(1)
    y = x + 1
    raise ValueError(y.shape)


LOG: list = []
