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
