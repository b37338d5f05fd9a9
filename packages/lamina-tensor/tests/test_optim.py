"""Optimizers and schedules follow PyTorch's trajectories (stored in data/pytorch_values.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import optim

VALUES = json.loads((Path(__file__).parent / "data" / "pytorch_values.json").read_text())


@pytest.mark.parametrize("name", VALUES["optimizers"])
def test_trajectories_are_pytorchs(name: str) -> None:
    case = VALUES["optimizers"][name]
    weight = lt.tensor([1.0, -2.0, 0.5], requires_grad=True)
    optimizer = getattr(optim, case["class"])([weight], **case["options"])
    for expected in case["trajectory"]:
        optimizer.zero_grad()
        (weight * weight * lt.tensor([1.0, 0.5, 2.0]) + weight.sin()).sum().backward()
        optimizer.step()
        np.testing.assert_allclose(weight.tolist(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", VALUES["closures"])
def test_trajectories_with_a_closure_are_pytorchs(name: str) -> None:
    case = VALUES["closures"][name]
    weight = lt.tensor([1.0, -2.0, 0.5], requires_grad=True)
    optimizer = getattr(optim, case["class"])([weight], **case["options"])

    def closure() -> lt.Tensor:
        optimizer.zero_grad()
        loss = (weight * weight * lt.tensor([1.0, 0.5, 2.0]) + weight.sin()).sum()
        loss.backward()
        return loss

    for k, expected in enumerate(case["trajectory"]):
        optimizer.step(closure)
        last = k + 1 == len(case["trajectory"])
        if last or "line_search_fn" not in case["options"]:  # two line searches meet at the minimum
            np.testing.assert_allclose(weight.tolist(), expected, rtol=2e-4, atol=1e-4)


def test_lbfgs_minimises_a_curved_valley() -> None:
    at = lt.tensor([-1.2, 1.0], requires_grad=True)
    optimizer = optim.LBFGS([at], line_search_fn="strong_wolfe", max_iter=60)

    def closure() -> lt.Tensor:
        optimizer.zero_grad()
        loss = (1 - at[0]) ** 2 + 100 * (at[1] - at[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(at.tolist(), [1.0, 1.0], atol=1e-3)
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step()
    with pytest.raises(ValueError, match="strong_wolfe"):
        optim.LBFGS([at], line_search_fn="other")


@pytest.mark.parametrize("name", VALUES["schedulers"])
def test_rates_are_pytorchs(name: str) -> None:
    case = VALUES["schedulers"][name]
    optimizer = optim.SGD([lt.zeros(1).requires_grad_()], lr=0.4)
    schedule = getattr(optim.lr_scheduler, name)(optimizer, **case["options"])
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(10):
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, case["rates"], rtol=1e-6)


def test_state_round_trip_continues_the_trajectory() -> None:
    def run(optimizer: optim.Optimizer, weight: lt.Tensor, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()

    first = lt.tensor([1.0, 2.0], requires_grad=True)
    one = optim.Adam([first], lr=0.1)
    run(one, first, 3)
    second = first.detach().clone().requires_grad_()
    two = optim.Adam([second], lr=0.5)
    two.load_state_dict(one.state_dict())
    run(one, first, 3)
    run(two, second, 3)
    assert first.tolist() == second.tolist() and two.param_groups[0]["lr"] == 0.1


def test_groups_have_options_of_their_own() -> None:
    a, b = lt.ones(1).requires_grad_(), lt.ones(1).requires_grad_()
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.0}], lr=0.5)
    (a + b).sum().backward()
    optimizer.step()
    assert a.item() == 0.5 and b.item() == 1.0


def test_closure_is_evaluated_with_gradients() -> None:
    weight = lt.ones(1).requires_grad_()
    optimizer = optim.SGD([weight], lr=0.1)

    def closure() -> lt.Tensor:
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure)) == 1.0
    assert weight.item() == pytest.approx(0.8)


def test_wrong_arguments_say_what_is_wrong() -> None:
    weight = lt.ones(1).requires_grad_()
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([], lr=0.1)
    with pytest.raises(TypeError, match="wrap it in a list"):
        optim.SGD(weight, lr=0.1)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([weight * 2], lr=0.1)
    with pytest.raises(ValueError, match=r"invalid learning rate: -1"):
        optim.Adam([weight], lr=-1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        optim.SGD([{"params": [weight]}, {"params": [weight]}], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([weight], lr=0.1).load_state_dict({"state": {}, "param_groups": []})


def test_plateau_lowers_the_rate() -> None:
    optimizer = optim.SGD([lt.zeros(1).requires_grad_()], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    for measure in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9):
        schedule.step(measure)
    assert optimizer.param_groups[0]["lr"] == 0.25


def test_averaged_weights_are_pytorchs() -> None:
    weight = lt.tensor([1.0, -2.0, 0.5], requires_grad=True)
    optimizer = optim.ASGD([weight], lr=0.1, lambd=0.01, t0=2, weight_decay=0.05)
    for _ in range(10):
        optimizer.zero_grad()
        (weight * weight * lt.tensor([1.0, 0.5, 2.0]) + weight.sin()).sum().backward()
        optimizer.step()
    wanted = [-0.12337663, -1.03265309, -0.2097044]
    np.testing.assert_allclose(optimizer.state[weight]["ax"].tolist(), wanted, rtol=2e-5)


def test_rates_are_multiplied() -> None:
    optimizer = optim.SGD([lt.zeros(1).requires_grad_()], lr=0.5)
    schedule = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5 if epoch < 3 else 1.0)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(3):
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    assert rates == [0.5, 0.25, 0.125, 0.125]
