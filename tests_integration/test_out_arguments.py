"""Calls with ``out=`` inside compiled functions: the target is written, and is the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lamina


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    lamina.compiler.reset()
    yield
    lamina.compiler.reset()


def same_shape(a, o):
    result = lamina.add(a, 1, out=o)
    return result is o, o * 2


def unused_result(a, o):
    lamina.square(a, out=o)


def target_is_operand(a, o):
    return lamina.mul(a, 3, out=a), o


def view_of_target(a, o):
    lamina.sum(a, 0, out=o[1])
    return o


def made_inside(a, o):
    inside = lamina.empty(3, 3)
    lamina.matmul(a.T, a, out=inside)
    return inside + 1


def no_target(a, o):
    return lamina.add(a, o, out=None)


def of_joined(a, o):
    return lamina.cat([a[:2], a[2:]], out=o)


def resized(a, o):
    return lamina.add(a, 1, out=lamina.empty(0))


def another_dtype(a, o):
    target = lamina.zeros(4, 3, dtype=lamina.float64)
    lamina.add(a, 1, out=target)
    return target


def several_results(a, o):
    values, indices = lamina.empty(4), lamina.empty(4, dtype=lamina.int64)
    lamina.max(a, 1, out=(values, indices))
    return values, indices


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [numbers(v) for v in value]
    return value.detach().numpy().copy() if isinstance(value, lamina.Tensor) else value


def outcome(function: Callable[..., Any]) -> list[Any]:
    a, o = lamina.arange(12.0).reshape(4, 3), lamina.zeros(4, 3)
    return [numbers(function(a, o)), numbers(a), numbers(o)]


INSIDE = [same_shape, unused_result, target_is_operand, view_of_target, made_inside, no_target, of_joined]


@pytest.mark.parametrize("function", [*INSIDE, resized, another_dtype, several_results], ids=lambda f: f.__name__)
def test_as_in_eager(function: Callable[..., Any]) -> None:
    compiled = lamina.compile(function, fullgraph=function in INSIDE)
    for _ in range(2):
        np.testing.assert_equal(outcome(compiled), outcome(function))


def test_gradients_are_refused_as_in_eager() -> None:
    def program(a, o):
        return lamina.mul(a, 2, out=o)

    a = lamina.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support automatic differentiation"):
        lamina.compile(program)(a, lamina.zeros(3))
