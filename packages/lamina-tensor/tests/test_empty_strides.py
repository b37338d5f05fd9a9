"""Strides of tensors without elements: as if sizes of 0 were 1; views keep those of what they view. As in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

CASES: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda zeros: zeros(0), (1,)),
    (lambda zeros: zeros(0, 3), (3, 1)),
    (lambda zeros: zeros(2, 0, 3), (3, 3, 1)),
    (lambda zeros: zeros(3, 0, 1, 2), (2, 2, 2, 1)),
    (lambda zeros: zeros(0, 3) + 1, (3, 1)),
    (lambda zeros: zeros(2, 0, 3).clone(), (3, 3, 1)),
    (lambda zeros: zeros(0, 3).transpose(0, 1), (1, 3)),
    (lambda zeros: zeros(2, 0, 3).transpose(0, 1).contiguous(), (3, 3, 1)),
    (lambda zeros: zeros(0, 3)[:, 1:], (3, 1)),
    (lambda zeros: zeros(4, 5, 6)[:, 2:2].transpose(0, 1), (6, 30, 1)),
    (lambda zeros: zeros(0, 3).mean(-1, keepdim=True), (1, 1)),
    (lambda zeros: lt.cat([zeros(0, 3), zeros(0, 3)]), (3, 1)),
    (lambda zeros: lt.stack([zeros(2, 0, 3)] * 2), (6, 3, 3, 1)),
    (lambda zeros: zeros(0, 3) @ zeros(3, 4), (4, 1)),
    (lambda zeros: zeros(2, 0, 3).diagonal(), (1, 6)),
    (lambda zeros: zeros(3, 4)[zeros(3, dtype=lt.bool)], (4, 1)),
    (lambda zeros: zeros(0, 3).unsqueeze(0).expand(2, 0, 3), (0, 3, 1)),
]


@pytest.fixture(params=["cpu", "cuda"])
def zeros(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes zeros on a device."""
    before = cuda.use_provider(StubProvider())
    yield partial(lt.zeros, device=request.param)
    cuda.use_provider(before)


@pytest.mark.parametrize(("make", "strides"), CASES)
def test_strides(make: Callable[[Any], Any], strides: tuple[int, ...], zeros: Callable[..., Any]) -> None:
    assert make(zeros).stride() == strides


def test_strides_go_along_to_a_device(zeros: Callable[..., Any]) -> None:
    for x in (zeros(2, 0, 3), zeros(0, 3).t()):
        assert x.cpu().stride() == x.cuda().stride() == x.stride()


def test_an_expanded_tensor_without_elements_may_be_written() -> None:
    expanded = lt.zeros(1, 0).expand(3, 0)
    assert expanded.add_(1).shape == (3, 0)
    assert expanded.copy_(lt.ones(3, 0)).shape == (3, 0)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        lt.zeros(1, 2).expand(3, 2).add_(1)
