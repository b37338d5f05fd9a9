"""The functions of breaks_zoo under capture.

Same results, same order of effects, same errors, no fault inside the compiler.
"""

from __future__ import annotations

import dis
import sys
import traceback
import warnings

import breaks_zoo as zoo
import pytest

from lamina_dynamo import CaptureWarning, optimize, reset
from lamina_dynamo.backends import interpret
from lamina_dynamo.numpy_frontend import NumpyFrontend


def backend(graph, example_inputs, context):
    return interpret(graph, example_inputs, context)


@pytest.mark.parametrize("function", zoo.ZOO, ids=lambda f: f.__name__)
@pytest.mark.parametrize("suppress", [False, True], ids=["", "suppress"])
@pytest.mark.parametrize("how", [None, 1, 2, 3, "late"], ids=str)
def test_same_as_plain(function, how, suppress):
    reset()
    plain = zoo.run(function, how, suppress)
    compiled = optimize(backend, NumpyFrontend(), recompile_limit=64)(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        for _ in range(2):
            assert zoo.run(compiled, how, suppress)[:2] == plain[:2]
            assert sys.exc_info()[1] is None  # no handler was left unfinished


@pytest.mark.parametrize("function", [zoo.try_block, zoo.exception_group, zoo.nested_with], ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", [None, 1, "late"], ids=str)
def test_called_inside_a_handler(function, how):
    """What the caller handles is what it handles afterwards, and the context of errors raised inside."""
    reset()
    compiled = optimize(backend, NumpyFrontend())(function)
    for f in (function, compiled, compiled):
        with pytest.raises(LookupError, match="outer") as caught:
            try:
                raise LookupError("outer")
            except LookupError as outer:
                result = zoo.run(f, how, True)[0]
                if result[0] == "raised":
                    assert result[4] == "LookupError" or function is not zoo.try_block
                assert sys.exc_info()[1] is outer
                raise
        assert caught.value.args == ("outer",)


@pytest.mark.parametrize("function", [zoo.with_block, zoo.nested_with, zoo.with_in_loop], ids=lambda f: f.__name__)
def test_frames_of_an_error_stand_at_instructions(function):
    """A with-block that lets an error pass puts its frame back to where the error came from, as far as it can."""
    reset()
    compiled = optimize(backend, NumpyFrontend())(function)
    for how in (1, "late", 1, "late"):
        zoo.mode, zoo.calls[0] = how, 0
        with pytest.raises((KeyError, ValueError)) as caught:
            compiled(3, zoo.CM("cm"))
        for frame, line in traceback.walk_tb(caught.value.__traceback__):
            assert frame.f_lasti in {i.offset for i in dis.get_instructions(frame.f_code, show_caches=True)}
            assert line is not None
    zoo.mode = None
