"""The front end's convolutions: conv1d to conv3d and their transposed forms, batched or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .convolution import convolution
from .windows import each, padded

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

Ints = Sequence[int]


def _conv(
    name: str,
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    batched = _batched(name, rank, input)
    step, wide = each(name, stride, rank, "stride"), each(name, dilation, rank, "dilation")
    value = input if batched else ops.unsqueeze(input, 0)
    if isinstance(padding, str):
        value, border = _named_padding(name, value, weight, padding, step, wide)
    else:
        border = each(name, padding, rank, "padding")
    if any(type(p) is int and p < 0 for p in border):
        raise RuntimeError(f"{name}: negative padding is not supported, got {border}")
    out = convolution(value, weight, bias, step, border, wide, False, (0,) * rank, groups)
    return out if batched else ops.squeeze(out, 0)


def _batched(name: str, rank: int, input: Tensor) -> bool:
    if len(input.shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, "
            f"but got input of size: {list(input.shape)}"
        )
    return len(input.shape) == rank + 2


def _named_padding(
    name: str, input: Tensor, weight: Tensor, padding: str, stride: Ints, dilation: Ints
) -> tuple[Tensor, tuple[int, ...]]:
    if padding == "valid":
        return input, (0,) * len(stride)
    if padding != "same":
        raise ValueError(f"{name}: padding must be 'same', 'valid' or numbers, got {padding!r}")
    if any(s != 1 for s in stride):
        raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(t % 2 for t in totals):  # the odd one goes to the end
        widths = [w for t in reversed(totals) for w in (0, t % 2)]
        input = padded(input, widths)
    return input, tuple(t // 2 for t in totals)


def _transposed(
    name: str, rank: int, input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    batched = _batched(name, rank, input)
    step, wide = each(name, stride, rank, "stride"), each(name, dilation, rank, "dilation")
    extra, border = each(name, output_padding, rank, "output_padding"), each(name, padding, rank, "padding")
    if any(e >= max(s, d) for e, s, d in zip(extra, step, wide, strict=True)):
        raise RuntimeError(f"{name}: output padding must be smaller than either stride or dilation, got {extra}")
    value = input if batched else ops.unsqueeze(input, 0)
    out = convolution(value, weight, bias, step, border, wide, True, extra, groups)
    return out if batched else ops.squeeze(out, 0)


@composite(
    names=("nn.functional.conv1d", "conv1d"),
    samples=calls(
        call(tensor(2, 2, 6), tensor(4, 2, 3), tensor(4)),
        call(tensor(2, 6), tensor(4, 2, 3), stride=2, padding=1),
        call(tensor(2, 2, 6), tensor(4, 2, 3), None, 1, "same", 2),
    ),
    errors=[
        error(RuntimeError, "batched", tensor(3), tensor(4, 2, 3)),
        error(RuntimeError, "strided", tensor(2, 2, 6), tensor(4, 2, 3), None, 2, "same"),
    ],
)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints | str = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, L) with (O, C / groups, *kernel); N may be missing.

    ``padding="same"`` keeps the sizes, "valid" is none.
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@composite(
    names=("nn.functional.conv_transpose1d", "conv_transpose1d"),
    samples=calls(
        call(tensor(2, 2, 6), tensor(2, 3, 2), tensor(3)),
        call(tensor(2, 6), tensor(2, 3, 2), None, 2, 1, 1, 1),
    ),
    errors=[error(RuntimeError, "output padding", tensor(2, 2, 6), tensor(2, 3, 2), None, 1, 0, 1)],
)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Tensor:
    """The adjoint of conv1d: (N, C, L) with (C, O / groups, *kernel); N may be missing."""
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(
    names=("nn.functional.conv2d", "conv2d"),
    samples=calls(
        call(tensor(2, 2, 5, 6), tensor(4, 2, 3, 2), tensor(4)),
        call(tensor(2, 5, 6), tensor(4, 2, 3, 2), stride=2, padding=1),
        call(tensor(2, 2, 5, 6), tensor(4, 2, 3, 2), None, 1, "same", 2),
    ),
    errors=[
        error(RuntimeError, "batched", tensor(3), tensor(4, 2, 3, 2)),
        error(RuntimeError, "strided", tensor(2, 2, 5, 6), tensor(4, 2, 3, 2), None, 2, "same"),
    ],
)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints | str = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, H, W) with (O, C / groups, *kernel); N may be missing.

    ``padding="same"`` keeps the sizes, "valid" is none.
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@composite(
    names=("nn.functional.conv_transpose2d", "conv_transpose2d"),
    samples=calls(
        call(tensor(2, 2, 5, 6), tensor(2, 3, 2, 3), tensor(3)),
        call(tensor(2, 5, 6), tensor(2, 3, 2, 3), None, 2, 1, 1, 1),
    ),
    errors=[error(RuntimeError, "output padding", tensor(2, 2, 5, 6), tensor(2, 3, 2, 3), None, 1, 0, 1)],
)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Tensor:
    """The adjoint of conv2d: (N, C, H, W) with (C, O / groups, *kernel); N may be missing."""
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(
    names=("nn.functional.conv3d", "conv3d"),
    samples=calls(
        call(tensor(1, 2, 3, 4, 3), tensor(2, 2, 2, 2, 1), tensor(2)),
        call(tensor(2, 3, 4, 3), tensor(2, 2, 2, 2, 1), stride=2, padding=1),
        call(tensor(1, 2, 3, 4, 3), tensor(2, 2, 2, 2, 1), None, 1, "same", 2),
    ),
    errors=[
        error(RuntimeError, "batched", tensor(3), tensor(2, 2, 2, 2, 1)),
        error(RuntimeError, "strided", tensor(1, 2, 3, 4, 3), tensor(2, 2, 2, 2, 1), None, 2, "same"),
    ],
)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints | str = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, D, H, W) with (O, C / groups, *kernel); N may be missing.

    ``padding="same"`` keeps the sizes, "valid" is none.
    """
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@composite(
    names=("nn.functional.conv_transpose3d", "conv_transpose3d"),
    samples=calls(
        call(tensor(1, 2, 3, 4, 3), tensor(2, 1, 2, 1, 2), tensor(1)),
        call(tensor(2, 3, 4, 3), tensor(2, 1, 2, 1, 2), None, 2, 1, 1, 1),
    ),
    errors=[error(RuntimeError, "output padding", tensor(1, 2, 3, 4, 3), tensor(2, 1, 2, 1, 2), None, 1, 0, 1)],
)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Tensor:
    """The adjoint of conv3d: (N, C, D, H, W) with (C, O / groups, *kernel); N may be missing."""
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)
