"""Pooling layers."""

from __future__ import annotations

from collections.abc import Sequence

from ..tensor import Tensor
from . import functional as F
from .module import Module

Sizes = int | Sequence[int]


class _MaxPool(Module):
    _rank = 0

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *)."""
        function = getattr(F, f"max_pool{self._rank}d")
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    _rank = 0

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *)."""
        function = getattr(F, f"avg_pool{self._rank}d")
        extra = () if self._rank == 1 else (self.divisor_override,)
        return function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *extra
        )

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    _function = ""

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *output_size)."""
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        """Size."""
        return f"output_size={self.output_size}"


def _classes() -> dict[str, type[Module]]:
    made: dict[str, type[Module]] = {}
    for rank in (1, 2, 3):
        for title, base, attributes in (
            ("MaxPool", _MaxPool, {"_rank": rank}),
            ("AvgPool", _AvgPool, {"_rank": rank}),
            ("AdaptiveAvgPool", _AdaptivePool, {"_function": f"adaptive_avg_pool{rank}d"}),
            ("AdaptiveMaxPool", _AdaptivePool, {"_function": f"adaptive_max_pool{rank}d"}),
        ):
            name = f"{title}{rank}d"
            doc = f"{title} over {rank} dimension{'s' * (rank > 1)}."
            made[name] = type(name, (base,), {**attributes, "__doc__": doc, "__module__": __name__})
    return made


_CLASSES = _classes()
globals().update(_CLASSES)
__all__ = [
    *_CLASSES, "FractionalMaxPool2d", "LPPool1d", "LPPool2d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _LPPool(Module):
    _rank = 0

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *)."""
        pool = getattr(F, f"lp_pool{self._rank}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}"


class _MaxUnpool(Module):
    _rank = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Maxima (N, C, *) back to where they were: (N, C, *output_size)."""
        unpool = getattr(F, f"max_unpool{self._rank}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _of_rank(base: type[Module], name: str, rank: int) -> type[Module]:
    doc = f"``nn.functional.{'lp_pool' if base is _LPPool else 'max_unpool'}{rank}d`` as a module."
    return type(f"{name}{rank}d", (base,), {"_rank": rank, "__doc__": doc, "__module__": __name__})


LPPool1d, LPPool2d = _of_rank(_LPPool, "LPPool", 1), _of_rank(_LPPool, "LPPool", 2)
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (_of_rank(_MaxUnpool, "MaxUnpool", rank) for rank in (1, 2, 3))


class FractionalMaxPool2d(Module):
    """``nn.functional.fractional_max_pool2d`` as a module."""

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError("FractionalMaxPool2d requires specifying either an output size, or a pooling ratio")
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, *output_size)."""
        options = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)
        return F.fractional_max_pool2d(input, *options)
