"""Views that go backwards reach references on the device, cuBLAS and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina.nn import functional as F

X = lamina.arange(20.0).reshape(4, 5) % 7 - 3
Y = lamina.arange(30.0).reshape(5, 6) % 11 - 5
BATCH = lamina.arange(3 * 4 * 5.0).reshape(3, 4, 5).sin()

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a reference": (lambda x: lamina.linalg.inv(x[:4, :4].flip(0)), (X + 9 * lamina.eye(4, 5),)),
    "a reference of two elements": (lambda x: x[:2, 0].flip(0).to(lamina.complex64).cumsum(0).real, (X,)),
    "rows of a product": (lambda x, y: x.flip(0) @ y, (X, Y)),
    "columns of a product": (lambda x, y: x.flip(1) @ y, (X, Y)),
    "both sides of a product": (lambda x, y: x.flip((0, 1)) @ y.flip((0, 1)), (X, Y)),
    "batches": (lambda x: x.flip(0) @ x.mT.flip(0), (BATCH,)),
    "many parts": (lambda x: lamina.cat([x.flip(0), x.flip(1)] * 10), (X,)),
    "integers": (lambda x, y: x.long().flip(0) @ y.long().flip(1), (X, Y)),
    "attention": (lambda x: F.scaled_dot_product_attention(x.flip(1), x.flip(0), x.flip((0, 1))), (BATCH,)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_flipped_operands(device: StubDevice, name: str, dynamic: bool | None) -> None:
    fn, inputs = PROGRAMS[name]
    got = lamina.compile(fn, dynamic=dynamic)(*[x.cuda() for x in inputs])
    np.testing.assert_allclose(got.cpu().numpy(), fn(*inputs).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [2, 5])
def test_training_through_a_cumulative_sum(device: StubDevice, size: int) -> None:
    x = (lamina.arange(3.0 * size).reshape(size, 3) - 4).cuda().requires_grad_()
    lamina.compile(lambda x: (x.sin().cumsum(0) * x).sum())(x).backward()
    home = x.detach().cpu().requires_grad_()
    (home.sin().cumsum(0) * home).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), home.grad.numpy(), rtol=1e-5, atol=1e-5)
