"""Derivatives in a direction: equal to what reverse mode gives, also of second order and inside another gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import func


def curve(x: Any, y: Any) -> Any:
    return (x * y).sin() + x.exp().sum(), (x @ y.mT).softmax(-1)


X, Y = (lt.from_numpy(np.random.default_rng(k).standard_normal((2, 3))) for k in range(2))
DX, DY = (lt.from_numpy(np.random.default_rng(k + 5).standard_normal((2, 3))) for k in range(2))


def test_a_direction_is_what_the_pullback_says() -> None:
    values, tangents = func.jvp(curve, (X, Y), (DX, DY))
    again, pull = func.vjp(curve, X, Y)
    weights = tuple(lt.from_numpy(np.random.default_rng(9).standard_normal(tuple(v.shape))) for v in values)
    gx, gy = pull(*weights)
    pushed = sum((w * t).sum().item() for w, t in zip(weights, tangents, strict=True))
    assert pushed == pytest.approx(((gx * DX).sum() + (gy * DY).sum()).item(), rel=1e-9)
    for a, b in zip(values, again, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_direction_is_a_difference() -> None:
    _, tangents = func.jvp(curve, (X, Y), (DX, DY))
    step = 1e-6
    above, below = curve(X + DX * step, Y + DY * step), curve(X - DX * step, Y - DY * step)
    for tangent, a, b in zip(tangents, above, below, strict=True):
        np.testing.assert_allclose(tangent.numpy(), ((a - b) / (2 * step)).numpy(), rtol=1e-5, atol=1e-7)


def test_jacobians_agree() -> None:
    f = lambda x: (x * x).cumsum(0).tanh()  # noqa: E731
    x = lt.tensor([0.1, 0.2, 0.3])
    np.testing.assert_allclose(func.jacfwd(f)(x).numpy(), func.jacrev(f)(x).numpy(), rtol=1e-5)
    wide = func.jacfwd(lambda a, b: a.outer(b), 1)(lt.ones(2), lt.ones(3))
    assert tuple(wide.shape) == (2, 3, 3) and wide.sum().item() == 6.0


def test_inside_a_gradient_and_twice() -> None:
    cube = lambda x: x**3  # noqa: E731
    one = lt.ones(2)
    slope = lambda x: func.jvp(cube, (x,), (one,))[1]  # noqa: E731
    x = lt.tensor([1.0, 2.0])
    assert func.grad(lambda x: slope(x).sum())(x).tolist() == [6.0, 12.0]
    assert func.jvp(slope, (x,), (one,))[1].tolist() == [6.0, 12.0]


def test_results_that_do_not_depend_on_the_arguments() -> None:
    value, tangent, aux = func.jvp(lambda x: (lt.ones(2), "aux"), (X,), (DX,), has_aux=True)
    assert value.tolist() == [1.0, 1.0] and tangent.tolist() == [0.0, 0.0] and aux == "aux"
    with pytest.raises(ValueError, match="one tangent for each primal"):
        func.jvp(curve, (X, Y), (DX,))
