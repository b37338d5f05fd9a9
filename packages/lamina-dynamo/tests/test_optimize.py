"""`optimize`, `disable` and what surrounds them: looks, copies, threads, limits, errors, events."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import re
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import lamina_dynamo as dynamo
from lamina_dynamo import CaptureWarning, CompiledFunction, Config, disable, optimize, recording
from lamina_dynamo.backends import interpret
from lamina_dynamo.numpy_frontend import NumpyFrontend
from lamina_dynamo.skip import skip_reason

graphs = []


def backend(graph, example_inputs, context):
    graphs.append(graph)
    return interpret(graph, example_inputs, context)


FRONTEND = NumpyFrontend()
compiled = optimize(backend, FRONTEND)


@pytest.fixture(autouse=True)
def fresh():
    dynamo.reset()
    graphs.clear()
    yield
    assert not dynamo.capture._core.is_capturing()


def ones(*shape):
    return np.ones(shape, np.float32)


@compiled
def decorated(x, scale: float = 2.0, *, bias=1):
    """Scale and shift."""
    return x * scale + bias


def plain(x):
    return x + 1


class Model:
    """A callable object."""

    def __init__(self, scale):
        self.scale = scale
        self.inner = [scale]

    def __call__(self, x, k=3):
        """Scale."""
        return x * self.scale + k

    def method(self, x):
        return x - self.scale


def test_looks_like_the_function():
    assert decorated.__name__ == "decorated" and decorated.__doc__ == "Scale and shift."
    assert str(inspect.signature(decorated)) == "(x, scale: 'float' = 2.0, *, bias=1)"
    assert decorated.__module__ == __name__ and decorated.__wrapped__ is decorated.function
    assert "decorated" in repr(decorated) and callable(decorated) and isinstance(decorated, CompiledFunction)
    np.testing.assert_array_equal(decorated(ones(2), 3.0, bias=2), [5, 5])


def test_pickle_and_copy():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated and copy.copy(decorated) is decorated
    f = compiled(plain)
    again = pickle.loads(pickle.dumps(f))
    assert isinstance(again, CompiledFunction) and again.function is plain
    np.testing.assert_array_equal(again(ones(2)), [2, 2])


def test_methods():
    class A:
        def __init__(self, k):
            self.k = k

        @compiled
        def scale(self, x):
            return x * self.k

        @staticmethod
        @compiled
        def twice(x):
            return x * 2

    a, b = A(2), A(3)
    np.testing.assert_array_equal(a.scale(ones(2)), [2, 2])
    np.testing.assert_array_equal(b.scale(ones(2)), [3, 3])
    np.testing.assert_array_equal(A.twice(ones(2)), [2, 2])
    bound = compiled(Model(4).method)
    np.testing.assert_array_equal(bound(ones(2)), [-3, -3])


def test_callable_object_keeps_its_face():
    model = Model(2)
    made = compiled(model)
    assert isinstance(made, Model) and type(made).__name__ == "Model" and type(made).__module__ == __name__
    assert vars(made) is vars(model)
    np.testing.assert_array_equal(made(ones(2)), [5, 5])
    assert len(graphs) == 1
    made.scale = 10
    assert model.scale == 10
    np.testing.assert_array_equal(made(ones(2), k=0), [10, 10])
    np.testing.assert_array_equal(made.method(ones(2)), [-9, -9])
    back = pickle.loads(pickle.dumps(made))
    assert type(back) is Model and back.scale == 10
    twin = copy.deepcopy(made)
    twin.scale = 1
    assert made.scale == 10 and twin.inner is not made.inner
    count = len(graphs)
    np.testing.assert_array_equal(twin(ones(2), k=1), [2, 2])
    assert len(graphs) == count  # other instances share entries


def test_partial_and_builtin():
    f = compiled(functools.partial(decorated.function, bias=5))
    np.testing.assert_array_equal(f(ones(1)), [7])
    assert compiled(len)([1, 2]) == 2


@pytest.mark.parametrize("target", [3, None, int, "f"])
def test_wrong_targets(target):
    with pytest.raises(TypeError, match="expected a function or an object with __call__"):
        compiled(target)


def test_wrong_settings():
    with pytest.raises(TypeError, match="backend must be callable"):
        optimize(None, FRONTEND)
    with pytest.raises(TypeError):
        optimize(backend, FRONTEND, no_such_setting=1)
    with pytest.raises(ValueError, match="at least 1"):
        optimize(backend, FRONTEND, recompile_limit=0)
    with pytest.raises(TypeError, match="None, True or False"):
        Config(dynamic=3)


def test_one_compile_for_equal_calls_and_two_for_sizes():
    f = compiled(plain)
    for _ in range(3):
        f(ones(4))
    assert len(graphs) == 1
    for n in (5, 6, 7):
        np.testing.assert_array_equal(f(ones(n)), np.full(n, 2))
    assert len(graphs) == 2


def test_marks():
    f = compiled(plain)
    x = ones(4)
    dynamo.mark_dynamic(x, 0)
    f(x)
    f(ones(5))
    f(ones(6))
    assert len(graphs) == 1
    dynamo.reset()
    graphs.clear()
    for n in (3, 4, 5):
        x = ones(n)
        dynamo.mark_static(x)
        f(x)
    assert len(graphs) == 3
    with pytest.raises(ValueError, match="outside the range"):
        dynamo.mark_dynamic(ones(3), 0, lower=4)
    with pytest.raises(IndexError, match="out of range"):
        dynamo.mark_dynamic(ones(3), 1)
    with pytest.raises(TypeError, match="expected an array or tensor, whose size"):
        dynamo.mark_static(3)


def test_dynamic_setting():
    f = optimize(backend, FRONTEND, dynamic=True)(plain)
    for n in (4, 5, 6):
        f(ones(n))
    assert len(graphs) == 1
    graphs.clear()
    f = optimize(backend, FRONTEND, dynamic=False)(plain)
    for n in (4, 5, 6):
        f(ones(n))
    assert len(graphs) == 3


def test_two_configurations_do_not_share_entries():
    first, second = compiled(plain), optimize(backend, FRONTEND)(plain)
    first(ones(2))
    second(ones(2))
    assert len(graphs) == 2
    first(ones(2))
    assert len(graphs) == 2


def test_recompile_limit():
    def pick(x, mode):
        return x + len(mode)

    f = optimize(backend, FRONTEND, recompile_limit=3)(pick)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(6):
            np.testing.assert_array_equal(f(ones(1), "m" * k), [1 + k])
    assert len(graphs) == 3
    (warning,) = [w for w in caught if w.category is CaptureWarning]
    text = str(warning.message)
    assert "compiled 3 times" in text and "L['mode'] == 'mm', but it is 'mmm'" in text and __file__ in text
    before = dynamo.capture._core.counters()["hits"]
    f(ones(1), "m")
    assert dynamo.capture._core.counters()["hits"] == before + 1
    strict = optimize(backend, FRONTEND, recompile_limit=1, fullgraph=True)(pick)
    strict(ones(1), "a")
    with pytest.raises(dynamo.DynamoError, match="recompile_limit"):
        strict(ones(1), "b")


def breaks_here(x):
    y = x + 1
    gc.get_threshold()
    return y * 2


def test_break_and_fullgraph():
    with recording() as events:
        np.testing.assert_array_equal(compiled(breaks_here)(ones(1)), [4])
    assert len(graphs) == 2
    own = [e for e in events if e.function == "breaks_here"]
    assert [e.resumed for e in own] == [False, True]
    (reason,) = own[0].breaks
    line = breaks_here.__code__.co_firstlineno + 2
    assert reason.line == line and reason.file == __file__ and "get_threshold" in str(reason)
    assert own[0].graph is graphs[0] and own[0].seconds > 0 and any("float32[1]" in g for g in own[0].guards)
    with pytest.raises(dynamo.Unsupported, match="get_threshold") as caught:
        optimize(backend, FRONTEND, fullgraph=True)(breaks_here)(ones(1))
    assert caught.value is not None


def test_backend_errors_are_the_compiler_s():
    def broken(graph, example_inputs, context):
        raise ZeroDivisionError("in the backend")

    f = optimize(broken, FRONTEND, strict=False)(plain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            np.testing.assert_array_equal(f(ones(1)), [2])
    (warning,) = [w for w in caught if w.category is CaptureWarning]
    text = str(warning.message)
    assert all(part in text for part in ("in the backend", "LAMINA_STRICT"))
    assert f"{__file__}:{plain.__code__.co_firstlineno}" in text
    with pytest.raises(Exception, match="in the backend"):
        optimize(broken, FRONTEND, strict=True)(plain)(ones(1))


def test_strict_from_the_environment(monkeypatch):
    monkeypatch.setenv("LAMINA_STRICT", "1")
    assert Config().strict
    monkeypatch.setenv("LAMINA_STRICT", "0")
    assert not Config().strict


def test_disable():
    @disable
    def hidden(x):
        return x * 3

    @disable(reason="talks to the network")
    def other(x):
        return hidden(x)

    def f(x):
        return hidden(x + 1) + 1

    np.testing.assert_array_equal(compiled(f)(ones(1)), [7])
    assert len(graphs) == 2 and not any(n.target == "operator.mul" for g in graphs for n in g.nodes)
    assert hidden.__name__ == "hidden" and other.reason == "talks to the network"
    np.testing.assert_array_equal(compiled(lambda x: other(x) + 1)(ones(1)), [4])
    with pytest.raises(dynamo.Unsupported):
        optimize(backend, FRONTEND, fullgraph=True)(f)(ones(1))
    with pytest.raises(TypeError, match="expects a callable"):
        disable(3)


def test_is_compiling():
    def f(x):
        return x + 1 if dynamo.is_compiling() else x - 1

    assert dynamo.is_compiling() is False
    np.testing.assert_array_equal(f(ones(1)), [0])
    np.testing.assert_array_equal(optimize(backend, FRONTEND, fullgraph=True)(f)(ones(1)), [2])


def test_compiled_calls_compiled():
    inner = compiled(plain)

    def outer(x):
        return inner(x) * 2

    np.testing.assert_array_equal(compiled(outer)(ones(1)), [4])


def test_errors_of_the_user_pass_through():
    def f(x):
        y = x + 1
        raise LookupError(y.shape)

    for _ in range(2):
        with pytest.raises(LookupError, match=r"\(1,\)"):
            compiled(f)(ones(1))
    assert not dynamo.capture._core.is_capturing()


def test_threads():
    f = optimize(backend, FRONTEND, recompile_limit=100)(plain)
    failures = []

    def work(n):
        try:
            for k in range(30):
                np.testing.assert_array_equal(f(ones(n + k % 3)), np.full(n + k % 3, 2))
        except BaseException as e:  # noqa: BLE001  (handed to the main thread)
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_nothing_is_kept_alive():
    class Big:
        pass

    def make():
        weight, marker = ones(3), Big()

        def f(x):
            return x * weight, marker

        return f, weakref.ref(f), weakref.ref(marker), weakref.ref(f.__code__)

    f, *alive = make()
    g = compiled(f)
    g(ones(3))
    assert len(graphs) == 1
    graphs.clear()
    del f, g
    gc.collect()
    assert [r() for r in alive[:2]] == [None, None]


def test_reset_compiles_anew():
    f = compiled(plain)
    f(ones(2))
    dynamo.reset()
    f(ones(2))
    assert len(graphs) == 2


def test_loop_with_a_break_compiles_its_body_once():
    def f(x, n):
        for _ in range(n):
            x = x + 1
            gc.get_threshold()
            x = x * 2
        return x

    g = compiled(f)
    expected = f(ones(1), 40)
    np.testing.assert_array_equal(g(ones(1), 40), expected)
    count = len(graphs)
    assert count <= 4
    np.testing.assert_array_equal(g(ones(1), 41), f(ones(1), 41))
    assert len(graphs) <= count + 2


def test_deep_loop_with_a_break_does_not_recurse():
    def f(x, n):
        while n:
            gc.get_threshold()
            x = x + 1
            n = n - 1
        return x

    np.testing.assert_array_equal(compiled(f)(ones(1), 3000), [3001])


def test_trace_function_sees_the_function():
    f = compiled(plain)
    f(ones(1))
    names = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: names.append(frame.f_code.co_name))
    try:
        f(ones(1))
    finally:
        sys.settrace(before)
    assert "plain" in names


def test_methods_of_c_objects_are_not_frozen():
    """A match object differs on every call of the function that re.sub calls."""

    def f(text):
        return re.sub(r"\$(?P<n>[a-z]+)", lambda match: match.group("n").upper(), text)

    assert compiled(f)("$who likes $what") == "WHO likes WHAT"


def test_finders_of_imports_are_left_alone():
    class Finder:
        def find_spec(self, name, path=None, target=None):
            return None

    assert skip_reason(Finder.find_spec.__code__) == "part of importing a module"
