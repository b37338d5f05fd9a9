"""The functions of breaks_zoo under capture.

Same results, same order of effects, same errors, no fault inside the compiler.
"""

from __future__ import annotations

import warnings

import breaks_zoo as zoo
import pytest

from lamina_dynamo import CaptureWarning, optimize, reset
from lamina_dynamo.backends import interpret
from lamina_dynamo.numpy_frontend import NumpyFrontend


def backend(graph, example_inputs, context):
    return interpret(graph, example_inputs, context)


def without_line(outcome):
    """Drop the traceback's last line: an inlined function has no traceback entry of its own."""
    result, log = outcome[:2]
    return (result[:3], log) if result[0] == "raised" else (result, log)


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
            assert without_line(zoo.run(compiled, how, suppress)) == without_line(plain)
