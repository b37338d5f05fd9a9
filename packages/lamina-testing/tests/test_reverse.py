"""The small reverse mode on a graph whose gradient is known."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_fx import Graph
from lamina_prims import operator
from lamina_testing import vjp


def test_chain_with_a_value_used_twice() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function("mul", (x, x))
    graph.output(graph.call_function("add", (y, x)))
    value = np.array([1.0, 2.0, 3.0])
    result, (gradient,) = vjp(graph, [value], lambda out: np.ones_like(out))
    np.testing.assert_allclose(result, value * value + value)
    np.testing.assert_allclose(gradient, 2 * value + 1)


def test_broadcast_is_summed_away() -> None:
    graph = Graph()
    x, b = graph.placeholder("x"), graph.placeholder("b")
    graph.output(graph.call_function("mul", (x, b)))
    _, (gx, gb) = vjp(graph, [np.ones((2, 3)), np.arange(3.0)], lambda out: np.ones_like(out))
    np.testing.assert_allclose(gx, np.tile(np.arange(3.0), (2, 1)))
    np.testing.assert_allclose(gb, [2.0, 2.0, 2.0])


def test_one_of_several_results() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    pair = graph.call_function("sort", (x, 0))
    graph.output(graph.call_function("getitem", (pair, 0)))
    _, (gradient,) = vjp(graph, [np.array([3.0, 1.0, 2.0])], lambda out: np.array([10.0, 20.0, 30.0]))
    np.testing.assert_allclose(gradient, [30.0, 10.0, 20.0])


def test_missing_derivative_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator("tanh"), "vjp_rule", None)
    graph = Graph()
    graph.output(graph.call_function("tanh", (graph.placeholder("x"),)))
    with pytest.raises(NotImplementedError, match="tanh"):
        vjp(graph, [np.ones(2)], lambda out: np.ones_like(out))
