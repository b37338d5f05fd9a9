"""Compiled programs with scans: kernels only, captured as CUDA graphs, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina.records import records

X = (lamina.arange(12 * 70.0) * 7 % 23).reshape(12, 70) / 23.0 - 0.4

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda x: x.exp().cumsum(1),
    "cumsum of columns": lambda x: x.cumsum(0) * 2.0,
    "cumprod": lambda x: (x + 1.1).cumprod(1),
    "cumprod with zeros": lambda x: x.relu().cumprod(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "cummax": lambda x: x.cummax(1)[0] * x,
    "of a softmax": lambda x: x.softmax(-1).cumsum(-1),
    "softmax of sums": lambda x: (x.cumsum(1) * 0.1).softmax(-1),
    "from the end": lambda x: x.flip(1).cumsum(1).flip(1).sin(),
    "trapezoids": lambda x: lamina.cumulative_trapezoid(x, dim=1),
    "differences of sums": lambda x: lamina.diff(x.cumsum(1), dim=1),
    "mixed": lambda x: (x.cumsum(0) + x.cumsum(1)).sin(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_by_kernels_only(device: StubDevice, name: str) -> None:
    device.programs.clear()
    fn = PROGRAMS[name]
    gradients = []
    for where, run in (("cpu", fn), ("cuda", lamina.compile(fn))):
        x = X.to(where, copy=True).requires_grad_()
        value = run(x)
        (value * lamina.arange(float(value.numel()), device=where).reshape(value.shape).cos()).sum().backward()
        gradients.append((value.detach().cpu().numpy(), x.grad.cpu().numpy()))
    for want, have in zip(*gradients, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-3)
    assert device.programs and not [e.operator for program in device.programs for e in program.externs]


@pytest.mark.parametrize("dynamic", [False, True])
def test_programs_with_scans_are_captured(device: StubDevice, dynamic: bool) -> None:
    fn = lambda x: (x.softmax(-1).cumsum(-1), *x.cummax(0), x.logcumsumexp(1))  # noqa: E731
    run, results = lamina.compile(fn, mode="reduce-overhead", dynamic=dynamic), []
    for _ in range(3):
        results = run(X.cuda())
    assert next(iter(records()[-1].artifacts.values())).function.graphs == 1
    for have, want in zip(results, fn(X), strict=True):
        np.testing.assert_allclose(have.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_sum_so_far_is_one_kernel(device: StubDevice) -> None:
    device.programs.clear()
    x = X.cuda().requires_grad_()
    lamina.compile(lambda x: x.cumsum(1))(x).backward(lamina.ones(12, 70, device="cuda"))
    assert [len(program.launches) for program in device.programs] == [1, 1]


def test_algorithms_are_deterministic(device: StubDevice) -> None:
    lamina.use_deterministic_algorithms(True)
    try:
        device.programs.clear()
        lamina.compile(lambda x: x.cumsum(1))(X.cuda())
        assert not device.programs[-1].externs
    finally:
        lamina.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dim", [0, 1])
def test_scans_in_place(device: StubDevice, dim: int) -> None:
    def fn(x: Any) -> Any:
        x.cumsum_(dim)
        x.copy_(x.flip(dim).cumsum(dim))
        return x * 2.0

    want, have = X.clone(), X.cuda()
    np.testing.assert_allclose(lamina.compile(fn)(have).cpu().numpy(), fn(want).numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(have.cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
