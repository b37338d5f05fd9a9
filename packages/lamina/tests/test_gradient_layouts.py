"""The strides of a leaf's ``.grad`` are the leaf's where its memory is dense, otherwise row-major, as in PyTorch."""

from __future__ import annotations

import pytest

import lamina


def _leaves():
    yield "transposed", lamina.arange(6.0).reshape(2, 3).t(), (1, 3)
    yield "permuted", lamina.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), (1, 12, 4)
    yield "row-major", lamina.arange(6.0).reshape(2, 3), (3, 1)
    yield "every other row", lamina.arange(12.0).reshape(4, 3)[::2], (3, 1)
    yield "one column", lamina.arange(3.0).reshape(3, 1), (1, 1)
    yield "no elements", lamina.zeros(0, 3), (3, 1)


def _sum(x):
    return x.sum()


def _product(x):
    return (x * lamina.ones(x.shape)).sum()


def _square(x):
    return (x * x).sum()


def _of_transposed(x):
    return (x.transpose(0, 1).contiguous() * 3).sum()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("fn", [_sum, _product, _square, _of_transposed])
@pytest.mark.parametrize(("given", "strides"), [(x, s) for _, x, s in _leaves()], ids=[n for n, _, _ in _leaves()])
def test_gradients_have_the_layout_of_their_leaf(given, strides: tuple[int, ...], fn, compiled: bool) -> None:
    run = lamina.compile(fn, backend="reference") if compiled else fn
    x = given.detach().requires_grad_()
    run(x).backward()
    assert x.grad.stride() == strides and not x.grad._is_view()
    [expected] = lamina.autograd.grad(fn(x), x)
    assert x.grad.tolist() == expected.tolist()
    run(x).backward()
    assert x.grad.stride() == strides and x.grad.tolist() == (expected * 2).tolist()


def test_a_gradient_with_a_history_has_the_layout_too() -> None:
    x = lamina.arange(6.0).reshape(2, 3).t().requires_grad_()
    (x**3 * lamina.ones(3, 2)).sum().backward(create_graph=True)
    assert x.grad.stride() == (1, 3)
    [second] = lamina.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == (x.detach() * 6).tolist()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("fn", [_product, _square])
def test_a_backward_inside_the_program(fn, compiled: bool) -> None:
    def step(x):
        fn(x).backward()

    x = lamina.arange(6.0).reshape(2, 3).t().requires_grad_()
    (lamina.compile(step, backend="reference") if compiled else step)(x)
    assert x.grad.stride() == (1, 3)
