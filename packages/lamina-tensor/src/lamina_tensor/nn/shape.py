"""Layers that only move, pad or resample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "Flatten", "Fold", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Unflatten", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class Flatten(Module):
    """Merges the dimensions start_dim .. end_dim."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(N, *) -> (N, product)."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension into several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Split dimension ``dim``."""
        return input.unflatten(self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """(N, C r^2, H, W) -> (N, C, H r, W r). Source: W. Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Depth to space."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """(N, C, H r, W r) -> (N, C r^2, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Space to depth."""
        return F.pixel_unshuffle(input, self.downscale_factor)


class Upsample(Module):
    """Resamples (N, C, *) to a size or by a factor."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *)."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with the nearest pixel."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` between the corners' pixels, bilinear."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class ChannelShuffle(Module):
    """Interleaves groups of channels of (N, C, *). Source: X. Zhang et al. 2018."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> same."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Number of groups."""
        return f"groups={self.groups}"


class _Pad(Module):
    _mode, _rank = "constant", 1

    def __init__(self, padding: int | Sequence[int], value: float = 0.0) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._rank) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Pad the last dimensions."""
        if self._mode == "constant":
            return F.pad(input, self.padding, value=self.value)
        return F.pad(input, self.padding, mode=self._mode)

    def extra_repr(self) -> str:
        """Amounts."""
        return f"{self.padding}"


def _pad(name: str, mode: str, rank: int) -> type[_Pad]:
    doc = f"Pads the last {rank} dimension(s), mode {mode!r}."
    return type(name, (_Pad,), {"_mode": mode, "_rank": rank, "__doc__": doc, "__module__": __name__})


def _pads(name: str, mode: str) -> tuple[type[_Pad], type[_Pad], type[_Pad]]:
    one, two, three = (_pad(f"{name}Pad{rank}d", mode, rank) for rank in (1, 2, 3))
    return one, two, three


ConstantPad1d, ConstantPad2d, ConstantPad3d = _pads("Constant", "constant")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads("Zero", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads("Reflection", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads("Replication", "replicate")
CircularPad1d, CircularPad2d, CircularPad3d = _pads("Circular", "circular")


class Unfold(Module):
    """``nn.functional.unfold`` as a module: sliding blocks as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C * kernel, L)."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """``nn.functional.fold`` as a module: columns added up to an image."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C * kernel, L) -> (N, C, *output_size)."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Sizes."""
        sizes = f"output_size={self.output_size}, kernel_size={self.kernel_size}"
        return f"{sizes}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
