"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Sizes = int | Sequence[int]


def _tuple(value: Sizes, rank: int, name: str) -> tuple[int, ...]:
    result = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(result) != rank:
        raise ValueError(f"{name} must be an int or {rank} ints, got {value!r}")
    return result


class _Convolution(Module):
    _rank = 0
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} ({channels}) must be divisible by groups ({groups})")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"unknown padding_mode {padding_mode!r}")
        rank = self._rank
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = _tuple(kernel_size, rank, "kernel_size")
        self.stride = _tuple(stride, rank, "stride")
        self.dilation = _tuple(dilation, rank, "dilation")
        self.padding = padding if isinstance(padding, str) else _tuple(padding, rank, "padding")
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(root.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(root.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C_in, *) -> (N, C_out, *)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._both_sides(), mode=self.padding_mode)
            padding = (0,) * self._rank
        function = getattr(F, f"conv{self._rank}d")
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _both_sides(self) -> list[int]:
        amounts: list[int] = []
        for k in reversed(range(self._rank)):
            if self.padding == "valid":
                amounts += [0, 0]
            elif self.padding == "same":
                total = self.dilation[k] * (self.kernel_size[k] - 1)
                amounts += [total // 2, total - total // 2]
            else:
                amounts += [self.padding[k]] * 2  # type: ignore[list-item]
        return amounts

    def extra_repr(self) -> str:
        """Sizes and options that are not the default."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding not in ((0,) * self._rank, "valid"):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._rank:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(_Convolution):
    """(N, C_in, L) -> (N, C_out, L_out)."""

    _rank = 1


class Conv2d(_Convolution):
    """(N, C_in, H, W) -> (N, C_out, H_out, W_out)."""

    _rank = 2


class Conv3d(_Convolution):
    """(N, C_in, D, H, W) -> (N, C_out, D_out, H_out, W_out)."""

    _rank = 3


class _ConvolutionTranspose(_Convolution):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"only 'zeros' padding mode is supported for {type(self).__name__}")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, "zeros", device, dtype
        )
        self.output_padding = _tuple(output_padding, self._rank, "output_padding")

    def forward(self, input: Tensor) -> Tensor:
        """(N, C_in, *) -> (N, C_out, *)."""
        function = getattr(F, f"conv_transpose{self._rank}d")
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvolutionTranspose):
    """The gradient of Conv1d by its input, as a layer."""

    _rank = 1


class ConvTranspose2d(_ConvolutionTranspose):
    """The gradient of Conv2d by its input, as a layer."""

    _rank = 2


class ConvTranspose3d(_ConvolutionTranspose):
    """The gradient of Conv3d by its input, as a layer."""

    _rank = 3
