"""Sums by index in a certain order, which ``use_deterministic_algorithms`` asks for on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = cuda.use_provider(StubProvider())
    lt.use_deterministic_algorithms(True)
    yield
    lt.use_deterministic_algorithms(False)
    cuda.use_provider(before)


@pytest.mark.parametrize("dtype", [lt.float32, lt.float64, lt.bfloat16, lt.float16, lt.complex64, lt.int64], ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 300])
def test_index_add_is_the_cpus(dtype: lt.dtype, count: int) -> None:
    lt.manual_seed(count)
    index, source = lt.randint(0, 5, (count,)), lt.randint(-4, 5, (count, 3)).to(dtype)
    start = lt.randint(-4, 5, (6, 3)).to(dtype)
    got = start.cuda().index_add(0, index.cuda(), source.cuda())
    lt.testing.assert_close(got.cpu(), start.index_add(0, index, source))


def test_scatters_and_gradients_are_the_cpus() -> None:
    lt.manual_seed(0)
    x, index, source = lt.randn(5, 8), lt.randint(0, 5, (9, 8)), lt.randn(9, 8)
    for call in (
        lambda x, i, s: x.scatter_add(0, i, s), lambda x, i, s: x.t().scatter_add(1, i.t(), s.t()),
        lambda x, i, s: x.scatter_reduce(0, i, s, "mean"), lambda x, i, s: x.index_put((i[:, 0],), s, accumulate=True),
        lambda x, i, s: x.index_put((i[:, 0], i[:, 1]), s[:, 0], accumulate=True),
    ):  # fmt: skip
        lt.testing.assert_close(call(x.cuda(), index.cuda(), source.cuda()).cpu(), call(x, index, source))
    here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
    here[index[:, 0]].sin().sum().backward()
    there[index[:, 0].cuda()].sin().sum().backward()
    lt.testing.assert_close(there.grad.cpu(), here.grad)


def test_the_order_is_that_of_the_terms() -> None:
    big = lt.tensor([1e8, 1.0, -1e8, 1.0, 3.0], device="cuda")
    assert lt.zeros(1, device="cuda").index_add(0, lt.zeros(5, dtype=lt.int64, device="cuda"), big).item() == 3.0


def test_a_graph_cannot_capture_them() -> None:
    graph = cuda.CUDAGraph()
    index = lt.zeros(5, dtype=lt.int64, device="cuda")
    with pytest.raises(RuntimeError, match="in deterministic mode; a graph cannot capture them"), cuda.graph(graph):
        lt.zeros(1, device="cuda").index_add(0, index, lt.ones(5, device="cuda"))
