"""``repr`` of tensors, as PyTorch prints them."""

from __future__ import annotations

import pytest

import lamina_tensor as lt
from lamina_fx import TensorSpec, float32

TEXTS = [
    (lambda: lt.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
    (lambda: lt.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: lt.zeros(2), "tensor([0., 0.])"),
    (lambda: lt.tensor([[1, 2], [30, 4]]), "tensor([[ 1,  2],\n        [30,  4]])"),
    (lambda: lt.tensor([True, False]), "tensor([ True, False])"),
    (lambda: lt.tensor(3.14159), "tensor(3.1416)"),
    (lambda: lt.tensor(7), "tensor(7)"),
    (lambda: lt.tensor([1e10, 1.0]), "tensor([1.0000e+10, 1.0000e+00])"),
    (lambda: lt.tensor([1.5, float("nan")]), "tensor([1.5000,    nan])"),
    (lambda: lt.tensor([float("inf"), 1.0]), "tensor([inf, 1.])"),
    (lambda: lt.tensor([1 + 2j, 3.5 - 1j]), "tensor([1.0000+2.j, 3.5000-1.j])"),
    (lambda: lt.ones(2, dtype=lt.float64), "tensor([1., 1.], dtype=lamina.float64)"),
    (lambda: lt.ones(1, dtype=lt.bfloat16), "tensor([1.], dtype=lamina.bfloat16)"),
    (lambda: lt.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    (lambda: lt.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    (lambda: lt.zeros(0), "tensor([])"),
    (lambda: lt.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda: lt.ones(2, 1, 1), "tensor([[[1.]],\n\n        [[1.]]])"),
    (lambda: lt.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (lambda: lt.fake_tensor(TensorSpec((2, 3), float32)), "FakeTensor(..., size=(2, 3), dtype=lamina.float32)"),
    (lambda: lt.ones(2, 3).shape, "lamina.Size([2, 3])"),
]


@pytest.mark.parametrize(("make", "text"), TEXTS, ids=[t.replace("\n", "") for _, t in TEXTS])
def test_text(make, text: str) -> None:
    assert repr(make()) == text


def test_lines_are_broken_at_the_width() -> None:
    text = repr(lt.arange(30.0))
    assert text.split("\n")[1] == "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,"


def test_options() -> None:
    lt.set_printoptions(precision=2, threshold=5, edgeitems=1)
    try:
        assert repr(lt.arange(6) / 3) == "tensor([0.00,  ..., 1.67])"
    finally:
        lt.set_printoptions(profile="default")
    with pytest.raises(ValueError, match="no profile 'odd'"):
        lt.set_printoptions(profile="odd")
