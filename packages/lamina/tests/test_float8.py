"""float8_e4m3fn takes its largest number for all beyond it, as PyTorch 2.13 does: it has no infinity."""

from __future__ import annotations

import math

import pytest

import lamina

VALUES = [-750.0, 750.0, 449.0, 448.0, 465.0, 1e30, math.inf, -math.inf, 1.0, -0.0]
LARGEST = [-448.0, 448.0, 448.0, 448.0, 448.0, 448.0, 448.0, -448.0, 1.0, -0.0]
FLOAT8 = lamina.float8_e4m3fn


def _eager(x):
    return x.to(FLOAT8).float()


def _written(x):
    return lamina.zeros(x.shape, dtype=FLOAT8).copy_(x).float()


@pytest.mark.parametrize("backend", [None, "cpp", "reference"], ids=["eager", "cpp", "reference"])
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("fn", [_eager, _written])
def test_what_is_too_large_becomes_the_largest_number(fn, source: str, backend: str | None) -> None:
    run = fn if backend is None else lamina.compile(fn, backend=backend)
    result = run(lamina.tensor(VALUES, dtype=getattr(lamina, source)))
    assert result.tolist() == LARGEST
    assert math.isnan(run(lamina.tensor([math.nan], dtype=getattr(lamina, source))).item())


def test_tensors_made_of_large_numbers() -> None:
    assert lamina.tensor(VALUES, dtype=FLOAT8).float().tolist() == LARGEST
    assert lamina.tensor([1000, -1000], dtype=FLOAT8).float().tolist() == [448.0, -448.0]
    assert lamina.full((2,), 1e9, dtype=FLOAT8).float().tolist() == [448.0, 448.0]
    x = lamina.zeros(2, dtype=FLOAT8)
    x[0] = 1e9
    assert x.float().tolist() == [448.0, 0.0]


def test_float8_e5m2_has_infinities() -> None:
    assert lamina.tensor([1e9, -1e9, 57344.0]).to(lamina.float8_e5m2).float().tolist() == [math.inf, -math.inf, 57344.0]
