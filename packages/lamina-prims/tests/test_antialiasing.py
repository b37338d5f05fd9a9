"""Resizing without aliases: PyTorch's numbers, and what averages of all that is covered must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_prims import ops

X = np.sin(np.arange(1.0, 31.0)).reshape(1, 1, 5, 6)

CASES: dict[str, tuple[dict[str, Any], list[list[float]]]] = {
    "bilinear": (
        {"size": (2, 3), "mode": "bilinear"},
        [[0.742549, -0.05001, -0.714777], [0.557917, 0.310182, -0.730168]],
    ),
    "bicubic": (
        {"size": (2, 3), "mode": "bicubic"},
        [[0.840734, -0.090943, -0.781168], [0.571838, 0.404658, -0.836881]],
    ),
    "aligned corners": (
        {"scale_factor": 0.5, "mode": "bicubic", "align_corners": True},
        [[0.717463, -0.348116, -0.831335], [0.591426, -0.018284, -1.104991]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_pytorchs(case: str) -> None:
    options, wanted = CASES[case]
    np.testing.assert_allclose(ops.interpolate(X, **options, antialias=True)[0, 0], wanted, atol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (5, 6), (3, 4)], ids=str)
def test_weights_are_one_together(mode: str, size: tuple[int, int]) -> None:
    constant = np.full((2, 3, 5, 6), 4.25)
    np.testing.assert_allclose(ops.interpolate(constant, size, mode=mode, antialias=True), 4.25, rtol=1e-12)


def test_what_keeps_its_size_keeps_its_values() -> None:
    for mode in ("bilinear", "bicubic"):
        np.testing.assert_allclose(ops.interpolate(X, (5, 6), mode=mode, antialias=True), X, atol=1e-12)
