"""Compiled graphs give the eager engine's results, gradients and side effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import Recorder, graph_of, run_by_operators

import lamina_tensor
from lamina_aot import compile_captured
from lamina_fx import Graph, Node
from lamina_tensor import Tensor, autograd, from_numpy, tensor


def random(*shape: int) -> Tensor:
    return from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def layer(g: Graph, x: Node, w: Node) -> Any:
    h = g.call_function("tanh", (g.call_function("matmul", (x, w)),))
    return g.call_function("sum", (h,)), h


def test_forward_and_gradients_are_those_of_eager() -> None:
    x, w = random(4, 3).requires_grad_(), random(3, 5).requires_grad_()
    compiled = compile_captured(graph_of(layer, (4, 3), (3, 5)), [x, w], run_by_operators)
    total, h = compiled(x, w)
    (total + (h * h).sum()).backward()
    found = x.grad.numpy().copy(), w.grad.numpy().copy()
    x.grad = w.grad = None
    h = (x @ w).tanh()
    (h.sum() + (h * h).sum()).backward()
    np.testing.assert_allclose(found[0], x.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(found[1], w.grad.numpy(), rtol=1e-6)


def test_no_gradient_wanted_no_backward() -> None:
    x, w = random(4, 3), random(3, 5)
    compiled = compile_captured(graph_of(layer, (4, 3), (3, 5)), [x, w], run_by_operators)
    total, h = compiled(x, w)
    assert not total.requires_grad and not h.requires_grad
    np.testing.assert_allclose(h.numpy(), np.tanh(x.numpy() @ w.numpy()), rtol=1e-6)


def test_input_written_in_place_is_seen_by_the_caller() -> None:
    def build(g: Graph, x: Node) -> Any:
        g.call_function("add_", (x, 1.0), effect="write")
        return (g.call_function("mul", (x, 2.0)),)

    x = random(4)
    before, version = x.numpy().copy(), x._version
    (doubled,) = compile_captured(graph_of(build, (4,)), [x], run_by_operators)(x)
    np.testing.assert_allclose(x.numpy(), before + 1)
    np.testing.assert_allclose(doubled.numpy(), (before + 1) * 2)
    assert x._version > version


def test_write_through_a_view_changes_the_base() -> None:
    def build(g: Graph, x: Node) -> Any:
        row = g.call_function("select", (x, 0, 1))
        g.call_function("mul_", (row, 3.0), effect="write")
        return (g.call_function("sum", (x,)),)

    x = random(3, 4)
    expected = x.numpy().copy()
    expected[1] *= 3
    (total,) = compile_captured(graph_of(build, (3, 4)), [x], run_by_operators)(x)
    np.testing.assert_allclose(x.numpy(), expected)
    np.testing.assert_allclose(total.numpy(), expected.sum(), rtol=1e-5)


def test_written_input_keeps_its_history() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        g.call_function("mul_", (x, w), effect="write")
        return (g.call_function("sum", (x,)),)

    leaf, w = random(4).requires_grad_(), random(4)
    example = (leaf * 1.0).detach().requires_grad_() * 1.0
    compiled = compile_captured(graph_of(build, (4,), (4,)), [example, w], run_by_operators)
    x = leaf * 2.0
    (total,) = compiled(x, w)
    (total + x.sum()).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 4 * w.numpy(), rtol=1e-6)


def test_outputs_that_are_inputs_or_views_of_them() -> None:
    def build(g: Graph, x: Node) -> Any:
        return x, g.call_function("transpose", (x, 0, 1)), g.call_function("neg", (x,))

    x = random(2, 3)
    same, view, fresh = compile_captured(graph_of(build, (2, 3)), [x], run_by_operators)(x)
    assert same is x
    view.fill_(7.0)
    assert float(x[0, 0]) == 7.0 and tuple(view.shape) == (3, 2)
    assert float(fresh[0, 0]) != -7.0


def training_step(g: Graph, x: Node, w: Node) -> Any:
    total, _ = layer(g, x, w)
    g.call_function("autograd.backward", (total,), effect="grad")
    grad = g.call_function("grad_get", (w,), effect="grad")
    g.regions = ("no_grad",)
    g.call_function("sub_", (w, g.call_function("mul", (grad, 0.1))), effect="write")
    g.regions = ()
    return (total,)


def test_a_training_step_is_one_graph_without_saved_values() -> None:
    x, w = random(4, 3), random(3, 5).requires_grad_()
    eager = w.detach().clone().requires_grad_()
    seen = Recorder()
    compiled = compile_captured(graph_of(training_step, (4, 3), (3, 5)), [x, w], run_by_operators, observe=seen)
    compiled(x, w)
    (x @ eager).tanh().sum().backward()
    with lamina_tensor.no_grad():
        eager.sub_(eager.grad * 0.1)
    np.testing.assert_allclose(w.detach().numpy(), eager.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), eager.grad.numpy(), rtol=1e-6)
    assert list(seen.graphs) == ["joint"]
    assert [n.target for n in seen.graphs["joint"].nodes if n.effect] == ["copy_to"]


def test_gradients_accumulate_into_what_is_there() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        g.call_function("autograd.backward", (layer(g, x, w)[0],), effect="grad")
        return ()

    x, w = random(4, 3), random(3, 5).requires_grad_()
    (x @ w).tanh().sum().backward()
    once = w.grad.numpy().copy()
    compile_captured(graph_of(build, (4, 3), (3, 5)), [x, w], run_by_operators)(x, w)
    np.testing.assert_allclose(w.grad.numpy(), 2 * once, rtol=1e-6)


def test_derivatives_of_any_order() -> None:
    def build(g: Graph, x: Node) -> Any:
        square = g.call_function("mul", (x, x))
        return (g.call_function("sum", (g.call_function("mul", (square, square)),)),)

    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    (y,) = compile_captured(graph_of(build, (3,)), [x], run_by_operators)(x)
    (first,) = autograd.grad(y, [x], create_graph=True)
    (second,) = autograd.grad(first.sum(), [x], create_graph=True)
    (third,) = autograd.grad(second.sum(), [x])
    assert first.tolist() == [4.0, 32.0, 108.0]
    assert second.tolist() == [12.0, 48.0, 108.0]
    assert third.tolist() == [24.0, 48.0, 72.0]


def test_backward_twice_with_retain_graph() -> None:
    x, w = random(4, 3), random(3, 5).requires_grad_()
    total, _ = compile_captured(graph_of(layer, (4, 3), (3, 5)), [x, w], run_by_operators)(x, w)
    total.backward(retain_graph=True)
    once = w.grad.numpy().copy()
    total.backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * once)


def test_no_grad_region_cuts_the_history() -> None:
    def build(g: Graph, x: Node) -> Any:
        g.regions = ("no_grad",)
        frozen = g.call_function("exp", (x,))
        g.regions = ()
        return (g.call_function("sum", (g.call_function("mul", (frozen, x)),)),)

    x = random(3).requires_grad_()
    (y,) = compile_captured(graph_of(build, (3,)), [x], run_by_operators)(x)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.detach().numpy()), rtol=1e-6)


def test_errors_are_those_of_eager() -> None:
    x, w = random(4, 3), random(4, 5)
    with pytest.raises(RuntimeError) as compiled:
        compile_captured(graph_of(layer, (4, 3), (4, 5)), [x, w], run_by_operators)
    with pytest.raises(RuntimeError) as eager:
        x @ w
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]


def test_nodes_of_the_backward_name_the_line_they_derive_from() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        h = g.call_function("tanh", (g.call_function("matmul", (x, w)),))
        total = g.call_function("sum", (h,))
        for line, node in enumerate(n for n in g.nodes if n.op == "call_function"):
            node.meta["source"] = ("user.py", line, "f")
        return (total,)

    x, w = random(4, 3).requires_grad_(), random(3, 5).requires_grad_()
    seen = Recorder()
    compile_captured(graph_of(build, (4, 3), (3, 5)), [x, w], run_by_operators, observe=seen)
    lines = {n.target: n.meta["source"][1] for n in seen.graphs["backward"].nodes if n.op == "call_function"}
    assert lines["matmul"] == 0 and lines["mul"] == 1 and lines[next(iter(lines))] == 2, lines


def test_so_do_those_of_a_backward_in_the_program() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        result = training_step(g, x, w)
        for line, node in enumerate(n for n in g.nodes if n.op == "call_function"):
            node.meta["source"] = ("user.py", line, "f")
        return result

    x, w = random(4, 3), random(3, 5).requires_grad_()
    seen = Recorder()
    compile_captured(graph_of(build, (4, 3), (3, 5)), [x, w], run_by_operators, observe=seen)
    calls = [n for n in seen.graphs["joint"].nodes if n.op == "call_function" and not n.effect]
    assert all("source" in n.meta for n in calls)
    assert {n.meta["source"][1] for n in calls if n.target in ("matmul", "dot_general")} == {0}
