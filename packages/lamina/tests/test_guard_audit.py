"""Guards: everything that a region read is changed once, and the compiled result must follow.

A row of the table: what is defined, what the region computes from it and from ``x``, and changes. After each change the
compiled function must give what Python gives.
"""

from __future__ import annotations

import textwrap

import pytest

import lamina_tensor as lt
from lamina.frontend import LaminaFrontend
from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import optimize

FRONTEND = LaminaFrontend()
CLASSES = """
class K:
    c = 1
    def __init__(self):
        self.a = 1
    def m(self, x):
        return x * self.a + self.c
    @property
    def p(self):
        return self.a * 10
    @staticmethod
    def s(x):
        return x + 1
    @classmethod
    def k(cls, x):
        return x * cls.c
class L(K):
    def m(self, x):
        return super().m(x) - 1
def other(self, x):
    return x - 100
o = L()
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.seq = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.register_buffer("buf", lt.ones(4))
        self.k, self.list = 2.0, nn.ModuleList([nn.Identity()])
    def forward(self, x):
        for m in self.list:
            x = m(x)
        return self.seq(self.l(x) * self.k) + self.buf + (1 if self.training else 0)
n = Net()
"""
AUDIT = {
    "globals": (
        "G = 1\nH = {'a': 1, 'b': [1, 2]}",
        "x + G * len(H) + H['a'] + H['b'][1] + H.get('z', 0) + ('q' in H)",
        ["G = 2", "H['a'] = 5", "H['b'][1] = 7", "H['z'] = 3", "H['q'] = 1", "H.pop('q')", "G = 2.5", "G = True"],
    ),
    "functions": (
        "def h(x, k=3, *, kw=4): return x * k + kw\ndef g(x, k=3, *, kw=4): return x - k - kw",
        "h(x)",
        ["h.__defaults__ = (5,)", "h.__kwdefaults__ = {'kw': 9}", "h.__kwdefaults__['kw'] = 10",
         "h.__code__ = g.__code__", "h = g", "h = lambda x: x"],
    ),
    "own default": ("", "x * (f.__defaults__ or (1,))[0]", ["f.__defaults__ = (5,)"]),
    "cells": (
        "def make():\n    n = 1\n    def get(x): return x + n\n    def put(v):\n        nonlocal n\n        n = v\n"
        "    return get, put\nget, put = make()",
        "get(x)",
        ["put(4)", "put(2.5)", "get, put = make()"],
    ),
    "module": (
        "m = types.ModuleType('m')\nm.v = 1\nm.f = lambda x: x + 1",
        "m.f(x) + m.v + hasattr(m, 'w') + getattr(m, 'z', 0)",
        ["m.v = 3", "m.f = lambda x: x * 3", "m.w = 1", "m.z = 1", "del m.w"],
    ),
    "class": (
        CLASSES,
        "o.m(x) + o.p + o.s(x) + o.k(x) + hasattr(o, 'h')",
        ["o.a = 2", "K.c = 3", "L.c = 4", "o.c = 5", "o.h = 1", "K.p = property(lambda s: 7)",
         "L.p = property(lambda s: 8)", "K.s = staticmethod(lambda x: x * 9)",
         "K.k = classmethod(lambda c, x: x * c.c * 2)", "K.m.__code__ = other.__code__", "L.m = other",
         "o.m = lambda x: x + 11", "del o.m", "del L.m", "K.__getattr__ = lambda s, n: 5", "del o.h"],
    ),
    "super": (
        "class A:\n    def m(self, x): return x + 1\nclass B(A): pass\n"
        "class C(B):\n    def m(self, x): return super().m(x) * 2\n"
        "class D:\n    def m(self, x): return x + 50\no = C()",
        "o.m(x)",
        ["A.m = lambda s, x: x + 7", "B.m = lambda s, x: x + 9", "del B.m", "B.__bases__ = (D,)", "o.__class__ = B"],
    ),
    "super lacks": (
        "class A: pass\nclass B(A):\n    def m(self): return getattr(super(), 'q', 3)\no = B()",
        "x + o.m()",
        ["A.q = 5"],
    ),
    "slots": ("class S:\n    __slots__ = ('a',)\no = S()\no.a = 1", "x + o.a", ["o.a = 2", "del o.a"]),
    "containers": (
        "l, t, d, s, q, fs, nd = [1, 2], [(1, 2)], {1: 2}, {1}, collections.deque([1]), [frozenset([1])], [{'a': [1]}]",
        "x + sum(l) + t[0][1] + d[1] + len(s) + (2 in s) + q[0] + len(fs[0]) + nd[0]['a'][0] + sum(d.values())"
        " + (3 in l)",
        ["l.append(3)", "t[0] = (1, 5)", "t[0] = [1, 6]", "d[1] = 5", "s.add(2)", "s.clear()", "q.appendleft(4)",
         "fs[0] = frozenset()", "nd[0]['a'][0] = 9", "d[9] = 1", "l[0] = 3", "l[0] = 1.5"],
    ),
    "order of a dict": (
        "d = {'a': 1, 'b': 2}",
        "[x] + [x * v + len(k) for k, v in d.items()]",
        ["d['a'] = d.pop('a')", "d['cc'] = 3", "d.clear()"],
    ),
    "kinds of numbers": (
        "s = [1]",
        "(x * s[0], type(s[0]).__name__, isinstance(s[0], bool), str(s[0]))",
        ["s[0] = True", "s[0] = 1.0", "s[0] = 2", "s[0] = 3", "s[0] = -0.0", "s[0] = 0.0", "s[0] = float('nan')",
         "s[0] = float('inf')", "s[0] = 10**30", "s[0] = -1"],
    ),
    "environment": (
        "os.environ['LAMINA_AUDIT'] = '1'",
        "x + len(os.environ['LAMINA_AUDIT']) + (os.getenv('LAMINA_AUDIT_2') is None)",
        ["os.environ['LAMINA_AUDIT'] = '22'", "os.environ['LAMINA_AUDIT_2'] = ''", "del os.environ['LAMINA_AUDIT_2']"],
    ),
    "tensors": (
        "s = [lt.arange(4).float()]",
        "(s[0] * 2 + 1, getattr(s[0], 'requires_grad', 0), getattr(s[0], 'dtype', 0), getattr(s[0], 'shape', 0))",
        ["s[0] = s[0] + 1", "s[0] = s[0].double()", "s[0] = lt.ones(4).requires_grad_()", "s[0] = lt.ones(2, 2)",
         "s[0] = lt.arange(4).reshape(2, 2).t()", "s[0] = lt.arange(4)[::2]", "s[0] = 3", "s[0] = lt.zeros(0)",
         "s[0] = lt.tensor(1.0)", "s[0] = nn.Parameter(lt.ones(4))", "s[0] = lt.ones(4).expand(3, 4)"],
    ),
    "aliases": (
        "def distinct(): return lt.zeros(2), lt.zeros(2)\ndef overlap():\n    z = lt.arange(3).float()\n"
        "    return z[:2], z[1:3]\ndef same():\n    z = lt.arange(2).float()\n    return z, z\n"
        "def view():\n    z = lt.arange(2).float()\n    return z, z.view(2)\nmake = distinct\n"
        "def run(a, b):\n    a.add_(1)\n    return a * b\ndef f(x): return run(*pair)\ndef before():\n    global pair\n"
        "    pair = make()",
        None,
        ["make = overlap", "make = same", "make = view", "make = distinct"],
    ),
    "modes": (
        "w = lt.ones(4).requires_grad_()",
        "(x * w, lt.is_grad_enabled(), lt.ones(3), lt.arange(4) + 1.5)",
        ["lt.set_grad_enabled(False)", "lt.set_grad_enabled(True)", "lt.set_default_dtype(lt.float64)",
         "lt.set_default_dtype(lt.float32)"],
    ),
    "nn": (
        NET,
        "n(x)",
        ["n.eval()", "n.train()", "n.k = 3.0", "n.k = 4.0", "n.l = nn.Identity()", "n.list.append(nn.ReLU())",
         "n.seq[1] = nn.Tanh()", "n.buf = lt.zeros(4)", "n.buf.fill_(5)", "n.seq[0].bias = None",
         "n.seq[0].register_forward_hook(lambda m, i, o: o + 100)",
         "n.register_forward_pre_hook(lambda m, i: (i[0] + 1,))", "n.register_forward_hook(lambda m, i, o: o * 2)",
         "n.forward = lambda x: x * 1000", "Net.forward = lambda s, x: x", "del n.forward",
         "n.seq.requires_grad_(False)"],
    ),
    "partial": (
        "def h(x, k=1): return x * k\ns = [functools.partial(h, k=2)]",
        "s[0](x)",
        ["s[0] = functools.partial(h, k=3)", "s[0] = functools.partial(h, 4)", "s[0] = h"],
    ),
    "special methods": (
        "class I:\n    def __init__(self, n): self.n = n\n    def __iter__(self): return iter(range(self.n))\n"
        "    def __len__(self): return self.n\n    def __bool__(self): return True\n"
        "    def __getattr__(self, n): return {'dyn': self.n}[n]\n    def __eq__(self, o): return self.n == o\n"
        "    def __contains__(self, v): return v < self.n\no = I(2)",
        "x + len(o) + sum(o) + o.dyn + (o == 2) + (1 in o) + (3 if o else 0)",
        ["o.n = 3", "I.__len__ = lambda s: 100", "I.__iter__ = lambda s: iter([5])", "I.__getattr__ = lambda s, n: 77",
         "o.dyn = 9", "I.__eq__ = lambda s, o: False", "I.__contains__ = lambda s, o: False",
         "I.__bool__ = lambda s: False", "del I.__bool__"],
    ),
    "dataclass": (
        "@dataclasses.dataclass\nclass D:\n    a: int = 1\n    b: object = None\no = D(1, [1])",
        "(x + o.a + len(o.b), o == D(1, [1]), repr(o))",
        ["o.a = 2", "o.b.append(3)", "o.b = (1,)"],
    ),
    "identity": (
        "a = [1]\nb = a", "(x + (1 if a is b else 0), a == b)", ["b = [1]", "b = [2]", "a = b"]
    ),
    "truth": (
        "s = [None]", "x if s[0] is None else x + 1 if s[0] else x - 1",
        ["s[0] = 0", "s[0] = 1", "s[0] = []", "s[0] = [1]", "s[0] = lt.ones(1)"],
    ),
    "builtins": ("", "x + len([1, 2])", ["len = lambda v: 100", "del len"]),
    "library": ("import math", "x + math.floor(2.5)", ["math = types.SimpleNamespace(floor=lambda v: 9)"]),
    "types": (
        CLASSES + "s = [K()]",
        "x + isinstance(s[0], K) + isinstance(s[0], (int, str)) + (type(s[0]) is K) + callable(s[0])",
        ["s[0] = L()", "s[0] = 3", "s[0] = K", "s[0] = 's'"],
    ),
    "trip count": (
        "n = 2", "functools.reduce(lambda a, i: a + i, range(n), x)", ["n = 3", "n = 4", "n = 0", "n = 1", "n = -1"]
    ),
    "numpy": (
        "s = [np.float32(2), np.arange(4.0)]", "(x * float(s[0]), float(s[1].sum()))",
        ["s[0] = np.float32(3)", "s[1] = np.arange(4)", "s[1][0] = 9", "s[0] = np.float64(3)"],
    ),
    "custom function": (
        "K = 2.0\ndef h(v): return v * K\nclass F(lt.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return h(x)\n"
        "    @staticmethod\n    def backward(ctx, g): return g\n",
        "F.apply(x)",
        ["K = 3.0", "h = lambda v: v + 1", "F.forward = staticmethod(lambda ctx, x: x * 7)"],
    ),
}  # fmt: skip
IMPORTS = "import collections, dataclasses, functools, os, types\nimport numpy as np\nimport lamina_tensor as lt\n" \
    "from lamina_tensor import nn\n"  # fmt: skip


def plain(value):
    """Something that compares: tensors by dtype, shape, flags and data."""
    if isinstance(value, lt.Tensor):
        return str(value.dtype), tuple(value.shape), value.requires_grad, repr(value.detach().numpy().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return type(value).__name__, repr(value)


def outcome(function, namespace):
    if "before" in namespace:
        namespace["before"]()
    try:
        return plain(function(lt.arange(4).float()))
    except Exception as error:  # noqa: BLE001  (the error is the outcome)
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", AUDIT)
def test_a_change_is_followed(name):
    definitions, expression, changes = AUDIT[name]
    namespace: dict = {"__name__": __name__}
    exec(IMPORTS + textwrap.dedent(definitions), namespace)
    if expression is not None:
        exec(f"def f(x): return {expression}", namespace)
    function = namespace["f"]
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True, recompile_limit=64)(function)
    try:
        for change in ("", "", *changes):
            exec(change, namespace)
            for _ in range(2):
                expected = outcome(function, namespace)
                assert outcome(compiled, namespace) == expected, change
        assert backend.graphs
    finally:
        lt.set_grad_enabled(True)
        lt.set_default_dtype(lt.float32)
