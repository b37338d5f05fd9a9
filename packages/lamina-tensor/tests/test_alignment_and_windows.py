"""CTC loss, fractional pooling, (un)folding, Transformer: PyTorch's values, stored in data/pytorch_sequences.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt

VALUES = json.loads((Path(__file__).parent / "data" / "pytorch_sequences.json").read_text())


def waves(L: Any, *shape: int, start: int = 0) -> Any:
    """The same numbers for each library."""
    count = int(np.prod(shape))
    return L.tensor(np.sin((np.arange(count) + start) * 1.7).astype(np.float32).tolist()).reshape(shape)


TARGETS = [[2, 2, 3, 3], [1, 4, 2, 2], [3, 1, 1, 2]]


def ctc(**options: Any) -> Callable[[Any], Any]:
    def run(L: Any) -> Any:
        x = (waves(L, 12, 3, 5) * 2).requires_grad_()
        lengths = L.tensor([12, 9, 5]), L.tensor([4, 2, 0])
        loss = L.nn.functional.ctc_loss(x.log_softmax(2), L.tensor(TARGETS), *lengths, **options)
        return loss, *L.autograd.grad(loss.sum(), [x])

    return run


def ctc_in_a_row(L: Any) -> Any:
    x = (waves(L, 6, 3, 5) * 2).requires_grad_()
    loss = L.nn.CTCLoss(blank=4)(x.log_softmax(2), L.tensor([2, 2, 3, 1]), (6, 6, 6), (2, 1, 1))
    return loss, *L.autograd.grad(loss, [x])


def ctc_impossible(L: Any) -> Any:
    x = (waves(L, 3, 3, 5) * 2).requires_grad_()
    lengths = L.tensor([3, 3, 3]), L.tensor([4, 1, 2])
    options = {"reduction": "none"}
    loss = L.nn.functional.ctc_loss(x.log_softmax(2), L.tensor(TARGETS), *lengths, zero_infinity=True, **options)
    plain = L.nn.functional.ctc_loss(x.log_softmax(2), L.tensor(TARGETS), *lengths, **options)
    return loss, *L.autograd.grad(loss.sum(), [x]), plain


def ctc_single(L: Any) -> Any:
    x = (waves(L, 7, 5) * 2).requires_grad_()
    loss = L.nn.functional.ctc_loss(x.log_softmax(1), L.tensor([1, 2, 2]), L.tensor(7), L.tensor(3))
    return loss, *L.autograd.grad(loss, [x])


def fractional(kernel: Any, **options: Any) -> Callable[[Any], Any]:
    def run(L: Any) -> Any:
        x = waves(L, 2, 2, 9, 8).requires_grad_()
        samples = waves(L, 2, 2, 2, start=5).abs() * 0.99
        layer = L.nn.FractionalMaxPool2d(kernel, return_indices=True, _random_samples=samples, **options)
        value, where = layer(x)
        return value, where, *L.autograd.grad((value * value).sum(), [x])

    return run


def fold(L: Any) -> Any:
    columns = L.nn.Unfold(2, 1, 1, 2)(waves(L, 1, 2, 5, 5))
    return columns, L.nn.Fold((5, 5), 2, 1, 1, 2)(columns)


def transformer(L: Any) -> Any:
    model = L.nn.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True)
    with L.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(waves(L, *parameter.shape, start=number) * 0.3)
    source, target = waves(L, 2, 5, 8).requires_grad_(), waves(L, 2, 4, 8, start=3)
    result = model(source, target, tgt_mask=model.generate_square_subsequent_mask(4))
    return result, *L.autograd.grad((result * waves(L, 2, 4, 8)).sum(), [source])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "ctc": ctc(),
    "ctc sums": ctc(reduction="sum"),
    "ctc each": ctc(reduction="none"),
    "ctc in a row": ctc_in_a_row,
    "ctc impossible": ctc_impossible,
    "ctc single": ctc_single,
    "fractional size": fractional(2, output_size=(4, 5)),
    "fractional ratio": fractional((3, 2), output_ratio=(0.5, 0.6)),
    "fractional one": fractional(2, output_size=1),
    "fold": fold,
    "transformer": transformer,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_pytorchs(name: str) -> None:
    for have, want in zip(PROGRAMS[name](lt), VALUES[name], strict=True):
        array = np.array(want, dtype=np.float64)
        np.testing.assert_allclose(have.detach().numpy(), array, rtol=1e-4, atol=2e-5)


def test_gumbel_softmax() -> None:
    lt.manual_seed(0)
    logits = lt.tensor([[0.0, 1.0, 2.0]]).expand(4000, 3).clone().requires_grad_()
    soft = lt.nn.functional.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.sum(-1).detach().numpy(), 1.0, rtol=1e-5)
    hard = lt.nn.functional.gumbel_softmax(logits, hard=True)
    assert sorted(set(hard.detach().numpy().ravel().tolist())) == [0.0, 1.0] and (hard.sum(-1) == 1).all().item()
    shares = hard.detach().numpy().mean(0)
    np.testing.assert_allclose(shares, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.03)
    (gradient,) = lt.autograd.grad((hard * lt.tensor([1.0, 2.0, 3.0])).sum(), [logits])
    assert gradient.abs().sum().item() > 0


def test_windows_of_fractional_pooling_are_drawn() -> None:
    x = waves(lt, 1, 1, 20, 20)
    lt.manual_seed(1)
    found = [lt.nn.functional.fractional_max_pool2d(x, 2, output_ratio=0.4) for _ in range(4)]
    assert all(tuple(f.shape) == (1, 1, 8, 8) for f in found)
    assert len({f.numpy().tobytes() for f in found}) > 1
    with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
        lt.nn.functional.fractional_max_pool2d(x, 2)
