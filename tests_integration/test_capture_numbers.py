"""Numbers taken out of tensors (`item()`, `float()`): read behind the graph, operands in it, or a break."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from captures import assert_captured, leaf

import lamina

CASES: dict[str, tuple[Callable[..., Any], int, int, Callable[[], tuple[Any, ...]]]] = {}


def case(graphs: int, breaks: int, make: Callable[[], tuple[Any, ...]] = leaf) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, graphs, breaks, make
        return function

    return register


def plain() -> tuple[Any, ...]:
    return (lamina.arange(6).reshape(2, 3),)


@case(1, 0)
def returned(x):
    y = x * 2
    return y, y.sum().item(), float(y.mean()), [y.max().item()]


@case(1, 0)
def as_an_operand(x):
    s = x.sum().item()
    return x * s + 1, s - x, x / s, s / (x + 1), x > s


@case(1, 0, plain)
def of_integers(x):
    n, half = x.sum().item(), x.float().mean().item()
    return x + n, x * half, x.to(lamina.int8) - n, (x > 2) * n, x.bool().any().item(), int(x[0, 1])


@case(1, 0)
def double_precision_as_in_python(x):
    total = 0.0
    for k in range(3):
        total += (x * k).sum().item()
    return total, x * (total * 2 - 1.5) / 3, -(x * (total / 3))


@case(1, 0, lambda: (*leaf(), []))
def put_into_a_list(x, history):
    y = (x * x).sum()
    history.append(y.item())
    return y


@case(1, 0)
def before_a_later_write(x):
    y = x.detach() * 2
    first = y[1].item()
    y.add_(first)
    return y, first, y[1].item()


@case(1, 0, lambda: (lamina.ones(3).requires_grad_(),))
def of_a_training_step(w):
    loss = (w * lamina.arange(3).float()).pow(2).sum()
    loss.backward()
    with lamina.no_grad():
        w.sub_(w.grad * 0.1)
    return loss.item(), w.grad.clone()


@case(2, 1)
def a_branch_on_it(x):
    total = x.sum().item()
    y = x * 2
    if total > 100:
        return y
    return y + total


@case(2, 1)
def quotient_that_may_fail(x):
    count = (x > 0).sum().item()
    return x.sum() / max(count, 1)


@case(1, 1)
def text(x):
    y = x * 2
    return y, f"{y.sum().item():.3f}"


@case(2, 1)
def index(x):
    y = x * 2
    i = y.argmax().item()
    return y[i] * 3


@case(1, 1)
def lists(x):
    y = x * 2
    return y, y.detach().tolist()


@case(5, 5)
def functions_of_math(x):
    y = x.detach() * 2 + 4
    return y, math.sqrt(y.sum()), math.floor(y[0]), math.atan2(y[0], y[1]), math.isnan(y[0]), math.fsum([y[0], y[1]])


@case(0, 1)
def of_several_elements_is_an_error(x):
    try:
        return x * x.item()
    except (ValueError, RuntimeError):
        return x + 1


@pytest.mark.parametrize("name", CASES)
def test_number(name: str) -> None:
    function, graphs, breaks, make = CASES[name]
    assert_captured(function, make, graphs=graphs, breaks=breaks)
