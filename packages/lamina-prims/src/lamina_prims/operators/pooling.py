"""Pooling: maxima, averages and power means of windows, regular and adaptive.

A window is an index map (``sliding_window``), so pooling is one fused reduction. A maximum's gradient goes to the
first largest element of its window, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..along import along, positions
from ..arrays import element_type
from ..memory_formats import in_format_of
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, tensor
from ..types import Tensor
from .windows import each, overlap_add, padded, sliding_window

__all__ = ["avg_pool", "max_pool", "max_pool_offsets"]

Ints = Sequence[int]


def _lowest(input: Tensor) -> Any:
    dtype = element_type(input)
    if dtype.kind == "float":
        return -math.inf
    return -(2 ** (8 * dtype.itemsize - 1)) if dtype.is_signed else 0


def _extra(size: Any, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool, name: str) -> Any:
    """How much must be added at the end (beyond the padding) so that every window is whole."""
    reach = dilation * (kernel - 1) + 1
    if 2 * padding > kernel:
        raise RuntimeError(
            f"{name}: pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel}"
        )
    room = size + 2 * padding - reach
    if room < 0:
        raise RuntimeError(f"{name}: the window of {reach} is larger than the padded input of {size + 2 * padding}")
    if not ceil_mode:
        return 0
    count = -(-room // stride) + 1
    if (count - 1) * stride >= size + padding:  # the last window would start in the padding at the end
        count = count - 1
    return max((count - 1) * stride - room, 0)


def _window_arguments(
    name: str, rank: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, ...]:
    kernel = each(name, kernel_size, rank, "kernel_size")
    step = kernel if stride is None or stride == [] or stride == () else each(name, stride, rank, "stride")
    border, wide = each(name, padding, rank, "padding"), each(name, dilation, rank, "dilation")
    ndim = len(input.shape)
    if ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}: Expected {rank + 1}D or {rank + 2}D input, got {ndim} dimensions")
    sizes = input.shape[ndim - rank :]
    ends = tuple(
        _extra(h, k, s, p, d, ceil_mode, name) for h, k, s, p, d in zip(sizes, kernel, step, border, wide, strict=True)
    )
    return kernel, step, border, wide, ends


def _padded(input: Tensor, border: Ints, ends: Any, value: Any) -> Tensor:
    widths = [w for p, e in zip(reversed(border), reversed(ends), strict=True) for w in (p, p + e)]
    return input if all(type(w) is int and w == 0 for w in widths) else padded(input, widths, value)


@composite(
    samples=calls(
        call(tensor(2, 6, kind="distinct"), (3,), (2,), (1,), (1,), (1,)),
        call(tensor(1, 2, 5, 6, kind="distinct"), (2, 3), (1, 2), (0, 1), (2, 1), (0, 0)),
    )
)
def max_pool_offsets(
    input: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ends: Ints
) -> tuple[Tensor, Tensor]:
    """(maxima of the windows of the last dimensions, int64 place of the first largest element in its window)."""
    rank, ndim = len(kernel), len(input.shape)
    dims = tuple(range(ndim - rank, ndim))
    windows = sliding_window(_padded(input, padding, ends, _lowest(input)), dims, kernel, stride, dilation)
    flat = ops.reshape(windows, (*windows.shape[:ndim], math.prod(kernel)))
    return ops.amax(flat, -1), ops.argmax(flat, -1)


@max_pool_offsets.vjp
def _(ct, out, input_spec, kernel, stride, padding, dilation, ends):
    rank, ndim = len(kernel), len(input_spec.shape)
    dims = tuple(range(ndim - rank, ndim))
    count = math.prod(kernel)
    place = ops.arange(count, device=ct[0].device)
    chosen = ops.where(ops.eq(ops.unsqueeze(out[1], -1), place), ops.unsqueeze(ct[0], -1), 0.0)
    chosen = ops.reshape(chosen, (*out[1].shape, *kernel))
    sizes = input_spec.shape[ndim - rank :]
    length = tuple(h + 2 * p + e for h, p, e in zip(sizes, padding, ends, strict=True))
    whole = overlap_add(chosen, dims, length, stride, dilation)
    for d, h, p, n in zip(dims, sizes, padding, length, strict=True):
        if n is not h and n != h:
            whole = ops.slice(whole, d, p, p + h)
    return (whole,)


def _plane_indices(offsets: Tensor, sizes: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """Flat positions in the input plane of elements given by their places in the windows."""
    rank = len(kernel)
    ndim = len(offsets.shape)
    flat: Any = None
    rest = math.prod(kernel)
    for d in range(rank):
        rest //= kernel[d]
        within = ops.remainder(ops.floor_divide(offsets, rest), kernel[d])
        start = ops.add(ops.mul(positions(offsets, ndim - rank + d), stride[d]), -padding[d])
        position = ops.add(ops.mul(within, dilation[d]), start)
        flat = position if flat is None else ops.add(ops.mul(flat, sizes[d]), position)
    return flat


def max_pool(
    name: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Maxima of windows of the last ``rank`` dimensions, and their flat positions when asked for."""
    kernel, step, border, wide, ends = _window_arguments(
        name, rank, input, kernel_size, stride, padding, dilation, ceil_mode
    )
    values, offsets = max_pool_offsets(input, kernel, step, border, wide, ends)
    values = in_format_of(input, values)
    if not return_indices:
        return values
    indices = _plane_indices(offsets, input.shape[len(input.shape) - rank :], kernel, step, border, wide)
    return values, in_format_of(input, indices)


