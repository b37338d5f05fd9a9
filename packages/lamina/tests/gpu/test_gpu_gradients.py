"""Backward passes of compiled CUDA programs that need more than the results' gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from stub_device import StubDevice

import lamina


def gradient(device: str, wrap: Any, fn: Any) -> Any:
    x = lamina.arange(9.0).reshape(3, 3).to(device).requires_grad_()
    wrap(fn)(x).backward()
    return x.grad.cpu().numpy()


def test_results_without_a_gradient_have_zeros_on_the_device(device: StubDevice) -> None:
    def first_of_two(wrap: Any) -> Any:
        both = wrap(lambda x: (x.sin(), x.cos()))
        return lambda x: both(x)[0].sum()

    want = gradient("cpu", lambda f: f, first_of_two(lambda f: f))
    np.testing.assert_allclose(gradient("cuda", lambda f: f, first_of_two(lamina.compile)), want, rtol=1e-6)


def test_overwritten_values_pass_nothing_on(device: StubDevice) -> None:
    def program(x: Any) -> Any:
        value = x.sin()
        value.copy_(x.cos())
        return (value * x).sum() + (x + 1.0).zero_().sum()

    want = gradient("cpu", lambda f: f, program)
    np.testing.assert_allclose(gradient("cuda", lamina.compile, program), want, rtol=1e-5)
