"""Special functions against the standard library, integrals and identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lamina_prims import operator

X = np.concatenate([np.linspace(-6, 6, 1201), [-0.0, 1e-30, 20.0, -20.0]])


def _each(function: Any, x: Any) -> Any:
    return np.array([function(float(v)) for v in x])


@pytest.mark.parametrize(
    ("id", "function", "x"),
    [
        ("erf", math.erf, X),
        ("erfc", math.erfc, np.linspace(-6, 26, 1001)),
        ("lgamma", math.lgamma, np.linspace(-4.97, 60, 1203)),
    ],
)
def test_standard_library(id: str, function: Any, x: Any) -> None:
    np.testing.assert_allclose(operator(id)(x), _each(function, x), rtol=1e-13, atol=1e-14)
    single = x.astype(np.float32)
    np.testing.assert_allclose(operator(id)(single), _each(function, single), rtol=2e-5, atol=1e-6)


def test_lgamma_beside_its_poles() -> None:
    x = np.array([-1e-40, 1e-40, -1e-300, -1e-9, -1 - 1e-9, -2 + 1e-9, -0.0, -1.0, -3.0, np.inf])
    expected = [math.lgamma(v) if v not in (0, -1, -3) else math.inf for v in x]
    np.testing.assert_allclose(operator("lgamma")(x), expected, rtol=1e-7)
    np.testing.assert_allclose(operator("lgamma")(np.float32([-1e-40, -1e-10])), [92.1034, 23.02585], rtol=1e-5)


def test_hypot_beside_infinities() -> None:
    a = np.array([np.inf, np.nan, np.nan, -np.inf, np.inf, 3.0, 0.0, 1e300])
    b = np.array([np.nan, -np.inf, 1.0, 1.0, np.inf, 4.0, 0.0, 1e300])
    np.testing.assert_allclose(operator("hypot")(a, b), np.hypot(a, b), rtol=1e-15)


def test_single_precision_erf() -> None:
    x = np.linspace(-5, 5, 20001).astype(np.float32)
    y = operator("erf")(x)
    assert np.abs(y - _each(math.erf, x)).max() < 4e-7 and np.abs(y).max() <= 1.0
    ends = operator("erf")(np.array([np.inf, -np.inf, np.nan, -0.0], np.float32))
    np.testing.assert_array_equal(ends, np.array([1, -1, np.nan, -0.0], np.float32))
    assert np.signbit(ends[3])


def test_inverses() -> None:
    y = np.linspace(-0.999999, 0.999999, 1001)
    np.testing.assert_allclose(_each(math.erf, operator("erfinv")(y)), y, rtol=1e-14, atol=1e-15)
    p = np.concatenate([10.0 ** -np.arange(1, 300, 7.0), [0.3, 0.5, 0.9]])
    z = operator("ndtri")(p)
    np.testing.assert_allclose(_each(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), z), p, rtol=1e-11)
    np.testing.assert_array_equal(operator("erfinv")(np.array([1.0, -1.0, 2.0])), [np.inf, -np.inf, np.nan])


def test_log_ndtr_is_smooth_and_accurate() -> None:
    x = np.array([-30.0, -5.0, -1.001, -1.0, -0.995, -0.98, 0.0, 3.0])
    expected = [-454.32124395634344, -15.064998393988725]
    np.testing.assert_allclose(operator("log_ndtr")(x)[:2], expected, rtol=1e-12)
    near = _each(lambda v: math.log(0.5 * math.erfc(-v / math.sqrt(2))), x[1:])
    np.testing.assert_allclose(operator("log_ndtr")(x)[1:], near, rtol=1e-12)


def test_gamma_family() -> None:
    x = np.array([0.25, 1.0, 3.7, 12.0])
    euler = 0.5772156649015329
    np.testing.assert_allclose(
        operator("digamma")(np.array([1.0, 0.5, 2.0])), [-euler, -euler - 2 * math.log(2), 1 - euler]
    )
    np.testing.assert_allclose(operator("digamma")(x + 1), operator("digamma")(x) + 1 / x, rtol=1e-13)
    np.testing.assert_allclose(operator("polygamma")(1, x + 1), operator("polygamma")(1, x) - 1 / x**2, rtol=1e-11)
    np.testing.assert_allclose(
        operator("zeta")(np.array([2.0, 4.0]), 1.0), [math.pi**2 / 6, math.pi**4 / 90], rtol=1e-14
    )
    assert operator("digamma")(np.array([0.0, -0.0, -1.0])).tolist()[:2] == [-math.inf, math.inf]


def test_bessel_functions_by_their_integral() -> None:
    angle = (np.arange(4000) + 0.5) * math.pi / 4000
    for x in (0.1, 2.0, 29.0, 31.0, 300.0):
        for order in (0, 1):
            integral = (np.exp(x * (np.cos(angle) - 1)) * np.cos(order * angle)).mean()
            np.testing.assert_allclose(operator(f"i{order}e")(np.array([x]))[0], integral, rtol=1e-12)
