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
    "Adam": lambda p: lamina.optim.Adam(p, lr=1e-2),
    "AdamW": lambda p: lamina.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_step_is_one_graph(name: str) -> None:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.LayerNorm(16), nn.Linear(16, 3))
    twin = copy.deepcopy(model)
    x, y = lamina.randn(10, 6), lamina.randint(0, 3, (10,))

    def make_step(net: Any) -> Callable[[Any, Any], Any]:
        optimizer = OPTIMIZERS[name](net.parameters())

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return step

    eager, compiled = make_step(model), lamina.compile(make_step(twin))
    lamina.manual_seed(3)
    expected = [eager(x, y) for _ in range(4)]
    lamina.manual_seed(3)
    found = [compiled(x, y) for _ in range(4)]
    assert_same(expected, found, 1e-5)
    assert_same(model.state_dict(), twin.state_dict(), 1e-5)
    told = lamina.compiler.summary()
    assert told.breaks == 0, told.break_reasons
    assert told.graphs <= 2  # the optimizer's state is made by the first call


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