def avg_pool(
    name: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Tensor:
    """Averages of windows of the last ``rank`` dimensions."""
    total, count = _window_sums(
        name, rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return in_format_of(input, ops.div(total, count))


def _window_sums(
    name: str,
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> tuple[Tensor, Any]:
    """(sums of windows, what they are divided by)."""
    kernel, step, border, _, ends = _window_arguments(name, rank, input, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override is not None and divisor_override == 0:
        raise RuntimeError(f"{name}: divisor must be not zero")
    ndim = len(input.shape)
    dims = tuple(range(ndim - rank, ndim))
    ones = (1,) * rank
    total = ops.sum(
        sliding_window(_padded(input, border, ends, 0), dims, kernel, step, ones), tuple(range(ndim, ndim + rank))
    )
    if divisor_override is not None:
        return total, divisor_override
    skips = any(border) and not count_include_pad
    if not skips and all(type(e) is int and e == 0 for e in ends):
        return total, math.prod(kernel)
    return total, _counts(input, dims, kernel, step, border, ends, count_include_pad)


def _counts(input: Tensor, dims: Ints, kernel: Ints, step: Ints, border: Ints, ends: Any, with_pad: bool) -> Tensor:
    """How many elements each window averages over: those of the input, with or without its padding."""
    counts: Any = None
    for i, (d, k, s, p, e) in enumerate(zip(dims, kernel, step, border, ends, strict=True)):
        size = input.shape[d]
        ones = ops.full((size + 2 * p if with_pad else size,), 1.0, dtype=_float(input), device=input.device)
        ones = padded(ones, (0, e) if with_pad else (p, p + e))
        count = ops.sum(sliding_window(ones, (0,), (k,), (s,), (1,)), 1)
        count = along(count, i, len(dims))
        counts = count if counts is None else ops.mul(counts, count)
    return counts


def _float(input: Tensor) -> Any:
    from lamina_fx import float32

    dtype = element_type(input)
    return dtype if dtype.kind == "float" else float32


def lp_pool(
    name: str, rank: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    """(sum of x**norm_type over windows) ** (1 / norm_type)."""
    kernel = each(name, kernel_size, rank, "kernel_size")
    mean = avg_pool(name, rank, ops.pow(input, norm_type), kernel, stride, 0, ceil_mode, True, None)
    return ops.pow(ops.mul(mean, math.prod(kernel)), 1.0 / norm_type)


# -- adaptive ---------------------------------------------------------------------------------------


def _regular(size: Any, wanted: Any) -> bool:
    return type(size) is int and type(wanted) is int and wanted > 0 and size % wanted == 0


def _bins(size: Any, count: Any, input: Tensor) -> tuple[Tensor, Tensor]:
    """bool[count, size]: does bin i hold element j (from floor(i size / count) to ceil((i + 1) size / count)); and
    int64[count]: how many it holds."""

    index = ops.unsqueeze(ops.arange(count, device=input.device), 1)
    element = ops.arange(size, device=input.device)
    start = ops.floor_divide(ops.mul(index, size), count)
    end = ops.floor_divide(ops.add(ops.mul(ops.add(index, 1), size), count - 1), count)
    return ops.logical_and(ops.ge(element, start), ops.lt(element, end)), ops.squeeze(ops.sub(end, start), 1)


def _last(input: Tensor, dim: int) -> Tensor:

    return input if dim == len(input.shape) - 1 else ops.movedim(input, dim, -1)


def _adaptive_sizes(name: str, rank: int, input: Tensor, output_size: Any) -> tuple[Any, ...]:
    ndim = len(input.shape)
    if ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}: Expected {rank + 1}D or {rank + 2}D input, got {ndim} dimensions")
    have = input.shape[ndim - rank :]
    wanted = each(name, output_size, rank, "output_size")
    return tuple(h if w is None else w for h, w in zip(have, wanted, strict=True))


def adaptive_avg(name: str, rank: int, input: Tensor, output_size: Any) -> Tensor:
    """Averages of bins that divide the last ``rank`` dimensions evenly."""

    wanted = _adaptive_sizes(name, rank, input, output_size)
    ndim = len(input.shape)
    sizes = input.shape[ndim - rank :]
    if all(_regular(h, w) for h, w in zip(sizes, wanted, strict=True)):
        kernel = tuple(h // w for h, w in zip(sizes, wanted, strict=True))
        return avg_pool(name, rank, input, kernel, None, 0, False, True, None)
    value = widen(input)
    for dim, count in zip(range(ndim - rank, ndim), wanted, strict=True):
        moved = _last(value, dim)
        bins, held = _bins(moved.shape[-1], count, input)
        value = ops.div(ops.sum(ops.where(bins, ops.unsqueeze(moved, -2), 0.0), -1), held)
        value = value if dim == ndim - 1 else ops.movedim(value, -1, dim)
    return in_format_of(input, narrow(value, input))


def adaptive_max(name: str, rank: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """(maxima of bins that divide the last ``rank`` dimensions evenly, their flat positions)."""
    wanted = _adaptive_sizes(name, rank, input, output_size)
    values, indices = adaptive_max_pool(input, wanted)
    return in_format_of(input, values), in_format_of(input, indices)


@composite(
    samples=calls(
        call(tensor(2, 7, kind="distinct"), (3,)),
        call(tensor(1, 2, 5, 6, kind="distinct"), (2, 4)),
        call(tensor(1, 4, 6, kind="distinct"), (2, 3)),
    )
)
def adaptive_max_pool(input: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    """Maxima of bins and their flat positions in the last ``len(output_size)`` dimensions."""

    rank, ndim = len(output_size), len(input.shape)
    value: Any = input
    flat: Any = None
    weight: Any = 1
    for dim, count in zip(range(ndim - 1, ndim - rank - 1, -1), reversed(output_size), strict=True):
        moved = _last(value, dim)
        size = moved.shape[-1]
        spread = ops.where(_bins(size, count, input)[0], ops.unsqueeze(moved, -2), _lowest(input))
        place = ops.argmax(spread, -1)
        value = ops.amax(spread, -1)
        position = ops.mul(place, weight)
        if flat is not None:
            position = ops.add(position, ops.gather(_last(flat, dim), -1, place))
        weight = weight * size
        flat = position if dim == ndim - 1 else ops.movedim(position, -1, dim)
        value = value if dim == ndim - 1 else ops.movedim(value, -1, dim)
    return value, flat


@adaptive_max_pool.vjp
def _(ct, out, input_spec, output_size):
    rank, ndim = len(output_size), len(input_spec.shape)
    lead = tuple(input_spec.shape[: ndim - rank])
    plane = math.prod(input_spec.shape[ndim - rank :])
    count = math.prod(output_size)
    empty = ops.zeros((*lead, plane), dtype=input_spec.dtype, device=input_spec.device)
    flat = ops.scatter_add(empty, -1, ops.reshape(out[1], (*lead, count)), ops.reshape(ct[0], (*lead, count)))
    return (ops.reshape(flat, input_spec.shape),)


def max_unpool(
    name: str, rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    """Put values back where ``max_pool`` found them; zeros elsewhere."""
    kernel = each(name, kernel_size, rank, "kernel_size")
    step = kernel if stride is None else each(name, stride, rank, "stride")
    border = each(name, padding, rank, "padding")
    ndim = len(input.shape)
    if output_size is None:
        sizes = [
            (h - 1) * s - 2 * p + k for h, s, p, k in zip(input.shape[ndim - rank :], step, border, kernel, strict=True)
        ]
    else:
        sizes = list(output_size)[-rank:]
    lead = input.shape[: ndim - rank]
    count = math.prod(input.shape[ndim - rank :])
    empty = ops.zeros((*lead, math.prod(sizes)), dtype=element_type(input), device=input.device)
    flat = ops.scatter(empty, -1, ops.reshape(indices, (*lead, count)), ops.reshape(input, (*lead, count)))
    return ops.reshape(flat, (*lead, *sizes))
