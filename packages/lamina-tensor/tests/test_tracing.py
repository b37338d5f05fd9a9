"""Programs traced through the engine, run by the interpreter, equal to running them on real tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_fx import Graph, Interpreter, TensorSpec, float32
from lamina_prims import operator
from lamina_tensor.creator import creating_tensors


def joint(program: Callable[..., Any], *leaves: lt.Tensor) -> tuple[Graph, list[str]]:
    """Graph of the loss, the gradients and the values of mutated inputs."""
    graph = Graph()
    nodes = [graph.placeholder(f"p{i}", spec=t.spec) for i, t in enumerate(leaves)]
    with lt.trace(graph) as tracer:
        inputs = [tracer.input(n, t.requires_grad) for n, t in zip(nodes, leaves, strict=True)]
        loss = program(*inputs)
        loss.backward()
        grads = [tracer.value(t.grad) for t in inputs if t.grad is not None]
        graph.output((tracer.value(loss), tuple(grads), tuple(tracer.value(t) for t in inputs if tracer.mutated(t))))
    return graph, [n.target for n in graph.nodes]


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    hidden = (x @ w1 + b1).tanh()
    return ((hidden @ w2) ** 2).mean()


def in_place(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    x.add_(1)
    hidden = x @ w1
    hidden += b1
    hidden[:, 0] = 0
    hidden.view(-1)[1:3].mul_(2)
    hidden.relu_()
    return (hidden @ w2).sum() + lt.zeros(2).add_(1).sum()


def indexed(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    rows = (x @ w1)[lt.tensor([0, 2, 2])]
    kept = lt.where(rows > 0, rows, 0.1 * rows)
    left, right = lt.cat([kept, b1[None]]).chunk(2, dim=1)
    return (left.sum(0) * 2).sum() + right.softmax(-1).max(1).values.sum() + w2.prod()


class Cube(lt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.saved_tensors[0] ** 2 * grad


def modes(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    with lt.no_grad():
        scale = (x @ w1).abs().amax()
    hidden = Cube.apply(x @ w1 + b1) / scale
    hidden.register_hook(lambda g: g * 2)
    return (hidden @ w2.detach()).sum() + (w2 * w2.detach()).sum()


def second_order(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    (slope,) = lt.autograd.grad((x @ w1).tanh().sum(), w1, create_graph=True)
    return (slope**2).sum() + (b1 * w2.t()).sum()


PROGRAMS = [mlp, in_place, indexed, modes, second_order]


def leaves() -> list[lt.Tensor]:
    rng = np.random.default_rng(0)
    shapes = [(4, 3), (3, 6), (6,), (6, 2)]
    tensors = [lt.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in shapes]
    for tensor in tensors[1:]:
        tensor.requires_grad_()
    return tensors


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_joint_graph_equals_eager(program: Callable[..., Any]) -> None:
    graph, _ = joint(program, *leaves())
    assert all(node.effect is None for node in graph.nodes)
    with creating_tensors():
        loss, grads, mutated = Interpreter(graph, operator).run(*[t.detach() for t in leaves()])
    real = leaves()
    expected = program(*real)
    expected.backward()
    np.testing.assert_allclose(loss.numpy(), expected.detach().numpy(), rtol=1e-5)
    wanted = [t.grad.numpy() for t in real if t.grad is not None]
    assert len(grads) == len(wanted)
    for got, want in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)
    if program is in_place:
        np.testing.assert_allclose(mutated[0].numpy(), leaves()[0].numpy() + 1)


def test_graph_is_at_core_level() -> None:
    _, targets = joint(lambda x, w1, b1, w2: (x @ w1).softmax(-1).sum() + b1.sum() * w2.sum(), *leaves())
    assert "softmax" in targets  # a composite with its own gradient stays whole
    assert "exp" not in targets


def test_aliased_inputs() -> None:
    graph = Graph()
    node = graph.placeholder("x", spec=TensorSpec((6,), float32))
    with lt.trace(graph) as tracer:
        whole = tracer.input(node)
        part = tracer.alias(whole, (2,), (1,), 2)
        part.add_(10)
        whole.mul_(2)
        graph.output((tracer.value(whole), tracer.value(part)))
        assert tracer.mutated(part)
    whole, part = Interpreter(graph, operator).run(lt.arange(6.0))
    assert np.asarray(whole).tolist() == [0, 2, 24, 26, 8, 10]
    assert np.asarray(part).tolist() == [24, 26]


def test_real_tensors_become_constants_once() -> None:
    graph, constant = Graph(), lt.ones(3)
    node = graph.placeholder("x", spec=constant.spec)
    with lt.trace(graph) as tracer:
        x = tracer.input(node)
        graph.output(tracer.value(x * constant + constant))
    assert [n.op for n in graph.nodes].count("get_attr") == 1
    assert next(iter(graph.attributes.values())) is constant


def test_errors() -> None:
    graph, outside = Graph(), lt.ones(2)
    spec = outside.spec
    with lt.trace(graph) as tracer:
        x = tracer.input(graph.placeholder("x", spec=spec))
        with pytest.raises(RuntimeError, match="no input of the trace"):
            outside.add_(x)
        with pytest.raises(RuntimeError, match="known only when the program runs"):
            x[0].item()
        with pytest.raises(RuntimeError, match="broadcast"):
            x + lt.ones(3)
        with pytest.raises(RuntimeError, match="has no value"):
            x + lt.fake_tensor(spec)
        with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
            x.requires_grad_()
            y = x.exp()
            y.add_(1)
            y.sum().backward()


def test_nodes_carry_the_meta_that_the_tracer_is_given() -> None:
    graph = Graph()
    with lt.trace(graph) as tracer:
        x = tracer.input(graph.placeholder("x", spec=TensorSpec((2,), float32)))
        tracer.meta = {"source": ("program.py", 3, "f")}
        graph.output(tracer.value(x + 1))
    assert next(n for n in graph.nodes if n.target == "add").meta["source"] == ("program.py", 3, "f")


def test_fake_tensors_know_shapes_views_and_gradients() -> None:
    x = lt.fake_tensor(TensorSpec((4, 3), float32), requires_grad=True)
    w = lt.ones(3, 5, requires_grad=True)
    y = (x @ w).softmax(-1) * 1
    view = y[:, 1:3].t()
    assert view.shape == (2, 4) and view.stride() == (1, 5) and view._base is y and view.storage is y.storage
    view.mul_(2)
    assert y._version == 1 and type(y.grad_fn).__name__ == "CopySlices"
    y.sum().backward()
    assert x.grad.shape == (4, 3) and w.grad.shape == (3, 5)
    with lt.fake_creation():
        assert isinstance(lt.zeros(2).storage, lt.FakeStorage)
    with pytest.raises(RuntimeError, match="has no values"):
        y.detach().numpy()


def test_symbolic_sizes() -> None:
    from lamina_fx.symbolic import ShapeEnv

    env = ShapeEnv()
    size = env.create_symbol(5, "x.shape[0]")
    x = lt.fake_tensor(TensorSpec((size, 3), float32), requires_grad=True)
    y = (x * 2).view(-1)[1:]
    assert not isinstance(y.shape[0], int)
    y.sum().backward()
    assert x.grad.shape[0] is size or x.grad.shape[0] == size
