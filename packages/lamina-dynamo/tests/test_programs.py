"""Captured = plain, for the table of programs: results, side effects, exceptions, and the number of graphs."""

from __future__ import annotations

import copy
import types

import numpy as np
import programs
import programs_breaks
import programs_classes
import programs_language
import programs_library
import pytest
from program_cases import CASES

from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import optimize
from lamina_dynamo.numpy_frontend import NumpyFrontend

FRONTEND = NumpyFrontend()
STATE = ("COUNTER", "TABLE", "LOG")
MODULES = (programs, programs_classes, programs_language, programs_library, programs_breaks)
"""What fills the table of cases."""


def same(a, b, path="result"):
    """Whether two values are equal, arrays and objects by their parts."""
    assert type(a) is type(b), (path, type(a), type(b))
    if isinstance(a, (np.ndarray, np.generic)):
        np.testing.assert_allclose(a, b, err_msg=path)
        assert a.dtype == b.dtype, path
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            same(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, (list, tuple)) or type(a).__name__ == "deque":
        assert len(a) == len(b), path
        for i, (v, w) in enumerate(zip(a, b, strict=True)):
            same(v, w, f"{path}[{i}]")
    elif hasattr(a, "__dict__") and not isinstance(a, types.FunctionType) and not hasattr(a, "_value_"):
        same(vars(a), vars(b), f"{path}.__dict__")
    elif hasattr(type(a), "__slots__") and not isinstance(a, (str, int, float, set, frozenset)):
        for name in type(a).__slots__:
            same(getattr(a, name, None), getattr(b, name, None), f"{path}.{name}")
    elif isinstance(a, types.FunctionType):
        assert a.__name__ == b.__name__, path
    else:
        assert a == b, (path, a, b)


def outcome(function, arguments):
    """What a call gives: result or exception, the arguments after it, the module's state after it."""
    before = {name: copy.deepcopy(getattr(programs, name)) for name in STATE}
    try:
        try:
            result = ("value", function(*arguments))
        except Exception as error:  # noqa: BLE001  (the exception is the outcome that is compared)
            result = ("error", type(error), error.args)
        return result, arguments, {name: getattr(programs, name) for name in STATE}
    finally:
        for name, value in before.items():
            setattr(programs, name, value)


@pytest.mark.parametrize("entry", CASES, ids=lambda c: c.function.__name__)
def test_captured_is_plain(entry, capsys):
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True)(entry.function)
    lazily = entry.function.__name__ == "returns_generator"
    for _ in range(entry.calls):
        capsys.readouterr()
        expected = outcome(entry.function, entry.arguments())
        printed = capsys.readouterr().out
        got = outcome(compiled, entry.arguments())
        assert capsys.readouterr().out == printed
        if lazily:
            expected, got = list(expected[0][1]), list(got[0][1])
        same(expected, got)
    if entry.graphs is not None:
        assert len(backend.graphs) == entry.graphs
