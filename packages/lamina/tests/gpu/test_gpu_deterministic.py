"""Compiled sums by index: atomics, but for ``use_deterministic_algorithms``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina


@pytest.fixture
def in_order() -> Iterator[None]:
    lamina.use_deterministic_algorithms(True)
    yield
    lamina.use_deterministic_algorithms(False)


def add(x: Any, index: Any) -> Any:
    return lamina.zeros(4, 3, device=x.device).index_add(0, index, x.sin())


X, INDEX = lamina.arange(21.0).reshape(7, 3), lamina.tensor([0, 2, 2, 3, 0, 2, 1])


def _sources(device: StubDevice) -> str:
    return "".join(kernel.source for program in device.programs for kernel in program.kernels)


def test_atomics_are_the_usual_way(device: StubDevice) -> None:
    got = lamina.compile(add)(X.cuda(), INDEX.cuda())
    np.testing.assert_allclose(got.cpu().numpy(), add(X, INDEX).numpy(), rtol=1e-5)
    assert "tl.atomic_add" in _sources(device)


@pytest.mark.usefixtures("in_order")
def test_no_atomics_where_the_order_must_be_certain(device: StubDevice) -> None:
    device.programs.clear()
    got = lamina.compile(add)(X.cuda(), INDEX.cuda())
    np.testing.assert_allclose(got.cpu().numpy(), add(X, INDEX).numpy(), rtol=1e-5)
    assert device.programs and "atomic" not in _sources(device)
    table = lamina.ones(4, 3, device="cuda", requires_grad=True)
    lamina.compile(lambda t, i: t[i].exp().sum())(table, INDEX.cuda()).backward()
    np.testing.assert_allclose(table.grad.cpu().numpy()[:, 0], np.e * np.array([2, 1, 3, 1]), rtol=1e-5)
    assert "atomic" not in _sources(device)
