"""Programs that contain their backward: which values are computed again there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import Recorder, graph_of, run_by_operators

from lamina_aot import compile_captured
from lamina_aot.recompute import LARGE
from lamina_fx import Graph, Node, bfloat16
from lamina_tensor import from_numpy

ROWS, SMALL = LARGE // 4 // 256, 8


def step(activation: str) -> Any:
    """A training step of ``activation(x @ w) @ v``, which keeps what is multiplied."""

    def build(g: Graph, x: Node, w: Node, v: Node) -> Any:
        h = g.call_function(activation, (g.call_function("matmul", (x, w)),))
        total = g.call_function("sum", (g.call_function("tanh", (g.call_function("matmul", (h, v)),)),))
        g.call_function("autograd.backward", (total,), effect="grad")
        return (total,)

    return build


def run(activation: str, rows: int) -> tuple[Graph, list[Any]]:
    rng = np.random.default_rng(0)
    x, w, v = (from_numpy(rng.standard_normal(s).astype(np.float32) * 0.1) for s in ((rows, 16), (16, 256), (256, 4)))
    w.requires_grad_(), v.requires_grad_()
    seen = Recorder()
    shapes = [tuple(t.shape) for t in (x, w, v)]
    compile_captured(graph_of(step(activation), *shapes), [x, w, v], run_by_operators, observe=seen)(x, w, v)
    h = getattr(x @ w, activation)() if activation != "gelu" else None
    if h is not None:
        total = (h @ v).tanh().sum()
        found = w.grad, v.grad
        w.grad = v.grad = None
        total.backward()
        for have, want in zip(found, (w.grad, v.grad), strict=True):
            np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=2e-4, atol=1e-4)
    return seen.graphs["joint"], [n for n in seen.graphs["joint"].nodes if n.op == "call_function"]


def test_weights_that_are_converted_for_products_are_kept() -> None:
    """As ``autocast`` does: made again in the backward, each would be a kernel of its own."""

    def build(g: Graph, x: Node, w: Node) -> Any:
        weight = g.call_function("convert_element_type", (w, bfloat16))
        h = g.call_function("matmul", (g.call_function("convert_element_type", (x, bfloat16)), weight))
        total = g.call_function("sum", (g.call_function("tanh", (h,)),))
        g.call_function("autograd.backward", (total,), effect="grad")
        return (total,)

    rows = LARGE // 2 // 128
    x, w = (from_numpy(np.ones(shape, np.float32)).requires_grad_() for shape in ((8, rows), (rows, 256)))
    seen = Recorder()
    compile_captured(graph_of(build, tuple(x.shape), tuple(w.shape)), [x, w], run_by_operators, observe=seen)(x, w)
    nodes = [n for n in seen.graphs["joint"].nodes if n.op == "call_function"]
    made = [n for n in nodes if n.target == "convert_element_type" and tuple(n.spec.shape) == (rows, 256)]
    assert len([n for n in made if n.spec.dtype is bfloat16]) == 1


def copies(nodes: list[Any], target: str) -> list[Any]:
    return [n for n in nodes if n.target == target and "backward" in n.regions]


@pytest.mark.parametrize("activation", ["gelu", "cos"])
def test_a_large_pointwise_value_is_made_again_from_what_is_kept(activation: str) -> None:
    """``cos`` and GELU read their argument in the backward anyway: only their result, a factor of ``v``'s gradient,
    would be kept besides."""
    graph, nodes = run(activation, ROWS)
    graph.lint()
    again = copies(nodes, activation)
    assert len(again) == 1
    [product] = [n for n in nodes if n.target == "dot_general" and again[0] in n.all_input_nodes]
    assert "backward" in product.regions
    [first] = [n for n in nodes if n.target == activation and "backward" not in n.regions]
    assert all("backward" not in user.regions for user in first.users)


def test_small_values_are_kept() -> None:
    assert not copies(run("cos", SMALL)[1], "cos")


def test_a_value_whose_argument_is_not_kept_stays() -> None:
    """The rule of ``tanh`` reads its result: keeping the argument as well would gain nothing."""
    _, nodes = run("tanh", ROWS)
    assert not [n for n in copies(nodes, "tanh") if n.spec.shape == (ROWS, 256)]


def test_graphs_that_are_cut_are_left_to_the_partition() -> None:
    def build(g: Graph, x: Node) -> Any:
        h = g.call_function("cos", (x,))
        return (g.call_function("mul", (h, h)),)

    x = from_numpy(np.ones((ROWS, 256), np.float32)).requires_grad_()
    seen = Recorder()
    compile_captured(graph_of(build, (ROWS, 256)), [x], run_by_operators, observe=seen)
    assert [n.target for n in seen.graphs["joint"].nodes].count("cos") == 1
