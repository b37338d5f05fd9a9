"""Pooling over windows whose places are random."""

from __future__ import annotations

from typing import Any

from lamina_fx import int64

from ..arrays import element_type
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .windows import Ints, each

__all__: list[str] = []

_UNIT: dict[str, Any] = {"low": 0.0, "high": 1.0}


def _starts(samples: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """(N, C) numbers in [0, 1) -> (N, C, out) first elements of windows; the last window is at the end."""
    if out == 1:
        return ops.full((*samples.shape, 1), size - kernel, dtype=int64, device=samples.device)
    step = (size - kernel) / (out - 1)
    u = ops.unsqueeze(samples, 2)
    at = ops.convert_element_type(ops.iota(out, device=samples.device), element_type(samples))
    moved = ops.trunc(ops.mul(ops.add(at, u), step))
    places = ops.convert_element_type(ops.sub(moved, ops.trunc(ops.mul(u, step))), int64)
    last = ops.eq(ops.iota(out, device=samples.device), out - 1)
    return ops.where(last, size - kernel, places)


def _windows(starts: Tensor, kernel: int) -> Tensor:
    """(N, C, out) -> (N, C, out * kernel): the elements of each window."""
    inside = ops.iota(kernel, device=starts.device)
    wide = ops.add(ops.unsqueeze(starts, 3), inside)
    return ops.reshape(wide, (*starts.shape[:2], starts.shape[2] * kernel))


@composite(
    samples=calls(
        call(tensor(2, 3, 7, 8, kind="distinct"), 2, (3, 4), tensor(2, 3, 2, **_UNIT), gradient=False),
        call(tensor(2, 6, 6, kind="distinct"), (3, 2), 3, tensor(1, 2, 2, **_UNIT), gradient=False),
    ),
    errors=[error(RuntimeError, "too large", tensor(1, 1, 4, 4), 3, 3, tensor(1, 1, 2, **_UNIT))],
)
def fractional_max_pool2d(
    input: Tensor, kernel_size: int | Ints, output_size: int | Ints, random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    """(largest elements of the windows, their places in the flattened image). ``random_samples`` (N, C, 2) in [0, 1)
    say where the windows begin, in the width and in the height. Source: Graham 2014.
    """
    kernel = each("fractional_max_pool2d", kernel_size, 2, "kernel_size")
    out = each("fractional_max_pool2d", output_size, 2, "output_size")
    batched = len(input.shape) == 4
    image = input if batched else ops.unsqueeze(input, 0)
    n, c, height, width = image.shape
    for size, k, o in zip((height, width), kernel, out, strict=True):
        if o + k - 1 > size:
            raise RuntimeError(f"fractional_max_pool2d: windows of {k}, {o} times, are too large for a size of {size}")
    samples = [ops.squeeze(ops.slice(random_samples, 2, k, k + 1), 2) for k in range(2)]
    rows = _windows(_starts(samples[1], height, out[0], kernel[0]), kernel[0])
    columns = _windows(_starts(samples[0], width, out[1], kernel[1]), kernel[1])
    tall, wide = out[0] * kernel[0], out[1] * kernel[1]
    place = ops.add(ops.mul(ops.unsqueeze(rows, 3), width), ops.unsqueeze(columns, 2))
    place = _grouped(place, (n, c), out, kernel)
    flat = ops.reshape(ops.contiguous(image), (n, c, height * width))
    value = ops.gather(flat, 2, ops.reshape(place, (n, c, tall * wide)))
    value = ops.reshape(value, tuple(place.shape))
    best = ops.argmax(value, -1, True)
    results = [ops.squeeze(ops.gather(v, 4, best), 4) for v in (value, place)]
    return (results[0], results[1]) if batched else (ops.squeeze(results[0], 0), ops.squeeze(results[1], 0))


def _grouped(place: Tensor, lead: tuple[Any, ...], out: Any, kernel: Any) -> Tensor:
    """(N, C, oh * kh, ow * kw) -> (N, C, oh, ow, kh * kw)."""
    split = ops.reshape(place, (*lead, out[0], kernel[0], out[1], kernel[1]))
    turned = ops.permute(split, (0, 1, 2, 4, 3, 5))
    return ops.reshape(turned, (*lead, *out, kernel[0] * kernel[1]))
