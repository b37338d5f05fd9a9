"""Small functions for capture to do as Python does: objects, classes, enumerations, special methods."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any, NamedTuple

import numpy as np
from program_cases import case, x3


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
def slots_mut(x):
    s = Slotted(x)
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
