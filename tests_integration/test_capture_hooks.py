"""Hooks on gradients and writes past autograd (`.data`) in whole training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from captures import assert_captured

import lamina
import lamina.nn as nn

CASES: dict[str, tuple[Callable[..., Any], int, int, Callable[[], tuple[Any, ...]]]] = {}
SCALE = 3.0


def arguments(prepare: Callable[[Any], Any] = lambda layer: None) -> Callable[[], tuple[Any, ...]]:
    """A layer, prepared, its parameters and an input."""

    def make() -> tuple[Any, ...]:
        lamina.manual_seed(1)
        layer = nn.Linear(4, 3)
        prepare(layer)
        return Held(layer), list(layer.parameters()), lamina.arange(8).float().reshape(2, 4).div(8)

    return make


class Held:
    """Keeps a layer out of the comparison of arguments; its parameters are compared."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    __hash__ = None


def case(graphs: int, breaks: int, make: Callable[[], tuple[Any, ...]] | None = None) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, graphs, breaks, make or arguments()
        return function

    return register


def tripled(gradient):
    return gradient * SCALE


# -- registered in the step ---------------------------------------------------------------------------------------


@case(1, 0)
def on_an_activation(held, parameters, x):
    y = held.layer(x)
    y.register_hook(lambda g: g * 2)
    (y * y).sum().backward()


@case(1, 0)
def function_of_the_module_with_a_constant(held, parameters, x):
    y = held.layer(x)
    y.register_hook(tripled)
    (y * y).sum().backward()


@case(1, 0)
def removed_before_the_backward(held, parameters, x):
    y = held.layer(x)
    handle = y.register_hook(lambda g: g * 2)
    handle.remove()
    (y * y).sum().backward()


@case(1, 0)
def on_parameters_for_one_backward(held, parameters, x):
    first = held.layer.weight.register_hook(lambda g, k=2: g * k)
    second = held.layer.bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
    held.layer(x).pow(2).sum().backward()
    first.remove()
    second.remove()


@case(1, 0)
def on_a_result_that_is_differentiated_outside(held, parameters, x):
    y = held.layer(x)
    y.register_hook(lambda g: g.clamp(max=0.5))
    return y


@case(1, 0)
def gradient_of_an_activation(held, parameters, x):
    y = held.layer(x)
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad


@case(1, 1)
def activation_that_keeps_its_gradient_for_others(held, parameters, x):
    y = held.layer(x)
    y.retain_grad()
    return y


@case(3, 2)
def hook_with_an_effect(held, parameters, x):
    seen = []
    y = held.layer(x)
    y.register_hook(lambda g: seen.append(g.sum()))
    (y * y).sum().backward()
    return seen


@case(1, 1)
def hook_that_stays_on_a_parameter(held, parameters, x):
    held.layer.weight.register_hook(lambda g: g * 2)
    return held.layer(x)


# -- registered before --------------------------------------------------------------------------------------------


def masked(layer):
    layer.weight.register_hook(lambda g: g * (g > 0))
    layer.weight.register_hook(tripled)
    layer.bias.register_post_accumulate_grad_hook(lambda p: p.grad.clamp_(-0.1, 0.1))


@case(1, 0, arguments(masked))
def of_parameters(held, parameters, x):
    held.layer(x).pow(2).sum().backward()


@case(1, 0, arguments(masked))
def of_parameters_with_the_backward_outside(held, parameters, x):
    return held.layer(x).pow(2).sum()


@case(4, 3, arguments(lambda layer: layer.register_full_backward_hook(lambda m, i, o: tuple(g * 2 for g in i))))
def of_a_module(held, parameters, x):
    held.layer(x.requires_grad_()).pow(2).sum().backward()
    return x.grad


@case(1, 0, arguments(lambda layer: layer.register_full_backward_hook(lambda m, i, o: tuple(g * 2 for g in i))))
def of_a_module_without_gradients(held, parameters, x):
    with lamina.no_grad():
        return held.layer(x).pow(2).sum()


# -- past autograd ------------------------------------------------------------------------------------------------


@case(1, 0)
def steps_through_data(held, parameters, x):
    held.layer(x).pow(2).sum().backward()
    for p in parameters:
        p.data.add_(p.grad, alpha=-0.1)
        p.grad.data.mul_(0.5)
        p.data.clamp_(-0.3, 0.3)
        p.data.copy_(p.data * 0.9)


@case(3, 3)
def assigned_data(held, parameters, x):
    y = held.layer(x)
    for p in parameters:
        p.data = p.data - 0.1
    return y.detach(), held.layer(x)


@case(2, 1)
def data_of_another_shape(held, parameters, x):
    z = x * 2
    z.data = lamina.ones(3)
    return z + 1


@pytest.mark.parametrize("name", CASES)
def test_hook(name: str) -> None:
    function, graphs, breaks, make = CASES[name]
    assert_captured(function, make, graphs=graphs, breaks=breaks, backend="reference")


def test_another_hook_compiles_again() -> None:
    weight = lamina.ones(3).requires_grad_()

    @lamina.compile(backend="reference", fullgraph=True)
    def step(x: Any) -> None:
        weight.grad = None
        (weight * x).sum().backward()

    expected = [1.0, 2.0, 6.0, 3.0]
    handles = []
    for k, hooks in enumerate(([], [lambda g: g * 2], [tripled], [])):
        handles += [weight.register_hook(hook) for hook in hooks]
        if not hooks:
            while handles:
                handles.pop().remove()
            handles += [weight.register_hook(tripled)] if k else []
        for _ in range(2):
            step(lamina.ones(3))
            assert weight.grad.tolist() == [expected[k]] * 3
    assert lamina.compiler.summary().graphs >= 3
