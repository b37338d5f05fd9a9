"""Whole training steps, backward and optimizer inside, are one graph and give eager's parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from compare import assert_same

import lamina
import lamina.nn as nn
import lamina.nn.functional as F

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: lamina.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: lamina.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD dampening": lambda p: lamina.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "Adam": lambda p: lamina.optim.Adam(p, lr=1e-2),
    "Adam amsgrad": lambda p: lamina.optim.Adam(p, lr=1e-2, amsgrad=True),
    "RMSprop": lambda p: lamina.optim.RMSprop(p, lr=1e-2, momentum=0.9, centered=True),
    "Adagrad": lambda p: lamina.optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
    "Adadelta": lambda p: lamina.optim.Adadelta(p),
    "AdamW": lambda p: lamina.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
}


@pytest.mark.parametrize("zero_first", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_step_is_one_graph(name: str, zero_first: bool) -> None:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.LayerNorm(16), nn.Linear(16, 3))
    twin = copy.deepcopy(model)
    x, y = lamina.randn(10, 6), lamina.randint(0, 3, (10,))

    def make_step(net: Any) -> tuple[Callable[[Any, Any], Any], Any]:
        optimizer = OPTIMIZERS[name](net.parameters())

        def step(x: Any, y: Any) -> Any:
            if zero_first:
                optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            if not zero_first:
                optimizer.zero_grad()
            return loss.detach()

        return step, optimizer

    (eager, first), (plain, second) = make_step(model), make_step(twin)
    compiled = lamina.compile(plain, fullgraph=True)
    lamina.manual_seed(3)
    expected = [eager(x, y) for _ in range(4)]
    lamina.manual_seed(3)
    found = [compiled(x, y) for _ in range(4)]
    assert_same(expected, found, 1e-5)
    assert_same(model.state_dict(), twin.state_dict(), 1e-5)
    assert_same(first.state_dict()["state"], second.state_dict()["state"], 1e-5)
    for have, want in zip(twin.parameters(), model.parameters(), strict=True):
        assert_same(want.grad, have.grad, 1e-5)
    told = lamina.compiler.summary()
    assert (told.graphs, told.breaks) == (1, 0), told.break_reasons


def test_state_that_the_program_looks_at_is_made_when_it_is_made_in_eager() -> None:
    weight = lamina.ones(4).requires_grad_()
    optimizer = lamina.optim.Adam([weight], lr=0.1)
    seen = []

    @lamina.compile
    def step(x: Any) -> Any:
        seen.append(len(optimizer.state))
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(3):
        step(lamina.ones(4))
    assert seen == [0, 1, 1]


def test_only_parameters_with_a_gradient_get_a_state() -> None:
    used, unused = lamina.ones(4).requires_grad_(), lamina.ones(4).requires_grad_()
    optimizer = lamina.optim.AdamW([used, unused], lr=0.1)

    @lamina.compile(fullgraph=True)
    def step(x: Any) -> None:
        (used * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(lamina.ones(4))
    assert set(map(id, optimizer.state)) - {id(used)} <= {id(unused)} and not optimizer.state.get(unused)
    assert lamina.compiler.summary().graphs == 1


def test_gradient_replaced_at_entry() -> None:
    """What ``.grad`` held before does not matter, so the second call fits the first graph."""
    weight = lamina.ones(3).requires_grad_()

    @lamina.compile(fullgraph=True)
    def clear(x: Any) -> Any:
        weight.grad = None
        return x + 1

    @lamina.compile(fullgraph=True)
    def put(x: Any) -> Any:
        weight.grad = x * 2
        weight.grad.add_(1)
        return x + 1

    weight.grad = lamina.ones(3)
    clear(lamina.ones(3))
    assert weight.grad is None
    for start in (None, lamina.ones(3)):
        weight.grad = start
        put(lamina.ones(3))
        assert weight.grad.tolist() == [3.0, 3.0, 3.0]
    assert lamina.compiler.summary().graphs == 2


def test_learning_rates_do_not_recompile() -> None:
    weight = lamina.ones(4).requires_grad_()
    optimizer = lamina.optim.SGD([weight], lr=0.1)
    schedule = lamina.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    @lamina.compile
    def step(x: Any) -> Any:
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    for _ in range(6):
        step(lamina.ones(4))
        schedule.step()
    assert lamina.compiler.summary().graphs <= 2


def test_sum_of_losses_that_were_differentiated() -> None:
    """Returned for the log: it has no history here, and in eager none that can be used."""
    weight = lamina.ones(3).requires_grad_()

    @lamina.compile(fullgraph=True)
    def step(x: Any) -> tuple[Any, Any]:
        first = (weight * x).sum()
        first.backward()
        second = (weight * weight).sum()
        second.backward()
        return first + second, (weight * x * 3).sum()

    total, alive = step(lamina.ones(3))
    assert total.item() == 6.0 and weight.grad.tolist() == [3.0, 3.0, 3.0]
    alive.backward()
    assert weight.grad.tolist() == [6.0, 6.0, 6.0]
    assert not total.requires_grad and lamina.compiler.summary().graphs == 1
