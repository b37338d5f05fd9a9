"""Memory formats inside compiled programs are those of eager."""

from __future__ import annotations

import numpy as np

import lamina
from lamina.nn import functional as F


def test_compiled_programs_change_formats_as_eager_does() -> None:
    def run(x: lamina.Tensor, w: lamina.Tensor) -> tuple[lamina.Tensor, ...]:
        y = x.to(memory_format=lamina.channels_last)
        z = y.contiguous() if y.is_contiguous(memory_format=lamina.channels_last) else x
        return y, z * 2, F.conv2d(y, w.contiguous(memory_format=lamina.channels_last))

    x, w = lamina.randn(2, 3, 8, 8), lamina.randn(4, 3, 3, 3)
    for got, want in zip(lamina.compile(run, fullgraph=True)(x, w), run(x, w), strict=True):
        assert got.stride() == want.stride()
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_a_block_of_convolutions_keeps_its_format_and_its_gradients() -> None:
    def run(x: lamina.Tensor, v: lamina.Tensor, w: lamina.Tensor) -> tuple[lamina.Tensor, ...]:
        y = F.relu(F.conv2d(x, v, padding=1))
        z = F.relu(F.conv2d(y, w, padding=1) + x)
        return z, *lamina.autograd.grad((z * z).sum(), (x, v, w))

    lamina.manual_seed(1)
    x = lamina.randn(2, 3, 8, 8).to(memory_format=lamina.channels_last).requires_grad_()
    v, w = (lamina.randn(3, 3, 3, 3).to(memory_format=lamina.channels_last).requires_grad_() for _ in range(2))
    got, want = lamina.compile(run, fullgraph=True)(x, v, w), run(x, v, w)
    assert got[0].stride() == got[1].stride() == x.stride()
    for a, b in zip(got, want, strict=True):
        assert a.stride() == b.stride()
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-4)
