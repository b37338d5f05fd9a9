"""``nn.utils.parametrize`` behaves as PyTorch's; values are PyTorch's."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import nn
from lamina_tensor.nn.utils import parametrizations, parametrize


def wave(*shape: int, phase: float = 0.0) -> Any:
    count = math.prod(shape)
    return lt.tensor(np.sin(np.arange(count, dtype=np.float32) * np.float32(0.37) + phase).reshape(shape))


def linear() -> nn.Linear:
    made = nn.Linear(4, 3)
    made.weight.data, made.bias.data = wave(3, 4), wave(3)
    return made


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).transpose(-1, -2)


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2

    def right_inverse(self, w: Any) -> Any:
        return w / 2


def test_norm_and_direction_are_learnt() -> None:
    layer = parametrizations.weight_norm(linear())
    names = ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert sorted(layer.state_dict()) == names and type(layer).__name__ == "ParametrizedLinear"
    np.testing.assert_allclose(layer.weight.detach().numpy(), wave(3, 4).numpy(), rtol=1e-6)
    found = layer(lt.tensor(np.sin(np.arange(8) * 0.2).astype(np.float32).reshape(2, 4)))
    wanted = [[0.84017146, 1.15868616, -0.02134025], [1.81541753, 3.14375114, -0.63660824]]
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5)
    (found**2).sum().backward()
    gains = layer.parametrizations.weight.original0
    np.testing.assert_allclose(gains.grad.reshape(-1).tolist(), [6.79388285, 11.50654984, 1.70774376], rtol=1e-5)


def test_a_value_goes_back_to_the_originals() -> None:
    layer = parametrizations.weight_norm(linear())
    layer.weight = lt.ones(3, 4)
    assert layer.parametrizations.weight.original0.tolist() == [[2.0]] * 3
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and sorted(layer.state_dict()) == ["bias", "weight"]
    assert isinstance(layer.weight, nn.Parameter) and lt.equal(layer.weight, lt.ones(3, 4))


def test_the_largest_singular_value_is_one() -> None:
    layer = nn.Linear(4, 3, bias=False)
    layer.weight.data = wave(3, 4)
    parametrizations.spectral_norm(layer, n_power_iterations=30)
    wanted = [0.0, 0.1767, 0.3294, 0.4376, 0.4865, 0.4696, 0.3892, 0.256, 0.0882, -0.0915, -0.2589, -0.3912]
    np.testing.assert_allclose(layer.weight.detach().reshape(-1).tolist(), wanted, atol=1e-4)
    assert [n for n, _ in layer.named_buffers()] == ["parametrizations.weight.0._u", "parametrizations.weight.0._v"]
    before = layer.eval().weight
    assert lt.equal(before, layer.weight)
    layer.train().weight.sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    turned = parametrizations.spectral_norm(nn.ConvTranspose2d(2, 3, 2), n_power_iterations=30)
    matrix = turned.weight.movedim(1, 0).flatten(1)
    assert abs(float(lt.linalg.matrix_norm(matrix, 2)) - 1) < 1e-4


def test_several_are_applied_in_order_and_copies_are_their_own() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    original = layer.parametrizations.weight.original
    assert lt.equal(layer.weight, (original.triu() + original.triu(1).t()) * 2)
    other = copy.deepcopy(layer)
    with lt.no_grad():
        other.parametrizations.weight.original.zero_()
    assert not other.weight.any() and layer.weight.any()
    with pytest.raises(NotImplementedError, match="Symmetric has no right_inverse"):
        layer.weight = lt.ones(3, 3)


def test_what_is_kept_and_what_is_refused() -> None:
    layer = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="may not change the shape or dtype"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    assert not parametrize.is_parametrized(layer) and layer.weight.shape == (3, 3)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "gain", Symmetric())
    parametrize.register_parametrization(layer, "weight", Symmetric())
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(layer, "weight")
