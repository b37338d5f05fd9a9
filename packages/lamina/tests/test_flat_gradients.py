"""Leaves behind what is flat get gradients of zeros, compiled as in eager."""

from __future__ import annotations

import pytest

import lamina

FUNCTIONS = {
    "floor": lamina.floor,
    "ceil": lamina.ceil,
    "round": lamina.round,
    "trunc": lamina.trunc,
    "sign": lamina.sign,
    "sgn": lamina.sgn,
    "decimals": lambda x: lamina.round(x, decimals=1),
    "floored": lambda x: lamina.div(x, 2.0, rounding_mode="floor"),
    "truncated": lambda x: lamina.div(x, 2.0, rounding_mode="trunc"),
    "divisor": lambda x: lamina.div(2.0 * lamina.ones(2), x, rounding_mode="floor"),
    "infinite": lambda x: lamina.floor(x) * float("inf"),
}


@pytest.mark.parametrize("backend", [None, "cpp", "reference"], ids=["eager", "cpp", "reference"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_zeros(name: str, backend: str | None) -> None:
    fn = FUNCTIONS[name]
    run = fn if backend is None else lamina.compile(fn, backend=backend)
    x = lamina.tensor([1.5, -2.5], requires_grad=True)
    run(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]


def test_what_is_added_to_zeros_stays() -> None:
    x = lamina.tensor([1.5, -2.5], requires_grad=True)
    (x + lamina.round(x)).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_second_derivatives_of_abs_are_zeros() -> None:
    x = lamina.tensor([1.5, -2.5], requires_grad=True)
    [first] = lamina.autograd.grad(x.abs().sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
