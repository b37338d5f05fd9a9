"""Older spellings of programs for GPUs: numbers as devices, names of tensor types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    before = cuda.use_provider(StubProvider(devices=2))
    yield
    lt.set_default_device(None)
    cuda.use_provider(before)


def test_a_number_is_a_gpu() -> None:
    assert lt.device(1) == lt.device("cuda:1") == lt.device("cuda", 1) and lt.ones(2, device=1).get_device() == 1
    assert lt.nn.Linear(2, 2).to(1).weight.get_device() == 1 and lt.Generator(1).device.index == 1
    with pytest.raises(TypeError, match="got bool: True"):
        lt.device(True)
    with pytest.raises(ValueError, match="numbered from 0"):
        lt.device(-1)


def test_types_are_of_a_kind_of_device() -> None:
    x, y = lt.ones(2, device="cuda"), lt.ones(2)
    assert x.type() == "lamina.cuda.FloatTensor" and y.type() == "lamina.FloatTensor"
    assert isinstance(x, cuda.FloatTensor) and not isinstance(x, lt.FloatTensor) and isinstance(y, lt.FloatTensor)
    assert not isinstance(x, cuda.HalfTensor) and cuda.FloatTensor is cuda.FloatTensor
    assert y.type("torch.cuda.HalfTensor").type() == "lamina.cuda.HalfTensor" and x.type(lt.LongTensor).is_cuda is False
    assert (
        y.type(cuda.LongTensor).is_cuda and x.type(lt.int32).is_cuda and x.type("torch.FloatTensor").tolist() == [1, 1]
    )
    made = cuda.LongTensor([1, 2])
    assert made.is_cuda and made.tolist() == [1, 2] and cuda.FloatTensor(2, 3).shape == (2, 3)
    with pytest.raises(TypeError, match="wants a tensor of float32 on cuda"):
        cuda.FloatTensor(y)
    with pytest.raises(AttributeError, match="NoTensor"):
        cuda.NoTensor  # noqa: B018


def test_the_default_type_is_a_place_too() -> None:
    lt.set_default_tensor_type("torch.cuda.FloatTensor")
    assert lt.ones(2).is_cuda
    lt.set_default_tensor_type(lt.FloatTensor)
    assert not lt.ones(2).is_cuda


def test_random_numbers_inside_do_not_count() -> None:
    lt.manual_seed(3)
    want = (lt.rand(2).tolist(), lt.rand(2, device="cuda").tolist())
    lt.manual_seed(3)
    with lt.random.fork_rng():
        assert (lt.rand(2).tolist(), lt.rand(2, device="cuda").tolist()) == want
    with lt.random.fork_rng(devices=["cuda:0"]):
        lt.rand(9), lt.rand(9, device="cuda")
    assert (lt.rand(2).tolist(), lt.rand(2, device="cuda").tolist()) == want
    with lt.random.fork_rng(enabled=False):
        lt.rand(2)


def test_older_names() -> None:
    x = lt.ones(1 << 10, device="cuda")
    del x
    cuda.reset_max_memory_allocated()
    assert cuda.max_memory_allocated() == cuda.memory_allocated() and cuda.is_tf32_supported()
    side = cuda.Stream()
    assert cuda.get_stream_from_external(side.cuda_stream) == side


def test_streams_say_their_priority() -> None:
    assert cuda.Stream(priority=-1).priority == -1 and cuda.Stream().priority == 0
