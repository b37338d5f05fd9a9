"""Sliding windows and their adjoint: the two primitives beneath pooling, unfold and fold.

``sliding_window`` is an index map (out[..., o, ..., k] = in[..., o * step + k * dilation, ...]); ``overlap_add`` adds
windows up where they came from. Each is the other's derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import array_namespace
from ..dims import canonical_dim
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__ = ["each", "fold", "overlap_add", "padded", "sliding_window", "unfold", "window_view"]

Ints = Sequence[int]


def each(name: str, value: Any, count: int, what: str) -> tuple[int, ...]:
    """One number for each of ``count`` dimensions; a single one counts for all.

    Raises:
        RuntimeError: another number of them.
    """
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return tuple(value) * count
        if len(value) != count:
            raise RuntimeError(f"{name}: {what} must be an int or {count} ints, got {tuple(value)}")
        return tuple(value)
    return (value,) * count


def padded(value: Tensor, widths: Ints, fill: float = 0) -> Tensor:
    """Constant padding, written as PyTorch does: pairs (before, after), the last dimension first."""
    rank = len(value.shape)
    low, high = [0] * rank, [0] * rank
    for i in range(len(widths) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = widths[2 * i], widths[2 * i + 1]
    return ops.pad(value, tuple(low), tuple(high), fill)


def _window_meta(input: Tensor, dims: Ints, size: Ints, step: Ints, dilation: Ints) -> TensorSpec:
    shape = list(input.shape)
    for d, k, s, w in zip(dims, size, step, dilation, strict=True):
        have = shape[canonical_dim("sliding_window", d, len(input.shape))]
        reach = w * (k - 1) + 1
        if have < reach:
            raise RuntimeError(f"sliding_window: a window that spans {reach} is larger than dimension {d} of {input}")
        if s < 1:
            raise RuntimeError(f"sliding_window: the step must be positive, got {s}")
        shape[d] = (have - reach) // s + 1
    return TensorSpec((*shape, *size), input.dtype, None, input.device)


def _window(input: Any, dims: Ints, size: Ints, step: Ints, dilation: Ints) -> Any:
    return window_view(input, dims, size, step, dilation).copy()


def window_view(input: Any, dims: Ints, size: Ints, step: Ints, dilation: Ints) -> Any:
    """The same as a NumPy view."""
    xp = array_namespace(input)
    shape, strides = list(input.shape), list(input.strides)
    for d, k, s, w in zip(dims, size, step, dilation, strict=True):
        shape[d] = (shape[d] - (w * (k - 1) + 1)) // s + 1
        shape.append(k)
        strides.append(strides[d] * w)
        strides[d] *= s
    return xp.lib.stride_tricks.as_strided(input, shape, strides)


@primitive(
    meta=_window_meta,
    reference=_window,
    samples=calls(
        call(tensor(2, 7), (1,), (3,), (2,), (1,)),
        call(tensor(2, 6, 7), (1, 2), (2, 3), (1, 2), (2, 1)),
        call(tensor(5, dtype="int64"), (0,), (2,), (1,), (3,)),
    ),
    errors=[error(RuntimeError, "larger", tensor(3), (0,), (4,), (1,), (1,))],
)
def sliding_window(input: Tensor, dims: Ints, size: Ints, step: Ints, dilation: Ints) -> Tensor:
    """Windows along ``dims`` (non-negative, increasing); their elements stand in new dimensions at the end."""
    ...


@sliding_window.vjp
def _(ct, input_spec, dims, step, dilation):
    return (overlap_add(ct, dims, tuple(input_spec.shape[d] for d in dims), step, dilation),)


def _overlap_meta(input: Tensor, dims: Ints, length: Ints, step: Ints, dilation: Ints) -> TensorSpec:
    count = len(dims)
    shape = list(input.shape[: len(input.shape) - count])
    sizes = input.shape[len(input.shape) - count :]
    for d, n, s, w, k in zip(dims, length, step, dilation, sizes, strict=True):
        if (shape[d] - 1) * s + w * (k - 1) + 1 > n:
            raise RuntimeError(f"overlap_add: {shape[d]} windows do not fit into {n} elements at dimension {d}")
        shape[d] = n
    return TensorSpec(shape, input.dtype, None, input.device)


def _overlap(input: Any, dims: Ints, length: Ints, step: Ints, dilation: Ints) -> Any:
    xp = array_namespace(input)
    count = len(dims)
    lead, sizes = input.shape[: input.ndim - count], input.shape[input.ndim - count :]
    shape = list(lead)
    for d, n in zip(dims, length, strict=True):
        shape[d] = n
    wide = xp.float32 if input.dtype.itemsize == 2 and input.dtype.kind not in "iu" else input.dtype
    out = xp.zeros(shape, wide)
    for offsets in xp.ndindex(*sizes):
        where = [slice(None)] * len(lead)
        for d, s, w, o in zip(dims, step, dilation, offsets, strict=True):
            where[d] = slice(o * w, o * w + (lead[d] - 1) * s + 1, s)
        out[tuple(where)] += input[(..., *offsets)]
    return out.astype(input.dtype, copy=False)


@primitive(
    meta=_overlap_meta,
    reference=_overlap,
    samples=calls(
        call(tensor(2, 3, 3), (1,), (8,), (2,), (1,)),
        call(tensor(2, 4, 3, 2, 3), (1, 2), (6, 7), (1, 2), (2, 1)),
        call(tensor(3, 2, dtype="bfloat16"), (0,), (5,), (1,), (2,)),
    ),
    errors=[error(RuntimeError, "do not fit", tensor(3, 2), (0,), (3,), (1,), (1,))],
)
def overlap_add(input: Tensor, dims: Ints, length: Ints, step: Ints, dilation: Ints) -> Tensor:
    """Sum of windows (last dimensions) at their places; ``dims`` get the sizes ``length``."""
    ...


@overlap_add.vjp
def _(ct, input_spec, dims, step, dilation):
    count = len(dims)
    rank = len(input_spec.shape)
    sizes = input_spec.shape[rank - count :]
    windows = sliding_window(ct, dims, sizes, step, dilation)
    for d in dims:
        if windows.shape[d] != input_spec.shape[d]:
            windows = ops.slice(windows, d, 0, input_spec.shape[d])
    return (windows,)


def _blocks(kernel: Any, name: str, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(
        each(name, value, 2, what)
        for value, what in ((kernel, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    )


@composite(
    names=("nn.functional.unfold",),
    samples=calls(call(tensor(2, 3, 5, 6), (2, 3)), call(tensor(1, 2, 5, 5), 2, 2, 1, 2), call(tensor(2, 4, 4), 3)),
    errors=[error(RuntimeError, "3D or 4D", tensor(2, 3), 2)],
)
def unfold(
    input: Tensor,
    kernel_size: int | Ints,
    dilation: int | Ints = 1,
    padding: int | Ints = 0,
    stride: int | Ints = 1,
) -> Tensor:
    """Blocks of an image as columns (im2col): (N, C, H, W) -> (N, C * kh * kw, L); also without N."""
    if len(input.shape) not in (3, 4):
        raise RuntimeError(f"unfold: expected a 3D or 4D input, got {len(input.shape)} dimensions")
    kernel, wide, border, step = _blocks(kernel_size, "unfold", dilation, padding, stride)
    batched = len(input.shape) == 4
    value = input if batched else ops.unsqueeze(input, 0)
    if any(border):
        value = padded(value, (border[1], border[1], border[0], border[0]))
    windows = ops.permute(sliding_window(value, (2, 3), kernel, step, wide), (0, 1, 4, 5, 2, 3))
    n, c, kh, kw, oh, ow = windows.shape
    value = ops.reshape(windows, (n, c * kh * kw, oh * ow))
    return value if batched else ops.squeeze(value, 0)


@composite(
    names=("nn.functional.fold",),
    samples=calls(
        call(tensor(2, 18, 16), (5, 6), (2, 3)), call(tensor(1, 8, 16), (5, 5), 2, 1, 2, 2), call(tensor(9, 4), 4, 3)
    ),
    errors=[error(RuntimeError, "blocks", tensor(1, 8, 5), (5, 5), 2)],
)
def fold(
    input: Tensor,
    output_size: int | Ints,
    kernel_size: int | Ints,
    dilation: int | Ints = 1,
    padding: int | Ints = 0,
    stride: int | Ints = 1,
) -> Tensor:
    """Columns added up to an image (col2im): (N, C * kh * kw, L) -> (N, C, H, W); also without N."""
    kernel, wide, border, step = _blocks(kernel_size, "fold", dilation, padding, stride)
    size = each("fold", output_size, 2, "output_size")
    batched = len(input.shape) == 3
    value = input if batched else ops.unsqueeze(input, 0)
    full = [h + 2 * p for h, p in zip(size, border, strict=True)]
    counts = [(f - w * (k - 1) - 1) // s + 1 for f, w, k, s in zip(full, wide, kernel, step, strict=True)]
    n, columns, length = value.shape
    if columns % (kernel[0] * kernel[1]) or length != counts[0] * counts[1]:
        raise RuntimeError(
            f"fold: expected blocks (N, C * {kernel[0] * kernel[1]}, {counts[0]} * {counts[1]}), "
            f"got {tuple(input.shape)}"
        )
    channels = columns // (kernel[0] * kernel[1])
    blocks = ops.permute(ops.reshape(value, (n, channels, *kernel, *counts)), (0, 1, 4, 5, 2, 3))
    value = overlap_add(blocks, (2, 3), tuple(full), step, wide)
    for dim, (h, p) in enumerate(zip(size, border, strict=True), start=2):
        if p:
            value = ops.slice(value, dim, p, p + h)
    return value if batched else ops.squeeze(value, 0)
