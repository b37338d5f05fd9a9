"""What programs for PyTorch find beside operators: distributions, packed sequences, autocast, names of types."""

from __future__ import annotations

import math
from typing import Any

import pytest

import lamina_tensor as lt
from lamina_tensor import nn
from lamina_tensor.amp import autocast
from lamina_tensor.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence
from lamina_tensor.func import functional_call, grad, hessian, jacrev, vjp, vmap
from lamina_tensor.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def test_names_of_types_make_and_recognise_tensors() -> None:
    assert lt.LongTensor([1, 2]).dtype is lt.int64 and lt.FloatTensor(2, 3).shape == (2, 3)
    assert isinstance(lt.ones(2), lt.FloatTensor) and not isinstance(lt.ones(2), lt.LongTensor)
    assert (
        lt.ones(2).type(lt.ByteTensor).dtype is lt.uint8 and lt.ones(2).type("torch.DoubleTensor").dtype is lt.float64
    )


def test_no_gpu_is_said_clearly() -> None:
    assert not lt.cuda.is_available()
    with pytest.raises(RuntimeError, match=r"the device .cuda. cannot be used"):
        lt.ones(2).cuda()


def test_distributions() -> None:
    normal = Normal(lt.tensor([0.0, 1.0]), 2.0)
    assert math.isclose(float(normal.log_prob(lt.tensor(0.0))[0]), -math.log(2 * math.sqrt(2 * math.pi)), rel_tol=1e-6)
    categorical = Categorical(logits=lt.tensor([[0.0, 0.0], [0.0, 40.0]]))
    assert categorical.sample((3,)).shape == (3, 2) and bool((categorical.sample((9,))[:, 1] == 1).all())
    assert math.isclose(float(categorical.entropy()[0]), math.log(2), rel_tol=1e-6)
    assert Independent(normal, 1).log_prob(lt.zeros(2)).shape == ()
    assert float(kl_divergence(normal, normal).sum()) == 0.0
    with pytest.raises(ValueError, match="probs must be in"):
        Bernoulli(lt.tensor(1.5))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences_give_what_each_alone_gives(kind: Any) -> None:
    rnn = kind(3, 4, num_layers=2, bidirectional=True)
    lengths = [2, 5, 3]
    x = lt.randn(5, 3, 3)
    packed, last = rnn(pack_padded_sequence(x, lengths, enforce_sorted=False))
    padded, found = pad_packed_sequence(packed)
    assert found.tolist() == lengths
    for k, length in enumerate(lengths):
        alone, final = rnn(x[:length, k : k + 1])
        assert lt.allclose(padded[:length, k], alone[:, 0], atol=1e-6)
        assert float(padded[length:, k].abs().sum()) == 0.0
        have, want = (last[0], final[0]) if kind is nn.LSTM else (last, final)
        assert lt.allclose(have[:, k], want[:, 0], atol=1e-6)


def test_autocast_lists() -> None:
    x = lt.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        product = x @ x
        assert product.dtype is lt.bfloat16 and (x + 1).dtype is lt.float32
        assert lt.cat([product, x]).dtype is lt.float32
        assert nn.functional.mse_loss(product, product).dtype is lt.float32
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype is lt.float32
    assert (x @ x).dtype is lt.float32
    product.float().sum().backward()
    assert x.grad is not None and x.grad.dtype is lt.float32


def test_functions_of_functions() -> None:
    x = lt.tensor([1.0, 2.0])
    assert grad(lambda t: (t**3).sum())(x).tolist() == [3.0, 12.0]
    assert jacrev(lambda t: t * t)(x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert hessian(lambda t: (t**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert vjp(lambda t: t * 3, x)[1](lt.ones(2))[0].tolist() == [3.0, 3.0]
    linear = nn.Linear(2, 1)
    out = functional_call(linear, {"weight": lt.ones(1, 2), "bias": lt.zeros(1)}, (x,))
    assert out.tolist() == [3.0]
    with pytest.raises(NotImplementedError, match="batching rules"):
        vmap(lambda t: t)


def test_backward_hooks_see_and_replace_gradients() -> None:
    layer, seen = nn.Linear(2, 2, bias=False), []
    handle = layer.register_full_backward_hook(lambda m, gin, gout: seen.append(gout[0]) or (gin[0] * 0,))
    x = lt.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen[0].tolist() == [[1.0, 1.0]] and x.grad.tolist() == [[0.0, 0.0]]
    handle.remove()
    layer(x).sum().backward()
    assert len(seen) == 1


def test_replaced_children_keep_their_place() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for name, _ in model.named_children():
        setattr(model, name, nn.Identity())
    assert [name for name, _ in model.named_children()] == ["0", "1"]
