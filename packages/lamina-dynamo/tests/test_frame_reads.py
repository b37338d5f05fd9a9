"""Functions that look at the variables of frames give what they give in Python, and say why they are not captured."""

# ruff: noqa: F841  (what is only read through frames)
from __future__ import annotations

import builtins
import inspect
import sys
import warnings

import numpy as np
import pytest

import lamina_dynamo as dynamo
from lamina_dynamo import DynamoError, optimize, recording
from lamina_dynamo.backends import interpret
from lamina_dynamo.numpy_frontend import NumpyFrontend

FRONTEND = NumpyFrontend()
alias = eval


@pytest.fixture(autouse=True)
def fresh():
    dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def evaluates(x):
    y = x * 2
    return eval("y + x")


def by_alias(x):
    y = x * 2
    return alias("y + x")


def by_module(x):
    y = x * 2
    return builtins.eval("y + x")


def executes(x):
    y = x * 2
    exec("y += x")
    return y


def takes_locals(x):
    y = x * 2
    return locals()["y"] + x


def takes_vars(x):
    y = x * 2
    return vars()["y"] + x


def lists_names(x):
    y = x * 2
    return x if "y" in dir() else y


def takes_frame(x):
    y = x * 2
    return sys._getframe().f_locals["y"] + x


def takes_current_frame(x):
    import inspect as look

    y = x * 2
    return look.currentframe().f_locals["y"] + x


def takes_stack(x):
    y = x * 2
    return inspect.stack()[0].frame.f_locals["y"] + x


READERS = [
    evaluates, by_alias, by_module, executes, takes_locals, takes_vars, lists_names, takes_frame, takes_current_frame,
    takes_stack,
]  # fmt: skip


def y_of_caller():
    return sys._getframe(1).f_locals["y"]


def asks_callee(x):
    y = x * 2
    return y_of_caller() + x


def calls_reader(x):
    y = x * 3
    return evaluates(y) + y


def reader_below_break(x):
    y = x * 2
    print(end="")
    return eval("y + x")


@pytest.mark.parametrize("fn", [*READERS, asks_callee, calls_reader, reader_below_break], ids=lambda f: f.__name__)
def test_readers_of_frames_give_what_python_gives(fn):
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(optimize(interpret, FRONTEND)(fn)(x), fn(x))


@pytest.mark.parametrize("fn", [*READERS, asks_callee], ids=lambda f: f.__name__)
def test_a_reader_is_skipped_and_says_what_it_calls(fn):
    with recording() as events:
        optimize(interpret, FRONTEND)(fn)(np.ones(3, np.float32))
    assert events[0].graph is None and events[0].skipped
    assert "looks at the" in str(events[0].breaks[0])


def test_a_call_of_a_reader_ends_the_graph_of_its_caller():
    with recording() as events:
        optimize(interpret, FRONTEND)(calls_reader)(np.ones(3, np.float32))
    assert events[0].graph is not None
    assert "evaluates, which looks at its own frame with eval()" in str(events[0].breaks[0])


@pytest.mark.parametrize("fn", [evaluates, asks_callee], ids=lambda f: f.__name__)
def test_fullgraph_raises_the_reason(fn):
    with pytest.raises(DynamoError, match=r"looks at the .*variables"):
        optimize(interpret, FRONTEND, fullgraph=True)(fn)(np.ones(3, np.float32))


class Model:
    def __init__(self):
        self.training = True

    def eval(self):
        return self

    def vars(self):
        return self


def test_methods_of_the_same_names_are_captured():
    model = Model()

    def fn(x):
        model.eval().vars()
        return x * 2 if vars(model) else x

    with recording() as events:
        optimize(interpret, FRONTEND)(fn)(np.ones(3, np.float32))
    assert not events[0].breaks and events[0].graph is not None
