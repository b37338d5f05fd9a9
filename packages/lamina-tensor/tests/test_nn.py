"""Modules give PyTorch's values (stored in data/pytorch_values.json, weights by a formula) and behave as its do."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import nn

VALUES = json.loads((Path(__file__).parent / "data" / "pytorch_values.json").read_text())


def wave(shape: Any, step: float, phase: float, function: Any) -> Any:
    count = math.prod(shape)
    return lt.from_numpy(
        function(np.arange(count, dtype=np.float32) * np.float32(step) + phase).astype(np.float32).reshape(shape)
    )


def fill(module: nn.Module) -> nn.Module:
    for k, parameter in enumerate(module.parameters()):
        parameter.data = wave(tuple(parameter.shape), 0.37, k, np.sin) * 0.5
    return module


@pytest.mark.parametrize("expression", VALUES["modules"])
def test_values_are_pytorchs(expression: str) -> None:
    case = VALUES["modules"][expression]
    module = fill(eval(f"nn.{expression}", {"nn": nn}))
    inputs = [wave(shape, 0.23, 0.0, np.cos) + 0.1 * k for k, shape in enumerate(case["shapes"])]
    result = module(*inputs)
    while isinstance(result, tuple):
        result = result[0]
    assert list(result.shape) == case["shape"]
    np.testing.assert_allclose(result.detach().numpy().reshape(-1), case["result"], rtol=2e-5, atol=2e-6)


def test_assignment_registers_and_names_are_dotted() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False))
            self.scale = nn.Parameter(lt.ones(1))
            self.register_buffer("seen", lt.zeros(()), persistent=False)

    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scale", "body.0.weight", "body.0.bias", "body.2.weight"]
    assert list(net.state_dict()) == ["scale", "body.0.weight", "body.0.bias", "body.2.weight"]
    assert [name for name, _ in net.named_buffers()] == ["seen"]
    del net.scale
    assert "scale" not in net.state_dict()


def test_shared_parameters_are_listed_once() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3


def test_assignments_of_the_wrong_kind_are_refused() -> None:
    net = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign Tensor as parameter 'weight'"):
        net.weight = lt.ones(2, 2)
    with pytest.raises(KeyError, match="can't be empty or contain"):
        net.register_buffer("a.b", lt.ones(1))
    with pytest.raises(AttributeError, match=r"before Module.__init__"):
        type("Bad", (nn.Module,), {"__init__": lambda self: setattr(self, "p", nn.Parameter(lt.ones(1)))})()


def test_state_round_trip_and_its_errors() -> None:
    source, target = nn.Linear(3, 2), nn.Linear(3, 2)
    target.load_state_dict(source.state_dict())
    assert lt.equal(source.weight, target.weight) and source.weight is not target.weight
    state = source.state_dict()
    before = target.weight.detach().clone()
    with pytest.raises(RuntimeError, match=r"missing keys: bias"):
        target.load_state_dict({"weight": state["weight"] + 1})
    with pytest.raises(RuntimeError, match=r"unexpected keys: extra"):
        target.load_state_dict({**state, "extra": state["bias"]})
    with pytest.raises(RuntimeError, match=r"weight has the shape \(2, 2\) in the state, \(2, 3\) in the module"):
        target.load_state_dict({**state, "weight": lt.ones(2, 2)})
    assert lt.equal(before, target.weight)
    assert target.load_state_dict({}, strict=False).missing_keys == ["weight", "bias"]


def test_train_and_eval_reach_all_modules() -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.BatchNorm1d(2)))
    net.eval()
    assert not any(m.training for m in net.modules())
    x = lt.randn(4, 2)
    assert lt.equal(net[0](x), x)
    with pytest.raises(ValueError, match="boolean"):
        net.train("yes")


def test_hooks_see_and_replace() -> None:
    net, seen = nn.Linear(2, 2), []
    first = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = net.register_forward_hook(lambda module, args, result: seen.append(args[0]) or result + 1)
    x = lt.ones(1, 2)
    changed = net(x)
    assert lt.equal(seen[0], x * 2)
    first.remove()
    second.remove()
    np.testing.assert_allclose(changed.detach().numpy(), (net(x * 2) + 1).detach().numpy())


def test_copies_and_pickles_are_independent() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    twin, stored = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    for other in (twin, stored):
        assert lt.equal(other[0].weight, net[0].weight)
        with lt.no_grad():
            other[0].weight.add_(1)
        assert not lt.equal(other[0].weight, net[0].weight)
        assert isinstance(other[0].weight, nn.Parameter)


def test_conversion_keeps_integer_buffers() -> None:
    net = nn.BatchNorm1d(2).double()
    assert net.weight.dtype is lt.float64 and net.num_batches_tracked.dtype is lt.int64


def test_batch_norm_updates_its_statistics() -> None:
    net, x = nn.BatchNorm1d(3), lt.randn(8, 3)
    net(x)
    np.testing.assert_allclose(net.running_mean.numpy(), 0.1 * x.numpy().mean(0), rtol=1e-5)
    np.testing.assert_allclose(net.running_var.numpy(), 0.9 + 0.1 * x.numpy().var(0, ddof=1), rtol=1e-5)
    assert int(net.num_batches_tracked) == 1
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        net(lt.ones(1, 3))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        net(lt.ones(2, 3, 4, 5))


def test_containers_behave_like_lists_and_dicts() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers.insert(1, nn.Tanh())
    layers.append(nn.Sigmoid())
    assert [type(m).__name__ for m in layers] == ["Linear", "Tanh", "ReLU", "Sigmoid"]
    del layers[0]
    assert len(layers[1:]) == 2 and isinstance(layers[-1], nn.Sigmoid)
    with pytest.raises(IndexError, match="out of range"):
        layers[5]
    named = nn.ModuleDict({"a": nn.ReLU()})
    named["b"] = nn.Linear(1, 2)
    assert list(named) == ["a", "b"] and "a" in named and len(list(named.values())) == 2
    assert isinstance(nn.ParameterList([lt.ones(2)])[0], nn.Parameter)


def test_repr_shows_the_tree() -> None:
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.LeakyReLU(0.2))) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): LeakyReLU(negative_slope=0.2)\n)"
    )


def test_masked_attention_ignores_what_is_masked() -> None:
    layer = fill(nn.MultiheadAttention(8, 2, batch_first=True))
    x = lt.randn(2, 4, 8)
    padding = lt.tensor([[False, False, True, True], [False, False, False, False]])
    full, _ = layer(x, x, x, key_padding_mask=padding)
    short, _ = layer(x[:1, :2], x[:1, :2], x[:1, :2])
    np.testing.assert_allclose(full[0, :2].detach().numpy(), short[0].detach().numpy(), rtol=1e-4, atol=1e-5)
    _, weights = layer(x, x, x, key_padding_mask=padding)
    assert float(weights[0, :, 2:].abs().max()) == 0.0


def test_clip_grad_norm() -> None:
    a, b = lt.ones(3).requires_grad_(), lt.ones(4).requires_grad_()
    (a * 3).sum().backward()
    (b * 4).sum().backward()
    before = nn.utils.clip_grad_norm_([a, b], 1.0)
    assert float(before) == pytest.approx(math.sqrt(3 * 9 + 4 * 16))
    total = math.sqrt(float((a.grad * a.grad).sum() + (b.grad * b.grad).sum()))
    assert total == pytest.approx(1.0, rel=1e-4)


def test_unknown_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="LeakyReLU has no parameter 'slope'"):
        nn.LeakyReLU(slope=0.1)
    with pytest.raises(ValueError, match="must be divisible by groups"):
        nn.Conv2d(3, 4, 1, groups=2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)
    with pytest.raises(ValueError, match="multiple of num_heads"):
        nn.MultiheadAttention(6, 4)


def test_initialisers_fill_in_place() -> None:
    weight = lt.empty(64, 32)
    for fn in (nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.xavier_normal_, nn.init.trunc_normal_):
        assert fn(weight) is weight and bool(weight.isfinite().all())
    nn.init.orthogonal_(weight)
    np.testing.assert_allclose((weight.t() @ weight).numpy(), np.eye(32), atol=1e-4)
    nn.init.eye_(weight)
    assert float(weight.sum()) == 32.0
    kernel = nn.init.dirac_(lt.empty(3, 3, 3))
    x = lt.randn(1, 3, 7)
    np.testing.assert_allclose(nn.functional.conv1d(x, kernel, padding=1).numpy(), x.numpy(), rtol=1e-6)


def test_one_hot_finds_the_number_of_classes() -> None:
    numbers = lt.tensor([[0, 2], [1, 0]])
    assert nn.functional.one_hot(numbers).tolist() == nn.functional.one_hot(numbers, 3).tolist()
    assert nn.functional.one_hot(numbers[:0], 3).shape == (0, 2, 3)
    with pytest.raises(RuntimeError, match="Can not infer total number of classes from empty tensor"):
        nn.functional.one_hot(numbers[:0])
    with pytest.raises(RuntimeError, match="must not be negative"):
        nn.functional.one_hot(numbers, -2)


def test_losses_over_classes_give_pytorchs_values() -> None:
    x, target = wave((3, 4), 0.23, 0.0, np.cos), lt.tensor([1, 3, 0])
    labels = lt.tensor([[1, 3, -1, 0], [2, -1, 0, 0], [0, 1, 2, 3]])
    weighted = nn.MultiMarginLoss(p=2, margin=0.5, weight=lt.tensor([1.0, 2.0, 0.5, 1.0]))
    found = nn.MultiMarginLoss()(x, target), weighted(x, target), nn.MultiLabelMarginLoss()(x, labels)
    np.testing.assert_allclose([f.item() for f in found], [0.74183196, 0.32673168, 0.64237261], rtol=1e-5)


def test_maxima_go_back_to_where_they_were() -> None:
    x = wave((1, 1, 3, 4), 0.23, 0.0, np.cos)
    values, places = nn.MaxPool2d((1, 2), return_indices=True)(x)
    assert lt.equal(nn.MaxUnpool2d((1, 2))(values, places) != 0, lt.tensor([[[[True, False] * 2] * 3]]))
    assert lt.equal(nn.MaxUnpool2d((1, 2))(values, places)[..., ::2], values)


def test_slopes_are_random_in_training() -> None:
    x = lt.full((1000,), -1.0)
    slopes = -nn.RReLU(0.2, 0.4)(x)
    assert 0.2 <= slopes.min() < 0.25 and 0.35 < slopes.max() <= 0.4 and abs(float(slopes.mean()) - 0.3) < 0.01
    assert lt.equal(nn.RReLU(0.2, 0.4).eval()(x), x * 0.3)
    with pytest.raises(ValueError, match="must not be larger"):
        nn.RReLU(0.5, 0.4)(x)
