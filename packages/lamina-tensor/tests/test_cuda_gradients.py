"""Gradients of CUDA tensors that the engine makes itself are on the device, as those of operators are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def stub() -> Iterator[StubProvider]:
    provider = StubProvider(devices=1, memory=1 << 20)
    before = cuda.use_provider(provider)
    yield provider
    cuda.use_provider(before)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "fill": lambda v, w: v.fill_(0.5),
    "zero": lambda v, w: v.zero_(),
    "copy": lambda v, w: v.copy_(w),
    "copy of a broadcast row": lambda v, w: v.copy_(w[0]),
    "copy of another dtype": lambda v, w: v.copy_(w.double()),
    "constant at an index": lambda v, w: v.__setitem__(1, 2.0),
    "row at an index": lambda v, w: v.__setitem__(1, w[0]),
    "view": lambda v, w: v.t().mul_(w),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_have_the_gradients_that_they_have_on_the_cpu(name: str) -> None:
    def gradients(device: str) -> list[Any]:
        leaves = [(lt.arange(9.0).reshape(3, 3) + k).to(device).requires_grad_() for k in range(2)]
        value = leaves[0].sin()
        WRITES[name](value, leaves[1].cos())
        (value * value + leaves[0]).sum().backward()
        assert all(x.grad is None or x.grad.device == x.device for x in leaves)
        return [None if x.grad is None else x.grad.cpu().numpy() for x in leaves]

    for have, want in zip(gradients("cuda"), gradients("cpu"), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6) if want is not None else None
        assert (have is None) == (want is None)
