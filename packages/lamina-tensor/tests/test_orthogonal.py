"""``nn.utils.parametrizations.orthogonal``: orthonormal columns or rows by each map, before, in and after training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import nn
from lamina_tensor.nn.utils import parametrizations, parametrize

MAPS = ("matrix_exp", "cayley", "householder")
SHAPES = ((4, 4), (6, 3), (3, 6), (2, 5, 3), (2, 3, 5), (1, 1), (5, 1))


class Holder(nn.Module):
    """One weight."""

    def __init__(self, *shape: int, dtype: Any = lt.float64) -> None:
        super().__init__()
        values = np.sin(np.arange(math.prod(shape)) ** 2 * 0.73 + 0.3).reshape(shape)
        self.weight = nn.Parameter(lt.tensor(values, dtype=dtype))


def distance(weight: Any) -> float:
    """How far a weight's columns (or rows) are from orthonormal."""
    tall = weight if weight.shape[-2] >= weight.shape[-1] else weight.mH
    return float((tall.mH @ tall - lt.eye(tall.shape[-1], dtype=tall.dtype)).abs().max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("kind", MAPS)
def test_orthogonal_before_in_and_after_training(kind: str, trivial: bool, shape: tuple[int, ...]) -> None:
    layer = parametrizations.orthogonal(Holder(*shape), "weight", kind, use_trivialization=trivial)
    assert layer.weight.shape == shape and distance(layer.weight) < 1e-12
    target = Holder(*shape).weight.detach().cos()
    optimizer = lt.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = ((layer.weight - target) ** 2).sum()
        loss.backward()
        assert layer.parametrizations.weight.original.grad.isfinite().all()
        optimizer.step()
        losses.append(loss.item())
        assert distance(layer.weight) < 1e-12
    if math.prod(shape) > shape[-1] > 1:
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("kind", MAPS)
def test_gradients_are_those_of_differences(kind: str) -> None:
    layer = parametrizations.orthogonal(Holder(5, 3), "weight", kind)
    original, factors = layer.parametrizations.weight.original, lt.arange(15.0, dtype=lt.float64).reshape(5, 3)
    with lt.no_grad():
        original += Holder(5, 3).weight.tril(-1) * 0.3  # away from where the map begins
    (layer.weight * factors).sum().backward()
    with lt.no_grad():
        for i, j in ((0, 0), (1, 0), (4, 0), (3, 2), (0, 2)):
            sums = []
            for step in (1e-5, -2e-5):
                original[i, j] += step
                sums.append((layer.weight * factors).sum().item())
            original[i, j] += 1e-5
            assert math.isclose(original.grad[i, j].item(), (sums[0] - sums[1]) / 2e-5, abs_tol=1e-6), (i, j)


@pytest.mark.parametrize(("kind", "trivial"), [(k, True) for k in MAPS] + [("householder", False)])
def test_assigned_matrices_are_kept(kind: str, trivial: bool) -> None:
    for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 2)):
        layer = parametrizations.orthogonal(Holder(*shape), "weight", kind, use_trivialization=trivial)
        tall = lt.linalg.qr(Holder(*sorted(shape[-2:], reverse=True)).weight.cos())[0].expand(
            *shape[:-2], *sorted(shape[-2:], reverse=True)
        )
        wanted = (tall if shape[-2] >= shape[-1] else tall.mT).detach()
        layer.weight = wanted
        assert (layer.weight - wanted).abs().max() < 1e-12
        with pytest.raises(ValueError, match="expected a matrix or batch of matrices of shape"):
            layer.weight = wanted[..., :1]


def test_an_orthogonal_weight_stays_and_another_becomes_the_factor_of_its_columns() -> None:
    rotation = lt.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=lt.float64)
    for kind in MAPS:
        layer = nn.Linear(2, 2, dtype=lt.float64)
        layer.weight.data = rotation
        parametrizations.orthogonal(layer, orthogonal_map=kind)
        assert (layer.weight - rotation).abs().max() < 1e-15
        assert layer.parametrizations.weight.original.tolist() == [[-1, 0], [0, -1]]
        assert layer.parametrizations.weight[0].base.tolist() == rotation.tolist()
        other = Holder(2, 2)
        wanted = np.linalg.qr(other.weight.detach().numpy())
        parametrizations.orthogonal(other, orthogonal_map=kind)
        np.testing.assert_allclose(other.weight.detach().numpy(), wanted[0] * np.sign(np.diag(wanted[1])), atol=1e-14)


def test_reflections_begin_with_the_factor_of_the_weight() -> None:
    for shape in ((4, 4), (6, 3)):
        layer = Holder(*shape)
        wanted = np.linalg.qr(layer.weight.detach().numpy())
        parametrizations.orthogonal(layer, orthogonal_map="householder", use_trivialization=False)
        np.testing.assert_allclose(layer.weight.detach().numpy(), wanted[0] * np.sign(np.diag(wanted[1])), atol=1e-14)
    layer = Holder(3, 2)
    with lt.no_grad():
        layer.weight[:, 1] = 0.0  # no second direction
    parametrizations.orthogonal(layer, orthogonal_map="householder", use_trivialization=False)
    assert distance(layer.weight) < 1e-14


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", None])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
def test_unitary(kind: str | None, shape: tuple[int, ...]) -> None:
    layer = Holder(*shape, dtype=lt.complex128)
    layer.weight.data = layer.weight.data * (1 + 2j)
    parametrizations.orthogonal(layer, orthogonal_map=kind)
    with lt.no_grad():
        layer.parametrizations.weight.original += 0.3j
    assert distance(layer.weight) < 1e-12
    layer.weight.abs().sum().backward()
    assert layer.parametrizations.weight.original.grad.abs().isfinite().all()


def test_the_map_by_shape() -> None:
    assert parametrizations.orthogonal(nn.Linear(3, 3)).parametrizations.weight[0].orthogonal_map == "matrix_exp"
    assert parametrizations.orthogonal(nn.Linear(3, 4)).parametrizations.weight[0].orthogonal_map == "householder"


def test_state_and_removal() -> None:
    layer, other = (parametrizations.orthogonal(nn.Linear(3, 5)) for _ in range(2))
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original", "parametrizations.weight.0.base"]
    other.load_state_dict(layer.state_dict())
    assert other.weight.tolist() == layer.weight.tolist()
    weight = layer.weight.detach()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == weight.tolist() and type(layer) is nn.Linear


def test_what_is_refused() -> None:
    layer = nn.Linear(3, 4)
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'wieght'"):
        parametrizations.orthogonal(layer, "wieght")
    with pytest.raises(ValueError, match="got a tensor of 1 dimensions"):
        parametrizations.orthogonal(layer, "bias")
    with pytest.raises(ValueError, match="has to be one of 'matrix_exp', 'cayley', 'householder', got 'qr'"):
        parametrizations.orthogonal(layer, orthogonal_map="qr")
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(Holder(3, 3, dtype=lt.complex64), orthogonal_map="householder")
    fixed = parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="'cayley' cannot be assigned to: use_trivialization=True"):
        fixed.weight = lt.eye(3)
