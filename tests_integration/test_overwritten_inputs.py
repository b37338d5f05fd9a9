"""Programs that overwrite an input which has a history: results, gradients by every tensor, errors are eager's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina


def after_exp(w: Any) -> Any:
    y = w.exp()  # its rule keeps the result, not the input
    w.mul_(3)
    return y


def before_product(w: Any) -> Any:
    w.mul_(3)
    return w * w


def around(w: Any) -> Any:
    y = w * 4
    w.mul_(3)
    return y + w * w


def zeroed(w: Any) -> Any:
    y = w.sigmoid()
    w.zero_()
    return y, w * 3


def element(w: Any) -> Any:
    y = w.relu()
    w[0] = 5.0
    return y * w


def through_a_view(w: Any) -> Any:
    v = w[:2]
    v.mul_(2.0)
    return v.exp()


def twice(w: Any) -> Any:
    y = (w * 4).exp().sum()
    w.mul_(3).tanh_()
    return y * w.sum()


def hidden(w: Any) -> Any:
    z = w.detach()
    w.mul_(2)
    return (w * z).sum()


def unrecorded(w: Any) -> Any:
    with lamina.no_grad():
        y = w.exp()
    w.mul_(y)
    return w * y


def replaced(w: Any) -> Any:
    y = w.exp()
    w.copy_(y)
    return y


def returned(w: Any) -> Any:
    w.mul_(3)
    return w, w[1:], w * w


def product_before(w: Any) -> Any:
    s = w * w  # its rule needs what is overwritten
    w.mul_(3)
    return s


def by_itself(w: Any) -> Any:
    w.mul_(w)
    return w.sin()


PROGRAMS = [
    after_exp, before_product, around, zeroed, element, through_a_view, twice, hidden, unrecorded, replaced, returned,
    product_before, by_itself,
]  # fmt: skip


def outcome(call: Callable[[Any], Any], order: int) -> list[Any]:
    """The input afterwards; gradients by the leaf (of order 1 also by the input as it is then), or the error."""
    leaf = lamina.tensor([0.1, 0.2, 0.3], requires_grad=True)
    w = leaf * 2
    results = call(w)
    total = sum((r * r).sum() for r in (results if isinstance(results, tuple) else (results,)))
    try:
        if order == 1:
            return [w, *lamina.autograd.grad(total, [leaf, w], allow_unused=True)]
        (first,) = lamina.autograd.grad(total, [leaf], create_graph=True)
        return [w, *lamina.autograd.grad(first.sum(), [leaf])]
    except RuntimeError as error:
        return [w, str(error)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_eager(program: Callable[[Any], Any], order: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is compiled, not run in Python
        eager, compiled = outcome(program, order), outcome(lamina.compile(program), order)
    for have, want in zip(compiled, eager, strict=True):
        if isinstance(want, lamina.Tensor):
            np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=1e-4)
        else:
            assert have == want


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_write_is_in_the_graph(program: Callable[[Any], Any]) -> None:
    lamina.compiler.reset()
    outcome(lamina.compile(program), 1)
    told = lamina.compiler.summary()
    assert (told.graphs, told.breaks) == (1, 0)


def test_inputs_that_depend_on_each_other() -> None:
    def f(a: Any, b: Any) -> Any:
        a.mul_(2.0)
        c = a.clone()
        b.add_(c * c)
        a.sin_()
        return (a * b).sum()

    found = []
    for call in (f, lamina.compile(f)):
        x, z = lamina.tensor([0.1, 0.2], requires_grad=True), lamina.tensor([0.3, 0.4], requires_grad=True)
        a, b = x * 1, z * 1
        total = call(a, b) + (a * b).sum() + a.sum()
        found.append(np.array([g.tolist() for g in lamina.autograd.grad(total, [x, z, a, b])]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_a_saved_leaf_that_the_program_overwrites_is_an_error_of_the_backward() -> None:
    def f(x: Any) -> Any:
        y = x * x
        with lamina.no_grad():
            x.mul_(2)
        return y

    for call in (f, lamina.compile(f, fullgraph=True)):
        x = lamina.tensor([1.0, 2.0], requires_grad=True)
        y = call(x)
        assert y.tolist() == [1.0, 4.0] and x.tolist() == [2.0, 4.0]
        with pytest.raises(RuntimeError, match="MulBackward0, is at version 1; expected version 0"):
            y.sum().backward()


def test_a_leaf_is_no_input_with_a_history() -> None:
    @lamina.compile
    def f(w: Any) -> Any:
        w.mul_(3)
        return w * 2

    assert f(lamina.ones(2, requires_grad=True) * 2).tolist() == [12.0, 12.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        f(lamina.ones(2, requires_grad=True))
    assert f(lamina.ones(2)).tolist() == [6.0, 6.0]


def test_an_input_that_eager_does_not_keep_may_be_written_after_the_call() -> None:
    def f(w: Any, mask: Any) -> Any:
        return (w + 1).exp() * (mask == 0)

    found = []
    for call in (f, lamina.compile(f)):
        x = lamina.tensor([0.1, 0.2, 0.3], requires_grad=True)
        w, mask = x * 1, lamina.tensor([0, 1, 0])
        y = call(w, mask)
        w.zero_()
        mask.fill_(1)
        y.sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
