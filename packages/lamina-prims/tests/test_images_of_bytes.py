"""Images of uint8: weighed in float32, rounded, as wide as they may be."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_prims import ops

IMAGE = np.random.default_rng(3).integers(0, 256, (1, 2, 9, 300)).astype(np.uint8)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resized_bytes_are_the_rounded_numbers(mode: str, antialias: bool) -> None:
    got = ops.interpolate(IMAGE, (5, 280), mode=mode, antialias=antialias)
    wanted = ops.interpolate(IMAGE.astype(np.float32), (5, 280), mode=mode, antialias=antialias)
    assert got.dtype == np.uint8
    assert np.abs(got.astype(np.float32) - np.clip(wanted, 0, 255)).max() <= 0.5


def test_nearest_bytes_and_integers_are_copied() -> None:
    for dtype in (np.uint8, np.int32):
        got = ops.interpolate(IMAGE.astype(dtype), (9, 150))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, IMAGE[..., ::2])
