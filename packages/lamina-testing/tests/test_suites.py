"""The suites themselves: they accept the reference interpreter and refuse wrong results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, Interpreter
from lamina_prims import operator
from lamina_testing.suites import BackendSuite, EagerSuite


class TestInterpreter(BackendSuite):
    """The interpreter of fx is a backend."""

    def run(self, graph: Graph, inputs: list[Any]) -> Any:
        return Interpreter(graph, operator).run(*inputs)


class TestPlainArrays(EagerSuite):
    """NumPy arrays are an eager library."""

    def wrap(self, array: Any, requires_grad: bool) -> Any:
        return array

    def unwrap(self, tensor: Any) -> Any:
        return tensor


class _Wrong(BackendSuite):
    def run(self, graph: Graph, inputs: list[Any]) -> Any:
        result = Interpreter(graph, operator).run(*inputs)
        return result + np.ones((), result.dtype)


def test_wrong_values_are_found() -> None:
    with pytest.raises(AssertionError, match="tanh"):
        _Wrong().test_samples("tanh")


def test_unsupported_is_skipped_with_a_reason() -> None:
    suite = TestInterpreter()
    suite.unsupported = frozenset({"exp"})
    with pytest.raises(pytest.skip.Exception, match="needs exp"):
        suite.test_samples("softmax")
