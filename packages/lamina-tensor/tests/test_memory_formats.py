"""``channels_last``: where elements lie, and what stays the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt


def test_channels_last_is_an_order_in_memory() -> None:
    x = lt.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    y = x.to(memory_format=lt.channels_last)
    assert y.shape == x.shape and y.stride() == (60, 1, 15, 3)
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    assert y.is_contiguous(memory_format=lt.channels_last) and not y.is_contiguous()
    assert x.is_contiguous() and not x.is_contiguous(memory_format=lt.channels_last)
    assert y.to(memory_format=lt.channels_last) is y and y.contiguous(memory_format=lt.channels_last) is y
    assert x.contiguous(memory_format=lt.channels_last).stride() == y.stride()
    assert (
        y.contiguous().stride() == x.stride() and x.to(lt.float64, memory_format=lt.channels_last).dtype == lt.float64
    )
    assert (y + 1).stride() == y.stride()


def test_formats_are_for_a_number_of_dimensions() -> None:
    x = lt.zeros(2, 3, 4, 5, 6)
    assert x.to(memory_format=lt.channels_last_3d).stride() == (360, 1, 90, 18, 3)
    assert not x.is_contiguous(memory_format=lt.channels_last)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        x.to(memory_format=lt.channels_last)


def test_gradients_pass() -> None:
    x = lt.ones(1, 2, 2, 2, requires_grad=True)
    (x.contiguous(memory_format=lt.channels_last) * lt.arange(8.0).reshape(1, 2, 2, 2)).sum().backward()
    assert x.grad is not None and x.grad.flatten().tolist() == list(range(8))


def test_modules_change_their_images_alone() -> None:
    model = lt.nn.Sequential(lt.nn.Conv2d(3, 8, 3), lt.nn.BatchNorm2d(8)).to(memory_format=lt.channels_last)
    assert model[0].weight.is_contiguous(memory_format=lt.channels_last)
    assert model[0].bias.is_contiguous() and model[0].weight.is_leaf and model[0].weight.requires_grad


@pytest.mark.parametrize("which", ["input", "weight", "both", "neither"])
def test_convolutions_keep_channels_last(which: str) -> None:
    """As PyTorch does: the result has its channels last where the input or the weight has, and so has the gradient."""
    x, w = lt.randn(2, 4, 5, 6), lt.randn(6, 4, 3, 3)
    x = x.to(memory_format=lt.channels_last) if which in ("input", "both") else x
    w = w.to(memory_format=lt.channels_last) if which in ("weight", "both") else w
    x.requires_grad_()
    y = lt.nn.functional.conv2d(x, w, lt.randn(6), padding=1)
    (gradient,) = lt.autograd.grad(y, (x,), lt.ones(y.shape))
    last = which != "neither"
    assert y.stride() == ((180, 1, 36, 6) if last else (180, 30, 6, 1))
    assert gradient.stride() == ((120, 1, 24, 4) if last else (120, 30, 6, 1))


def test_pools_keep_channels_last() -> None:
    F = lt.nn.functional
    x = lt.randn(2, 4, 6, 6).to(memory_format=lt.channels_last)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert values.stride() == indices.stride() == (36, 1, 12, 4)
    for pooled in (F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3), F.adaptive_max_pool2d(x, 3)):
        assert pooled.stride() == (36, 1, 12, 4)
    assert F.adaptive_avg_pool2d(x, 4).stride() == (64, 1, 16, 4)
    np.testing.assert_allclose(F.avg_pool2d(x, 2).numpy(), F.avg_pool2d(x.contiguous(), 2).numpy(), rtol=1e-6)
    assert F.max_pool2d(x.contiguous(), 2).stride() == (36, 9, 3, 1)


@pytest.mark.parametrize(
    ("mode", "antialias"), [("nearest", False), ("bilinear", False), ("bicubic", True), ("area", False)]
)
def test_resizing_keeps_the_channels_last(mode: str, antialias: bool) -> None:
    F = lt.nn.functional
    x = lt.rand(2, 3, 5, 6).contiguous(memory_format=lt.channels_last)
    got = F.interpolate(x, (7, 4), mode=mode, antialias=antialias)
    assert got.is_contiguous(memory_format=lt.channels_last) and got.shape == (2, 3, 7, 4)
    plain = F.interpolate(x.contiguous(), (7, 4), mode=mode, antialias=antialias)
    assert plain.is_contiguous() and plain.tolist() == got.tolist()


def test_one_channel_or_one_element_leaves_the_format_open() -> None:
    """Strides decide, as in PyTorch: of (N, C, 1, 1) with dense channels, and of channels cut out of more."""
    F = lt.nn.functional
    dots = lt.randn(2, 4, 1, 1).as_strided((2, 4, 1, 1), (4, 1, 4, 4))
    assert F.conv2d(dots, lt.randn(3, 4, 1, 1)).stride() == (3, 1, 3, 3)
    assert F.conv2d(lt.randn(2, 4, 1, 1), lt.randn(3, 4, 1, 1)).stride() == (3, 1, 1, 1)
    some = lt.randn(2, 8, 5, 6).to(memory_format=lt.channels_last)[:, :4]
    assert F.conv2d(some, lt.randn(6, 4, 3, 3)).stride() == (72, 1, 24, 6)
    volume = lt.randn(2, 4, 5, 6, 3).to(memory_format=lt.channels_last_3d)
    assert F.conv3d(volume, lt.randn(2, 4, 2, 2, 2)).stride() == (80, 1, 20, 4, 2)
    assert F.conv_transpose2d(some, lt.randn(4, 3, 2, 2)).stride() == (126, 1, 21, 3)


@pytest.mark.parametrize("dtype", [lt.float32, lt.float64])
@pytest.mark.parametrize(
    "view", [lambda x: x.permute(2, 0, 1), lambda x: x[:, ::2].transpose(0, 2), lambda x: x[:1].expand(5, 3, 4)]
)
def test_an_operator_with_a_kernel_of_its_own_keeps_the_layout(view: Any, dtype: Any) -> None:
    x = view(lt.linspace(-2, 2, 24, dtype=dtype).reshape(2, 3, 4))
    got = lt.erf(x)
    assert got.stride() == x.exp().stride()
    np.testing.assert_allclose(got.flatten().tolist(), [math.erf(n) for n in x.flatten().tolist()], atol=1e-6)


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: x.clone(),
        lambda x: x.exp(),
        lambda x: x.double(),
        lt.erf,
    ],
)
def test_expanded_dimensions_stay_where_they_are(operator: Any) -> None:
    x = lt.arange(300.0).reshape(5, 4, 5, 3).permute(3, 2, 0, 1).expand(2, 3, 5, 5, 4)
    assert operator(x).stride() == (300, 1, 3, 60, 15)  # PyTorch's
