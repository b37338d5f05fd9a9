"""``dynamic=True``: one compile serves many sizes, forward and backward, also sizes 1 and 0."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from compare import assert_same, outcome
from test_models import GPT, VAE, Attention, LeNet, LSTMLoop

import lamina
import lamina.nn as nn


def run(model: Any, make: Callable[..., Any], sizes: list[Any], graphs: int, tolerance: float = 1e-4) -> None:
    """Outputs and gradients at every size, from a model compiled once; sizes 0 and 1 may need a graph of their own."""
    twin = copy.deepcopy(model)
    compiled = lamina.compile(twin.forward, dynamic=True)
    for size in sizes:
        arguments = make(*size)
        results = []
        for owner, call in ((model, model), (twin, compiled)):
            lamina.manual_seed(3)
            out = call(arguments)
            (out * out).sum().backward()
            shown = out.detach() if out.numel() else tuple(out.shape)  # strides of nothing mean nothing
            results.append((shown, {n: p.grad for n, p in owner.named_parameters()}))
            for parameter in owner.parameters():
                parameter.grad = None
        assert_same(results[0], results[1], tolerance, f"{type(model).__name__} at {size}")
    made = outcome()
    assert made.graphs <= graphs and made.breaks == 0


def mlp() -> Any:
    return nn.Sequential(
        nn.Linear(6, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.2), nn.Linear(32, 5), nn.Softmax(-1)
    )


def transformer() -> Any:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, 1)


MANY = [(4, 7), (5, 6), (2, 3), (33, 5), (3, 2)]
CASES: dict[str, tuple[Any, Any, list[Any], int]] = {
    "mlp": (mlp, lambda b, s: lamina.randn(b, s, 6), MANY, 1),
    "lenet": (LeNet, lambda b: lamina.randn(b, 1, 28, 28), [(3,), (2,), (7,)], 1),
    "attention": (lambda: Attention(16, 2), lambda b, s: lamina.randn(b, s, 16), MANY, 1),
    "gpt": (GPT, lambda b, s: lamina.randint(0, 17, (b, s)), [(4, 7), (5, 6), (2, 3), (33, 8)], 1),
    "lstm": (LSTMLoop, lambda b: lamina.randn(4, b, 5), [(3,), (2,), (9,)], 1),
    "vae": (VAE, lambda b: lamina.randn(b, 10), [(5,), (2,), (64,)], 1),
    "transformer": (transformer, lambda b, s: lamina.randn(b, s, 16), MANY, 1),
    "one result": (lambda: nn.Linear(6, 1), lambda b: lamina.randn(b, 6), [(4,), (5,), (2,)], 1),
    "one and none": (
        mlp,
        lambda b, s: lamina.randn(b, s, 6),
        [(4, 7), (1, 7), (4, 1), (1, 1), (0, 7), (3, 0), (2, 9)],
        8,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_compile_serves_many_sizes(name: str) -> None:
    build, make, sizes, graphs = CASES[name]
    run(build(), make, sizes, graphs)


def scaled(x: Any) -> Any:
    return (x * 2 + 1).sum(dim=0), x.relu()


def joined(x: Any) -> Any:
    return lamina.cat([x, x * 2]).softmax(-1).sum(0)


def divided(x: Any) -> Any:
    return x / x.shape[0] if x.shape[0] > 0 else x


@pytest.mark.parametrize(
    ("function", "sizes", "graphs"),
    [
        (scaled, [4, 5, 6, 7], 2),  # the first size, then one for all
        (scaled, [0, 4, 5, 0, 1, 7], 3),  # none and one have their own
        (scaled, [4, 0, 5, 6, 1], 4),
        (scaled, [1, 4, 5, 1, 0, 9], 3),
        (joined, [0, 4, 1, 5, 0], 3),
        (divided, [4, 5, 0, 6, 0, 1], 3),  # a branch on the size: none is a program without a graph
        (divided, [0, 4, 5, 1], 2),
    ],
)
def test_how_often_sizes_compile(function: Callable[..., Any], sizes: list[int], graphs: int) -> None:
    compiled = lamina.compile(function)
    for size in sizes:
        x = lamina.arange(3 * size).float().reshape(size, 3).div(10)
        assert_same(function(x), compiled(x), 1e-6, f"size {size}")
    made = outcome()
    assert (made.graphs, made.breaks) == (graphs, 0)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 3)])
def test_arguments_of_size_one_that_broadcast_get_their_gradient(shape: tuple[int, ...]) -> None:
    small, large = lamina.randn(*shape).requires_grad_(), lamina.randn(4, 3).requires_grad_()

    def gradients(function: Any) -> list[Any]:
        return list(lamina.autograd.grad(function(small, large).sum(), (small, large)))

    def program(a: Any, b: Any) -> Any:
        return (b - a) * a

    assert_same(gradients(program), gradients(lamina.compile(program, dynamic=True)), 1e-5, str(shape))
    assert outcome().breaks == 0 and outcome().graphs == 1


def test_positions_that_are_constants_do_not_fix_the_size() -> None:
    def program(x: Any) -> Any:
        return x.index_select(0, lamina.tensor([1, 0, -1 % 2]))

    compiled = lamina.compile(program, dynamic=True)
    for size in (4, 8, 2):
        x = lamina.randn(size, 3)
        assert_same(program(x), compiled(x), 0.0, str(size))
    assert outcome().graphs == 1


def test_a_range_that_has_one_and_none_is_one_program() -> None:
    compiled = lamina.compile(scaled)
    for size in (4, 1, 0, 7):
        x = lamina.arange(3 * size).float().reshape(size, 3).div(10)
        lamina.compiler.mark_dynamic(x, 0, lower=0)
        assert_same(scaled(x), compiled(x), 1e-6, f"size {size}")
    assert outcome().graphs == 1


@pytest.mark.parametrize("marked", [False, True])
def test_layouts_at_size_one_are_those_of_eager(marked: bool) -> None:
    def program(x: Any) -> Any:
        return (x.t() + 1).as_strided((3,), (1,), 0)

    compiled = lamina.compile(program, dynamic=None if marked else True)
    for size in (4, 1, 5, 1):
        x = lamina.randn(size, 3)
        if marked:
            lamina.compiler.mark_dynamic(x, 0)
        assert_same(program(x), compiled(x), 0.0, str(size))
        assert_same((x.t() + 1).stride(), lamina.compile(lambda x: x.t() + 1, dynamic=True)(x).stride(), 0.0)
    assert outcome().breaks == 0


class Normed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(width), nn.Linear(width, 2 * width)

    def forward(self, x: Any) -> Any:
        return self.linear(self.norm(x))


def symbolic_inputs() -> dict[str, tuple[Any, ...]]:
    """Shapes of the newest graph's inputs that have a symbolic size."""
    graph = next(e.graph for e in reversed(lamina.compiler.events()) if e.graph is not None)
    shapes = {n.name: n.spec.shape for n in graph.nodes if n.op == "placeholder" and hasattr(n.spec, "shape")}
    return {name: shape for name, shape in shapes.items() if any(type(size) is not int for size in shape)}


