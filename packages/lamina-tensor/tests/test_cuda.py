"""CUDA tensors on the stub device: what surrounds the operators, which test_cuda_operators.py covers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import cuda, nn, optim
from lamina_tensor.cuda.stub_provider import StubProvider
from lamina_tensor.serialization import load, save


@pytest.fixture(autouse=True)
def stub() -> Iterator[StubProvider]:
    provider = StubProvider(devices=2, memory=1 << 20)
    before = cuda.use_provider(provider)
    yield provider
    lt.set_default_device(None)
    cuda.use_provider(before)


def gpu(*data: Any, **options: Any) -> lt.Tensor:
    return lt.tensor(data, device="cuda", **options)


# -- making and moving -----------------------------------------------------------------------------------


def test_where_tensors_are_made() -> None:
    assert str(lt.zeros(2, device="cuda").device) == "cuda:0" and str(lt.ones(2, device="cuda:1").device) == "cuda:1"
    assert lt.full((2,), 7, device=lt.device("cuda")).tolist() == [7, 7]
    assert lt.arange(3, device="cuda").tolist() == [0, 1, 2] and lt.eye(2, device="cuda").is_cuda
    assert lt.tensor([[1.5]], device="cuda").item() == 1.5 and lt.as_tensor([1], device="cuda").is_cuda
    x = gpu(1.0, 2.0)
    assert lt.zeros_like(x).is_cuda and x.new_ones(3).is_cuda and lt.ones_like(x, device="cpu").device.type == "cpu"
    assert lt.ones_like(lt.ones(2), device="cuda").is_cuda
    with cuda.device(1):
        assert lt.zeros(2, device="cuda").get_device() == 1 and cuda.current_device() == 1
    assert cuda.current_device() == 0 and lt.empty_strided((2, 3), (1, 2), device="cuda").stride() == (1, 2)


def test_moves(stub: StubProvider) -> None:
    x = lt.arange(6.0).reshape(2, 3)
    y = x.cuda()
    assert y.is_cuda and y.cuda() is y and y.to("cuda") is y and y.to("cuda:0", lt.float32) is y
    assert y.cpu().tolist() == x.tolist() and x.cpu() is x
    assert stub.statistics().copies_to_device == 1
    z = y.to("cuda:1")
    assert z.get_device() == 1 and z.tolist() == x.tolist() and x.to(1).get_device() == 1
    assert x.t().cuda().stride() == (1, 3) and x.t().cuda().cpu().stride() == (1, 3)
    assert x.to(y).is_cuda and y.to(x.double()).dtype is lt.float64
    assert x.long().type_as(y).is_cuda and x.long().type_as(y).dtype is lt.float32 and y.type_as(x) is not y
    assert x[:, ::2].cuda().tolist() == [[0, 2], [3, 5]] and x[:, ::2].cuda().is_contiguous()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned
    assert pinned.cuda(non_blocking=True).tolist() == x.tolist()
    assert (
        lt.empty(3, pin_memory=True).is_pinned() and lt.full((2,), 1.0, pin_memory=True, requires_grad=True).is_pinned()
    )
    assert lt.tensor([1], pin_memory=True).is_pinned() and not lt.zeros(3, pin_memory=False).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        y.pin_memory()
    with pytest.raises(RuntimeError, match="there is no device cuda:2: 2 found"):
        x.to("cuda:2")


@pytest.mark.parametrize("dtype", [d for d in vars(lt).values() if isinstance(d, lt.dtype)], ids=str)
def test_every_dtype_goes_there_and_back(dtype: lt.dtype) -> None:
    x = lt.tensor([0, 1, 2, 3]).to(dtype)
    y = x.cuda()
    assert y.dtype is dtype and y.cpu().tolist() == x.tolist() and y[1:3].tolist() == x[1:3].tolist()
    assert y.clone().tolist() == x.tolist() and lt.cat([y, y]).dtype is dtype and y.reshape(2, 2).t().dtype is dtype
    assert y.to(lt.float32).tolist() == x.to(lt.float32).tolist()
    assert y.double().to(dtype).tolist() == x.tolist() and lt.empty_like(y).copy_(x).tolist() == x.tolist()
    assert lt.zeros(2, dtype=dtype, device="cuda").tolist() == lt.zeros(2, dtype=dtype).tolist()


def test_values_leave_the_device_only_when_asked(stub: StubProvider) -> None:
    x = gpu(1.0, 2.0)
    before = stub.statistics().copies_to_host
    y = (x * 2 + 1).sum().sqrt()[None].expand(3)
    assert stub.statistics().copies_to_host == before
    assert y.tolist() == [8**0.5] * 3 or abs(y[0].item() - 8**0.5) < 1e-6
    assert stub.statistics().copies_to_host > before
    assert float(x[0]) == 1.0 and bool(x[0] > 0) and int(x[1]) == 2 and f"{x[1]:.1f}" == "2.0"
    assert repr(x) == "tensor([1., 2.], device='cuda:0')" and 2.0 in x and [1, 2, 3][gpu(1)[0]] == 2


def test_numpy_refuses() -> None:
    x = gpu(1.0)
    words = (
        r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\) to copy the tensor to host memory first."
    )
    for convert in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.sin(x)):
        with pytest.raises(TypeError, match=words):
            convert()
    assert x.numpy(force=True).tolist() == [1.0]


def test_default_device() -> None:
    lt.set_default_device("cuda")
    assert lt.zeros(2).is_cuda and lt.tensor([1]).is_cuda and lt.rand(2).is_cuda and lt.arange(3).is_cuda
    assert nn.Linear(2, 2).weight.is_cuda and str(lt.get_default_device()) == "cuda:0"
    assert lt.zeros(2, device="cpu").device.type == "cpu"
    with lt.device("cpu"):
        assert lt.zeros(2).device.type == "cpu"
    lt.set_default_device(None)
    assert lt.zeros(2).device.type == "cpu"
    with lt.device("cuda:1"), lt.device("cuda"):
        assert lt.zeros(2).get_device() == 0
    with lt.device("cuda:1") as where:
        assert lt.rand(2).device == where and nn.Linear(1, 1).bias.device == where
    assert lt.zeros(2).device.type == "cpu"


# -- memory shared, and the errors of mixing -----------------------------------------------------------------


def test_views_share_memory_and_versions() -> None:
    x = lt.zeros(3, 4, device="cuda")
    row, part = x[1], x[:, 1:3]
    row.fill_(1)
    part[2] += 5
    assert x.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1], [0, 5, 5, 0]] and row._version == x._version
    assert part.data_ptr() == x.data_ptr() + 4 and part.storage_offset() == 1 and row._base is x
    assert x.view(4, 3).storage is x.storage and x.t().storage is x.storage
    x[0] = gpu(1.0, 2.0, 3.0, 4.0)
    x[:, 0] = lt.tensor([9.0, 9.0, 9.0])  # copied from the CPU
    assert x[0].tolist() == [9, 2, 3, 4]
    x.resize_(2, 2)
    assert x.is_cuda and x.tolist() == [[9, 2], [3, 4]]


def test_indexing() -> None:
    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    assert x[x > 2].tolist() == [3, 4, 5] and x[[1, 0]][:, 0].tolist() == [3, 0]
    assert x[lt.tensor([1])].tolist() == [[3, 4, 5]]  # an index on the CPU
    assert x[gpu(0, 1), gpu(2, 0)].tolist() == [2, 3] and x[..., None].shape == (2, 3, 1)
    x[x > 3] = 0
    x[gpu(0), 1] = lt.tensor(7.0)
    assert x.tolist() == [[0, 7, 2], [3, 0, 0]] and x.nonzero().tolist() == [[0, 1], [0, 2], [1, 0]]
    with pytest.raises(IndexError, match="out of bounds"):
        x[5]
    with pytest.raises(IndexError):
        x[gpu(0, 9)]


def test_devices_do_not_mix() -> None:
    x, y = gpu(1.0, 2.0), lt.tensor([1.0, 2.0])
    words = "Expected all tensors to be on the same device, but found at least two devices, "
    for call in (lambda: x + y, lambda: lt.where(x > 0, x, y), lambda: lt.cat([x, y]), lambda: x.copysign(y)):
        with pytest.raises(RuntimeError, match=words + "cuda:0 and cpu!"):
            call()
    with pytest.raises(RuntimeError, match=words + "cpu and cuda:0!"):
        y @ x
    with pytest.raises(RuntimeError, match=words + "cuda:0 and cuda:1!"):
        x + x.to("cuda:1")
    with pytest.raises(RuntimeError, match=words):
        nn.functional.linear(lt.ones(1, 2, device="cuda"), lt.ones(3, 2))
    with pytest.raises(RuntimeError, match=words):
        x += y
    assert (x + lt.tensor(1.0)).tolist() == [2, 3] and (lt.tensor(2.0) * x).device == x.device
    assert (x + lt.tensor(1.0, dtype=lt.float64)).dtype is lt.float32
    lengths = [lt.tensor([5, 4]), lt.tensor([2, 1])]
    scores, words = lt.ones(5, 2, 4).log_softmax(-1), lt.tensor([[1, 2], [1, 1]])
    loss = nn.functional.ctc_loss(scores.cuda(), words.cuda(), lengths[0], target_lengths=lengths[1])
    lt.testing.assert_close(loss.cpu(), nn.functional.ctc_loss(scores, words, *lengths))
    x += lt.tensor(1.0)
    y.copy_(x)
    assert y.tolist() == x.tolist() == [2, 3]


# -- autograd, modules, optimizers ------------------------------------------------------------------------------


def test_gradients_live_on_the_device() -> None:
    x = gpu(1.0, 2.0, 3.0, requires_grad=True)
    scale = lt.tensor(2.0, requires_grad=True)
    y = (x * scale).exp()[1:].sum() + x[0] * 3
    y.backward()
    assert x.grad.is_cuda and scale.grad.device.type == "cpu"
    wanted = lt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ((wanted * 2.0).exp()[1:].sum() + wanted[0] * 3).backward()
    lt.testing.assert_close(x.grad.cpu(), wanted.grad)
    z = x.detach().cpu().requires_grad_()
    (z.cuda() ** 2).sum().backward()
    assert z.grad.tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.add_(1)


def train(device: str) -> list[float]:
    lt.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3)).to(device)
    adam = optim.AdamW(model.parameters(), lr=0.05)
    lt.manual_seed(1)
    x = lt.randn(16, 4).to(device)
    target = (x[:, 0] > 0).long()
    losses = []
    for _ in range(4):
        adam.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert all(t.device.type == device for s in adam.state.values() for t in s.values())
    return losses


def test_training_is_the_same() -> None:
    np.testing.assert_allclose(train("cuda"), train("cpu"), rtol=1e-5)


def test_state_is_kept_and_restored(tmp_path: Path) -> None:
    model = nn.Linear(2, 3).cuda()
    assert model.weight.is_cuda and model.to("cpu").weight.device.type == "cpu" and model.cuda(1).bias.get_device() == 1
    adam = optim.Adam(model.parameters())
    model(lt.ones(1, 2, device="cuda:1")).sum().backward()
    adam.step()
    save({"model": model.state_dict(), "optim": adam.state_dict()}, tmp_path / "state")
    there = load(tmp_path / "state")
    here = load(tmp_path / "state", map_location="cpu")
    assert str(there["model"]["weight"].device) == "cuda:1" and here["model"]["weight"].device.type == "cpu"
    assert load(tmp_path / "state", {"cuda:1": "cuda:0"})["model"]["bias"].get_device() == 0
    assert load(tmp_path / "state", lambda t, where: t)["model"]["bias"].device.type == "cpu"
    model.load_state_dict(here["model"])
    adam.load_state_dict(here["optim"])
    assert model.weight.get_device() == 1 and adam.state[model.weight]["exp_avg"].get_device() == 1


def test_copies_and_pickles() -> None:
    x = gpu(1.0, 2.0, requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (
            twin.device == x.device
            and twin.tolist() == [1, 2]
            and twin.requires_grad
            and twin.data_ptr() != x.data_ptr()
        )


def test_double_backward_and_in_place_history() -> None:
    x = gpu(2.0, 3.0, requires_grad=True)
    y = x * 1
    y[0] *= 5
    (first,) = lt.autograd.grad((y**2).sum(), x, create_graph=True)
    assert first.tolist() == [100, 6]
    first.sum().backward()
    assert x.grad.tolist() == [50, 2]


# -- random numbers ---------------------------------------------------------------------------------------------


def test_the_same_numbers_as_on_the_cpu() -> None:
    for draw in (
        lambda device: lt.rand(5, device=device),
        lambda device: lt.randn(3, 2, device=device),
        lambda device: lt.randint(0, 9, (7,), device=device),
        lambda device: lt.randperm(6, device=device),
        lambda device: lt.bernoulli(lt.full((9,), 0.5, device=device)),
        lambda device: lt.multinomial(lt.ones(4, device=device), 2),
        lambda device: nn.functional.dropout(lt.ones(9, device=device), 0.5),
        lambda device: lt.empty(4, device=device).normal_(),
        lambda device: lt.empty(4, device=device).uniform_(-1, 1),
        lambda device: lt.rand_like(lt.ones(3, device=device)),
    ):
        lt.manual_seed(7)
        here, again = draw("cpu"), draw("cpu")
        there, once_more = draw("cuda"), draw("cuda")
        assert there.is_cuda and there.tolist() == here.tolist() and once_more.tolist() == again.tolist()


def test_generators() -> None:
    a, b = lt.Generator("cuda"), lt.Generator("cuda:1")
    a.manual_seed(3), b.manual_seed(3)
    assert lt.rand(4, generator=a, device="cuda").tolist() == lt.rand(4, generator=b, device="cuda:1").tolist()
    assert a.get_state().is_cuda and str(b.device) == "cuda:1"
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        lt.rand(2, generator=lt.Generator(), device="cuda")
    cuda.manual_seed_all(5)
    state = cuda.get_rng_state()
    first = lt.rand(2, device="cuda").tolist()
    cuda.set_rng_state(state)
    assert lt.rand(2, device="cuda").tolist() == first and cuda.initial_seed() == 5
    assert len(cuda.get_rng_state_all()) == 2


# -- mixed precision ----------------------------------------------------------------------------------------------


def test_autocast_is_about_one_kind_of_device() -> None:
    x, y = lt.ones(2, 2, device="cuda"), lt.ones(2, 2)
    with lt.autocast("cuda"):
        assert (x @ x).dtype is lt.float16 and (y @ y).dtype is lt.float32 and lt.is_autocast_enabled("cuda")
        with lt.autocast("cpu", enabled=False):
            assert (x @ x).dtype is lt.float16
        with lt.autocast("cuda", enabled=False):
            assert (x @ x).dtype is lt.float32
    with lt.autocast("cuda", dtype=lt.bfloat16):
        assert (x @ x).dtype is lt.bfloat16 and lt.get_autocast_dtype("cuda") is lt.bfloat16
    with lt.autocast("cpu"):
        assert (x @ x).dtype is lt.float32 and not lt.is_autocast_enabled("cuda")
    assert not lt.is_autocast_enabled("cuda") and lt.get_autocast_dtype("cuda") is lt.float16


def test_losses_are_scaled_for_float16() -> None:
    weight = gpu(1.0, 1.0, requires_grad=True)
    sgd = optim.SGD([weight], lr=1.0)
    scaler = lt.amp.GradScaler("cuda", init_scale=4.0, growth_interval=2)
    for steps, factor in ((1, 1.0), (2, float("inf")), (3, 1.0), (4, 1.0)):
        sgd.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        want = {1: (4.0, 0.0), 2: (2.0, 0.0), 3: (2.0, -1.0), 4: (4.0, -2.0)}[steps]
        assert (scaler.get_scale(), weight[0].item()) == want
    twin = lt.amp.GradScaler("cuda")
    twin.load_state_dict(scaler.state_dict())
    assert twin.get_scale() == 4.0 and not lt.amp.GradScaler().is_enabled()
    scaler.unscale_(sgd)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(sgd)


def test_checkpoint_draws_the_same_numbers_again() -> None:
    def drop(x: Any) -> Any:
        return nn.functional.dropout(x * 2, 0.5)

    x = lt.ones(32, device="cuda", requires_grad=True)
    cuda.manual_seed_all(3)
    out = lt.utils.checkpoint.checkpoint(drop, x)
    lt.rand(3, device="cuda")
    out.sum().backward()
    assert x.grad.tolist() == (out.detach() != 0).mul(4.0).tolist()


def test_memory_seen_with_other_strides() -> None:
    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    y = x[:, 1:].as_strided((2, 2), (3, 1), 0)
    y += 10
    assert x.tolist() == [[10, 11, 2], [13, 14, 5]] and y.storage is x.storage
    with pytest.raises(RuntimeError, match=r"out of bounds|need"):
        x.as_strided((4, 4), (4, 1))
    z = lt.arange(3.0, device="cuda", requires_grad=True)
    square = (z[:, None] * z).clone()
    square.diagonal().mul_(0)
    square.sum().backward()
    assert z.grad.tolist() == [6.0, 4.0, 2.0]
