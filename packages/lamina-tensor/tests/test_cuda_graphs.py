"""CUDA graphs that users capture, on the stub device: shared memory, errors inside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def stub() -> Iterator[StubProvider]:
    provider = StubProvider()
    before = cuda.use_provider(provider)
    yield provider
    cuda.use_provider(before)


def test_an_error_inside_is_the_one_that_is_raised_and_the_device_goes_on() -> None:
    x, failed = lt.ones(3, device="cuda"), cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), cuda.graph(failed):
        _ = x * (1 // 0)
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="capture into the graph first"):
        failed.replay()
    with cuda.graph(failed):
        y = x * 2
    x.copy_(x * 5)
    failed.replay()
    assert y.tolist() == [10, 10, 10]


@pytest.mark.parametrize("ask", [lambda x: x.item(), lambda x: x.cpu(), lambda x: x.tolist(), lambda x: bool(x > 1)])
def test_looking_at_values_cannot_be_captured(ask: object) -> None:
    x, graph = lt.ones(1, device="cuda"), cuda.CUDAGraph()
    words = "a CUDA graph is being captured: values cannot be copied to the host"
    with pytest.raises(RuntimeError, match=words), cuda.graph(graph):
        ask(x)  # type: ignore[operator]
    assert x.item() == 1


def test_waiting_cannot_be_captured() -> None:
    words = "a CUDA graph is being captured: the host cannot wait"
    with pytest.raises(RuntimeError, match=words), cuda.graph(cuda.CUDAGraph()):
        cuda.synchronize()
    cuda.synchronize()


def test_graphs_share_a_pool() -> None:
    x, first, second = lt.ones(4, device="cuda"), cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(first):
        y = x + 1
    with cuda.graph(second, pool=first.pool()):
        z = y * 2
    assert second.pool() is first.pool() and cuda.CUDAGraph().pool() is not first.pool()
    x.copy_(x * 3)
    first.replay()
    second.replay()
    assert z.tolist() == [8, 8, 8, 8]
    first.reset()
    assert second.pool() is not first.pool()