def test_a_model_and_its_optimizer_keep_their_sizes() -> None:
    model = Normed(6)
    optimizer = lamina.optim.AdamW(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = lamina.compile(step, dynamic=True)
    twin = copy.deepcopy((model, optimizer))
    batches = [lamina.randn(size, 6) for size in (4, 5, 7)]
    losses = [compiled(x) for x in batches]
    model, optimizer = twin
    assert_same([step(x) for x in batches], losses, 1e-5)
    assert [shape[1] for shape in symbolic_inputs().values()] == [6]
    assert outcome().graphs == 2  # gradients there are from the second step on


def test_a_parameter_that_is_marked_is_symbolic() -> None:
    table = nn.Parameter(lamina.randn(5, 3))
    lamina.compiler.mark_dynamic(table, 0)
    lamina.compile(lambda: table * 2)()
    assert [len(shape) for shape in symbolic_inputs().values()] == [2]


def test_parameters_of_several_sizes_become_symbolic() -> None:
    compiled = lamina.compile(lambda weight, x: x @ weight, dynamic=True)
    for size in (4, 5, 6, 7):
        weight, x = nn.Parameter(lamina.randn(3, size)), lamina.randn(2 * size, 3)
        assert_same(x @ weight, compiled(weight, x), 1e-5, str(size))
    assert outcome().graphs == 2


def test_gradients_of_fewer_dimensions_do_not_tell_sizes_apart() -> None:
    """What is broadcast over the batch has a gradient with other dimensions: a batch may be as large as a length."""
    table = nn.Parameter(lamina.randn(9, 3))

    def program(x: Any) -> Any:
        return lamina.autograd.grad((x * table[: x.shape[1]]).square().sum(), table)[0]

    compiled = lamina.compile(program, dynamic=True)
    for batch, length in ((4, 7), (5, 5), (7, 2)):
        x = lamina.randn(batch, length, 3)
        assert_same(program(x), compiled(x), 1e-4, f"{batch} x {length}")
    assert outcome().graphs == 1 and outcome().breaks == 0
