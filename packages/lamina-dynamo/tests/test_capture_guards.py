"""Guards: flip one thing that the program read, and the result follows plain Python; what was not read costs no
compile.
"""

from __future__ import annotations

import types

import numpy as np
import pytest

from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import optimize
from lamina_dynamo.numpy_frontend import NumpyFrontend

FRONTEND = NumpyFrontend()
SCALE = 2.0
OPTIONS = {"a": 1.0}


def helper(x):
    return x + 1


def other_helper(x):
    return x - 1


class Model:
    rate = 1.0

    def __init__(self):
        self.weight = np.ones(3)
        self.layers = [np.ones(3), np.ones(3)]
        self.flag = True
        self.unused = 0

    def forward(self, x):
        y = x * self.weight * self.rate
        for layer in self.layers:
            y = y + layer
        if self.flag:
            y = helper(y)
        if hasattr(self, "extra"):
            y = y + self.extra
        return y * SCALE + OPTIONS.get("b", 0.0)

    @property
    def doubled(self):
        return self.weight * 2


def run_model(model, x):
    return model.forward(x) + model.doubled


def set_scale(model):
    globals()["SCALE"] = 3.0


def add_option(model):
    OPTIONS["b"] = 5.0


def swap_helper(model):
    globals()["helper"] = other_helper


def swap_helper_code(model):
    helper.__code__ = other_helper.__code__


def swap_method(model):
    Model.forward = lambda self, x: x * 0


def swap_method_code(model):
    Model.forward.__code__ = (lambda self, x: x * 7).__code__


def swap_property(model):
    Model.doubled = property(lambda self: self.weight * 9)


FLIPS = {
    "attribute": lambda m: setattr(m, "flag", False),
    "array": lambda m: setattr(m, "weight", np.full(3, 5.0)),
    "dtype": lambda m: setattr(m, "weight", np.ones(3, np.float32)),
    "shape": lambda m: setattr(m, "weight", np.ones(1)),
    "list": lambda m: m.layers.append(np.ones(3)),
    "class attribute": lambda m: setattr(Model, "rate", 2.0),
    "instance hides class": lambda m: setattr(m, "rate", 4.0),
    "present": lambda m: setattr(m, "extra", 3.0),
    "global": set_scale,
    "dict key": add_option,
    "global function": swap_helper,
    "function code": swap_helper_code,
    "method": swap_method,
    "method code": swap_method_code,
    "property": swap_property,
    "instance method": lambda m: setattr(m, "forward", types.MethodType(lambda self, x: x * 11, m)),
}


@pytest.fixture
def restored():
    """Undo what a flip does to the module and the class."""
    saved = dict(Model.__dict__), dict(globals()), dict(OPTIONS), helper.__code__, Model.forward.__code__
    yield
    globals().update(saved[1])
    for name in ("rate", "forward", "doubled"):
        setattr(Model, name, saved[0][name])
    OPTIONS.clear()
    OPTIONS.update(saved[2])
    helper.__code__ = saved[3]
    Model.forward.__code__ = saved[4]


@pytest.mark.parametrize("name", FLIPS)
def test_flip_is_noticed(name, restored):
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True)(run_model)
    model, x = Model(), np.arange(3.0)
    before = run_model(model, x)
    np.testing.assert_array_equal(compiled(model, x), before)
    np.testing.assert_array_equal(compiled(model, x), before)
    FLIPS[name](model)
    after = run_model(model, x)
    np.testing.assert_array_equal(compiled(model, x), after)
    assert name == "array" or not np.array_equal(before, after) or name in ("dtype", "shape")


def test_what_is_not_read_costs_nothing():
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True)(run_model)
    for number in range(20):
        model = Model()
        model.unused = number
        compiled(model, np.arange(3.0))
    assert len(backend.graphs) == 1


def test_same_array_twice():
    reset()

    def f(a, b):
        a += 1
        return a + b

    compiled = optimize(CountingBackend(), FRONTEND, strict=True)(f)
    one, two = np.ones(3), np.ones(3)
    np.testing.assert_array_equal(compiled(one, two), f(np.ones(3), np.ones(3)))
    same, again = np.ones(3), np.ones(3)
    np.testing.assert_array_equal(compiled(same, same), f(again, again))


def test_overlapping_views():
    reset()

    def f(a, b):
        a += 1
        return a * b

    compiled = optimize(CountingBackend(), FRONTEND, strict=True)(f)
    np.testing.assert_array_equal(compiled(np.ones(2), np.ones(2)), f(np.ones(2), np.ones(2)))
    z, w = np.ones(4), np.ones(4)
    np.testing.assert_array_equal(compiled(z[:2], z[1:3]), f(w[:2], w[1:3]))


def test_counter_attribute_becomes_symbolic():
    reset()
    backend = CountingBackend()

    class Counter:
        def __init__(self):
            self.n = 0

    def f(c, x):
        c.n += 1
        return x * 2

    compiled = optimize(backend, FRONTEND, strict=True)(f)
    counter = Counter()
    for _ in range(10):
        compiled(counter, np.ones(3))
    assert counter.n == 10
    assert len(backend.graphs) <= 2


def test_float_argument_becomes_symbolic():
    reset()
    backend = CountingBackend()

    def f(x, s):
        return x * (s * 2 + 1)

    compiled = optimize(backend, FRONTEND, strict=True)(f)
    for s in (1.5, 2.5, 3.5, 4.5):
        np.testing.assert_array_equal(compiled(np.ones(3), s), f(np.ones(3), s))
    assert len(backend.graphs) == 2


def test_int_argument_as_size_and_trip_count():
    reset()
    backend = CountingBackend()

    def f(x, n):
        return x.reshape(n, -1) + n

    compiled = optimize(backend, FRONTEND, strict=True)(f)
    for n in (2, 3, 4, 6):
        np.testing.assert_array_equal(compiled(np.arange(12.0), n), f(np.arange(12.0), n))


def test_sizes_become_symbolic():
    reset()
    backend = CountingBackend()

    def f(x):
        return x * x.shape[0] + 1

    compiled = optimize(backend, FRONTEND, strict=True)(f)
    for n in (4, 5, 6, 7):
        np.testing.assert_array_equal(compiled(np.ones(n)), f(np.ones(n)))
    assert len(backend.graphs) == 2


def test_closure_and_defaults():
    reset()

    def make(k):
        def f(x, y=k):
            return x * k + y

        return f

    backend = CountingBackend()
    wrap = optimize(backend, FRONTEND, strict=True)
    for k in (1.0, 2.0, 3.0):
        f = make(k)
        np.testing.assert_array_equal(wrap(f)(np.ones(2)), f(np.ones(2)))
