"""Boolean masks in compiled functions: assignments, masked sums, and sizes that depend on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from captures import assert_captured

import lamina
import lamina.nn.functional as F

CASES: dict[str, tuple[Callable[..., Any], int, int]] = {}


def case(graphs: int, breaks: int) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, graphs, breaks
        return function

    return register


def arguments() -> tuple[Any, ...]:
    return (lamina.tensor([[-2.0, 0.0, 1.0], [0.5, -1.0, 2.0]]).requires_grad_(),)


@case(1, 0)
def assigned(x):
    y = x * 2
    y[y > 0] = 0.5
    y[y < -1] = lamina.tensor(3.0)
    return y


@case(1, 0)
def augmented(x):
    y = x * 2
    y[y > 0] += 1
    y[y < 0] *= -0.5
    return y


@case(1, 0)
def written_back(x):
    y, mask = x * 2, x.detach() > 0
    y[mask] = x[mask] * 3 - x[mask] ** 2
    return y


@case(1, 0)
def sums_and_means(x):
    mask = x.detach() > 0
    chosen = x[mask]
    return chosen.sum(), chosen.mean(), (1 / chosen).log().abs().mean(), (chosen - x.detach()[mask] / 2).square().sum()


@case(1, 0)
def of_nothing(x):
    none = x.detach() > 100
    return x[none].sum(), x.detach()[none].mean().isnan()


@case(1, 0)
def derivatives_that_are_infinite_elsewhere(x):
    return x[x > 0].sqrt().sum() + x[x > 0].log().mean()


@case(1, 0)
def training_step(x):
    loss = (x[x.detach() > 0] ** 2).mean()
    loss.backward()
    return loss.detach(), x.grad.clone()


@case(1, 0)
def selected_before_a_write(x):
    y = x * 1.5
    chosen = y[y > 0]
    y.mul_(0)
    return chosen.sum() + y.sum()


@case(2, 1)
def elements(x):
    return (x[x > 0] * 2 + 1).exp()


@case(2, 1)
def their_number(x):
    chosen = x[x.detach() > 0]
    return chosen * 2, chosen.shape[0], len(chosen)


@case(2, 1)
def mask_changed_since(x):
    mask = x.detach() > 0
    chosen = x[mask]
    mask.copy_(mask.logical_not())
    return chosen.sum() + x[mask].sum()


@case(2, 2)
def loss_of_rows(x):
    target = lamina.tensor([1, -1])
    mask = target >= 0
    return F.cross_entropy(x[mask], target[mask])


@case(2, 1)
def indices(x):
    i, j = lamina.where(x.detach() > 0)
    return x[i, j].sum()


@pytest.mark.parametrize("name", CASES)
def test_mask(name: str) -> None:
    function, graphs, breaks = CASES[name]
    assert_captured(function, arguments, graphs=graphs, breaks=breaks, backend="reference")


def test_sizes_from_values_with_symbolic_sizes() -> None:
    """A break with that reason, not a failure of the compiler."""

    def f(x: Any) -> Any:
        return x[x > 0] * 2

    for size in (3, 5, 4):
        assert_captured(f, lambda size=size: (lamina.ones(size),), breaks=1, dynamic=True)
