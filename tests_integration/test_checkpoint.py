"""Checkpoints inside compiled functions: results as in eager, and memory that is really saved."""

from __future__ import annotations

import math
from typing import Any

import pytest
from compare import assert_same

import lamina
from lamina_inductor import CppBackend

BLOCKS, BATCH, WIDTH, HIDDEN = 4, 64, 8, 32
BOUNDARY = BATCH * WIDTH * 4
INSIDE = BATCH * HIDDEN * 4


class Block(lamina.nn.Module):
    """Wide inside, narrow at its ends."""

    def __init__(self, drop: float) -> None:
        super().__init__()
        self.wide = lamina.nn.Linear(WIDTH, HIDDEN)
        self.narrow = lamina.nn.Linear(HIDDEN, WIDTH)
        self.drop = lamina.nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        return x + self.narrow(self.drop(lamina.nn.functional.gelu(self.wide(x)).sin()))


class Net(lamina.nn.Module):
    def __init__(self, checkpoints: bool, drop: float = 0.0) -> None:
        super().__init__()
        self.checkpoints = checkpoints
        self.blocks = lamina.nn.ModuleList([Block(drop) for _ in range(BLOCKS)])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = lamina.utils.checkpoint.checkpoint(block, x) if self.checkpoints else block(x)
        return x


def train(checkpoints: bool, drop: float, compiled: str, backend: str = "reference") -> Any:
    """Losses and parameters after three steps; ``compiled`` is "", "forward" or "step"."""
    lamina.manual_seed(0)
    model, x = Net(checkpoints, drop), lamina.randn(BATCH, WIDTH)
    optimizer = lamina.optim.SGD(model.parameters(), lr=0.1)

    def forward(x: Any) -> Any:
        return model(x).pow(2).mean()

    if compiled == "forward":
        forward = lamina.compile(forward, backend=backend)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = forward(x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if compiled == "step":
        step = lamina.compile(step, backend=backend)
    return [step(x) for _ in range(3)], [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("drop", [0.0, 0.3])
@pytest.mark.parametrize("compiled", ["", "forward", "step"])
def test_a_checkpoint_changes_no_result(compiled: str, drop: float) -> None:
    assert_same(train(False, drop, ""), train(True, drop, compiled), 1e-5)


def last_graph(part: str) -> Any:
    """The last compiled primitives of a half."""
    record = lamina.compiler.records()[-1]
    return next(g for name, g in record.stages.items() if name == f"prims:{record.name}{part}")


def returned_bytes(graph: Any) -> int:
    return sum(4 * math.prod(n.spec.shape) for n in graph.output_node.all_input_nodes)


def workspace(graph: Any) -> int:
    return CppBackend().program(graph, name="measured").workspace


def test_the_forward_keeps_what_leaves_the_regions() -> None:
    train(False, 0.0, "forward")
    plain = returned_bytes(last_graph(""))
    lamina.compiler.reset()
    train(True, 0.0, "forward")
    kept = returned_bytes(last_graph(""))
    assert plain >= BLOCKS * INSIDE
    assert kept <= 4 + BLOCKS * BOUNDARY


def test_a_step_that_contains_its_backward_computes_regions_again() -> None:
    train(False, 0.0, "step")
    plain = workspace(last_graph(""))
    lamina.compiler.reset()
    train(True, 0.0, "step")
    assert workspace(last_graph("")) < 0.6 * plain


def test_results_of_a_checkpoint_have_a_history_where_only_its_parameters_want_one() -> None:
    block = lamina.nn.Linear(3, 3)
    out = lamina.utils.checkpoint.checkpoint(block, lamina.ones(2, 3))
    out.sum().backward()
    assert block.weight.grad is not None
    frozen = lamina.nn.Linear(3, 3).requires_grad_(False)
    assert not lamina.utils.checkpoint.checkpoint(frozen, lamina.ones(2, 3)).requires_grad
