"""Tensors made in inference mode refuse to be saved for a backward, compiled as in eager."""

from __future__ import annotations

import pytest

import lamina


def inside(a):
    with lamina.inference_mode():
        b = a * 2
    return (a * b).sum()


def given(a, b):
    return (a * b).sum()


def summed(a):
    with lamina.inference_mode():
        b = a * 2
    return (a + b.sum()).sum(), b, b.t()


@lamina.inference_mode()
def all_of_it(a):
    return (a * 2).add_(1)


COMPILED = pytest.mark.parametrize("backend", [None, "cpp", "reference"], ids=["eager", "cpp", "reference"])


def _run(fn, backend):
    return fn if backend is None else lamina.compile(fn, backend=backend)


def _leaf():
    return lamina.ones(2, 3, requires_grad=True)


@COMPILED
def test_what_a_program_makes_in_inference_mode_is_not_saved(backend) -> None:
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _run(inside, backend)(_leaf())


@COMPILED
def test_an_input_made_in_inference_mode_is_not_saved(backend) -> None:
    with lamina.inference_mode():
        b = lamina.ones(2, 3) * 2
    run = _run(given, backend)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        run(_leaf(), b)
    assert run(lamina.ones(2, 3), b).item() == 12.0
    a = _leaf()
    run(a, b.clone()).backward()
    assert a.grad.tolist() == [[2.0] * 3] * 2


@COMPILED
def test_results_say_that_they_were_made_in_inference_mode(backend) -> None:
    a = _leaf()
    total, made, view = _run(summed, backend)(a)
    assert (total.is_inference(), made.is_inference(), view.is_inference()) == (False, True, True)
    total.backward()
    assert a.grad.tolist() == [[1.0] * 3] * 2


@COMPILED
def test_a_function_in_inference_mode(backend) -> None:
    result = _run(all_of_it, backend)(_leaf())
    assert result.is_inference() and not result.requires_grad and result.tolist() == [[3.0] * 3] * 2
    with lamina.inference_mode():
        result = _run(lambda a: a * 3, backend)(_leaf())
    assert result.is_inference() and not result.requires_grad


def test_views_are_what_their_memory_is() -> None:
    a = lamina.ones(2, 3)
    with lamina.inference_mode():
        made, view = a * 2, a.t()
    assert not view.is_inference() and made.t().is_inference() and not made.t().clone().is_inference()


@COMPILED
def test_what_is_computed_from_an_inference_tensor_is_saved(backend) -> None:
    """The compiled backward computes it again from the tensor; eager keeps the result, which is no inference tensor."""
    with lamina.inference_mode():
        b = lamina.ones(2, 3) * 2
    a = _leaf()
    _run(lambda a, b: (a * (b + 1).exp()).sum(), backend)(a, b).backward()
    assert a.grad.tolist() == (lamina.ones(2, 3) * 3).exp().tolist()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _run(lambda a, b: (a @ b.t()).sum(), backend)(a, b)
