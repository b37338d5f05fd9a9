"""In-place changes of an input's shape, strides or memory in compiled functions: the caller sees them, as in eager."""

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


CHANGES: dict[str, Callable[[Any], Any]] = {
    "t_": lambda a: a.t_(),
    "swapaxes_": lambda a: a.swapaxes_(0, 1),
    "transpose_": lambda a: a.transpose_(0, 1),
    "unsqueeze_": lambda a: a.unsqueeze_(0),
    "squeeze_": lambda a: a.squeeze_(1),
    "resize_": lambda a: a.resize_(2, 2),
    "set_": lambda a: a.set_(lamina.ones(2)),
    "set_ of equal shape": lambda a: a.set_(lamina.ones(*a.shape)),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("square", [False, True])
def test_the_caller_sees_it(name: str, square: bool) -> None:
    change = CHANGES[name]

    def program(a, b):
        b.add_(1)
        change(a)
        return a, a * 2, b.sum()

    found = []
    for function in (program, lamina.compile(program)):
        a, b = lamina.arange(16.0).reshape(4, 4) if square else lamina.arange(4.0).reshape(4, 1), lamina.zeros(3)
        result, *others = function(a, b)
        assert result is a
        found.append((a.shape, a.stride(), *[x.numpy() for x in (a, b, *others)]))
    np.testing.assert_equal(found[1], found[0])


def test_of_a_tensor_made_inside_stays_in_the_graph() -> None:
    def program(a):
        b = a + 1
        b.t_()
        return b.unsqueeze_(0) * 2

    a = lamina.arange(12.0).reshape(4, 3)
    result = lamina.compile(program, fullgraph=True)(a)
    np.testing.assert_equal(result.numpy(), program(a).numpy())


def test_an_input_loses_its_history() -> None:
    def program(a):
        a.detach_()
        return (a * 2).requires_grad

    a = lamina.ones(3, requires_grad=True)
    assert lamina.compile(program)(a) is False
    assert not a.requires_grad
