"""Images: padding modes, resizing, sampling at given places, shuffles between channels and space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lamina_fx import float32, int64, uint8

from ..along import along
from ..arrays import element_type
from ..memory_formats import in_format_of
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Shape, Tensor
from .antialiasing import resized
from .windows import padded

__all__ = ["cubic_weights", "to_index"]


# -- padding ----------------------------------------------------------------------------------------


@composite(
    id="nn_pad",
    names=("nn.functional.pad",),
    samples=calls(
        call(tensor(2, 3), (1, 2)),
        call(tensor(2, 3, 4), [1, 0, 2, 1], "constant", 1.5),
        call(tensor(2, 3, 4), (-1, 1)),
        call(tensor(2, 3, 4), (2, 1), "reflect"),
        call(tensor(1, 2, 3, 4), (2, 1, 1, 2), "reflect"),
        call(tensor(1, 2, 3, 4), (5, 1, 1, 4), "replicate"),
        call(tensor(2, 3, 4), (3, 4), "circular"),
    ),
    errors=[
        error(RuntimeError, "divisible", tensor(2, 3), (1,)),
        error(RuntimeError, "less than", tensor(2, 3, 4), (4, 1), "reflect"),
        error(NotImplementedError, "mode", tensor(2, 3, 4), (1, 1), "mirror"),
    ],
)
def nn_pad(input: Tensor, pad: Sequence[Any], mode: str = "constant", value: Any | None = None) -> Tensor:
    """Pad the last dimensions by pairs (before, after), the last first; negative numbers cut (constant mode)."""
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(pad)} numbers")
    if len(pad) > 2 * len(input.shape):
        raise RuntimeError(
            f"Padding length should be at most twice the number of dimensions ({len(input.shape)}), got {len(pad)}"
        )
    if mode == "constant":
        return padded(input, pad, 0 if value is None else value)
    if mode not in _SOURCES:
        raise NotImplementedError(f"Unrecognised padding mode {mode!r}; constant, reflect, replicate or circular")
    result = input
    for k in range(len(pad) // 2):
        before, after = pad[2 * k], pad[2 * k + 1]
        if not (type(before) is int and type(after) is int and before == 0 and after == 0):
            result = _extend(result, len(input.shape) - 1 - k, before, after, mode)
    return result


def _reflect(place: Tensor, size: Any) -> Tensor:
    return ops.sub(size - 1, ops.abs(ops.sub(size - 1, ops.abs(place))))


def _replicate(place: Tensor, size: Any) -> Tensor:
    return ops.clamp(place, 0, size - 1)


def _circular(place: Tensor, size: Any) -> Tensor:
    return ops.remainder(place, size)


_SOURCES = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}


def _extend(input: Tensor, dim: int, before: Any, after: Any, mode: str) -> Tensor:
    size = input.shape[dim]
    limit = size if mode == "circular" else size - 1
    if mode != "replicate" and (before > limit or after > limit):
        raise RuntimeError(
            f"{mode} padding ({before}, {after}) at dimension {dim} should be less than the input size {size}, "
            f"got input {list(input.shape)}"
        )
    place = ops.sub(ops.arange(before + size + after, device=input.device), before)
    return ops.index_select(input, dim, _SOURCES[mode](place, size))


# -- shuffles ---------------------------------------------------------------------------------------


@composite(
    names=("nn.functional.pixel_shuffle", "pixel_shuffle"),
    samples=calls(call(tensor(1, 8, 2, 3), 2), call(tensor(4, 1, 2), 2)),
    errors=[error(RuntimeError, "divisible", tensor(1, 3, 2, 2), 2)],
)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r r, H, W) -> (*, C, H r, W r). Source: Shi et al. 2016."""
    r = upscale_factor
    *lead, c, h, w = input.shape
    if c % (r * r) != 0:
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by {r * r}, but got {c}"
        )
    n = len(lead)
    parts = ops.reshape(input, (*lead, c // (r * r), r, r, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return ops.reshape(ops.permute(parts, order), (*lead, c // (r * r), h * r, w * r))


@composite(
    names=("nn.functional.pixel_unshuffle", "pixel_unshuffle"),
    samples=calls(call(tensor(1, 2, 4, 6), 2)),
    errors=[error(RuntimeError, "divisible", tensor(1, 3, 3, 2), 2)],
)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Inverse of pixel_shuffle."""
    r = downscale_factor
    *lead, c, h, w = input.shape
    if h % r != 0 or w % r != 0:
        raise RuntimeError(f"pixel_unshuffle expects height and width to be divisible by {r}, but got {h} and {w}")
    n = len(lead)
    parts = ops.reshape(input, (*lead, c, h // r, r, w // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return ops.reshape(ops.permute(parts, order), (*lead, c * r * r, h // r, w // r))


@composite(
    names=("nn.functional.channel_shuffle", "channel_shuffle"),
    samples=calls(call(tensor(1, 6, 2, 2), 3)),
    errors=[error(RuntimeError, "divisible", tensor(1, 5, 2), 2)],
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels. Source: Zhang et al. 2017."""
    n, c, *rest = input.shape
    if c % groups != 0:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    parts = ops.reshape(input, (n, groups, c // groups, *rest))
    order = (0, 2, 1, *range(3, 3 + len(rest)))
    return ops.reshape(ops.permute(parts, order), tuple(input.shape))


# -- resizing ---------------------------------------------------------------------------------------


def _along(input: Tensor, dim: int, place: Tensor) -> Tensor:
    return ops.index_select(input, dim, place)


def to_index(value: Tensor) -> Tensor:
    """Places as int64."""
    return ops.convert_element_type(value, int64)


def _centres(have: Any, want: Any, scale: Any, align: bool, like: Tensor) -> Tensor:
    """Where the result's elements lie in the input, in its pixel coordinates (not clamped)."""
    index = ops.arange(want, dtype=element_type(like), device=like.device)
    if align:
        return ops.mul(index, (have - 1) / (want - 1) if want > 1 else 0.0)
    step = have / want if scale is None else 1.0 / scale
    return ops.sub(ops.mul(ops.add(index, 0.5), step), 0.5)


def _nearest(input: Tensor, dim: int, want: Any, scale: Any, exact: bool) -> Tensor:
    have = input.shape[dim]
    step = have / want if scale is None else 1.0 / scale
    index = ops.arange(want, dtype=float32, device=input.device)
    place = ops.floor(ops.mul(ops.add(index, 0.5) if exact else index, step))
    return _along(input, dim, ops.clamp(to_index(place), 0, have - 1))


def _linear(input: Tensor, dim: int, want: Any, scale: Any, align: bool) -> Tensor:
    have = input.shape[dim]
    place = _centres(have, want, scale, align, input)
    place = ops.clamp(place, 0.0, have - 1) if align else ops.clamp(place, 0.0, None)
    left = ops.floor(place)
    first = ops.clamp(to_index(left), 0, have - 1)
    second = ops.clamp(ops.add(first, 1), 0, have - 1)
    weight = along(ops.sub(place, left), dim, len(input.shape))
    a, b = _along(input, dim, first), _along(input, dim, second)
    return ops.add(ops.mul(a, ops.sub(1.0, weight)), ops.mul(b, weight))


def cubic_weights(t: Tensor) -> list[Tensor]:
    """Weights of the four neighbours at distance 1 + t, t, 1 - t, 2 - t (Keys 1981 with a = -0.75)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ops.add(ops.mul(ops.mul(ops.sub(ops.mul(x, a + 2.0), a + 3.0), x), x), 1.0)

    def far(x: Tensor) -> Tensor:
        return ops.sub(ops.mul(ops.add(ops.mul(ops.sub(ops.mul(x, a), 5.0 * a), x), 8.0 * a), x), 4.0 * a)

    return [far(ops.add(t, 1.0)), near(t), near(ops.sub(1.0, t)), far(ops.sub(2.0, t))]


def _cubic(input: Tensor, dim: int, want: Any, scale: Any, align: bool) -> Tensor:
    have = input.shape[dim]
    place = _centres(have, want, scale, align, input)
    left = ops.floor(place)
    base = to_index(left)
    total: Any = None
    for k, weight in enumerate(cubic_weights(ops.sub(place, left))):
        part = _along(input, dim, ops.clamp(ops.add(base, k - 1), 0, have - 1))
        term = ops.mul(part, along(weight, dim, len(input.shape)))
        total = term if total is None else ops.add(total, term)
    return total


def _sizes(input: Tensor, size: Any, scale_factor: Any, recompute: Any) -> tuple[list[Any], list[Any]]:
    """(wanted sizes, scale factors to compute with; None: the ratio of sizes)."""
    rank = len(input.shape) - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: exactly one of size and scale_factor must be defined")
    if size is not None:
        wanted = [size] * rank if isinstance(size, int) else list(size)
        if len(wanted) != rank:
            raise ValueError(f"interpolate: {rank} spatial dimensions, but size has {len(wanted)} numbers")
        return wanted, [None] * rank
    factors = (
        [float(scale_factor)] * rank if isinstance(scale_factor, (int, float)) else [float(f) for f in scale_factor]
    )
    if len(factors) != rank:
        raise ValueError(f"interpolate: {rank} spatial dimensions, but scale_factor has {len(factors)} numbers")
    wanted = [_scaled(h, f) for h, f in zip(input.shape[2:], factors, strict=True)]
    return wanted, [None] * rank if recompute else list(factors)


def _scaled(size: Any, factor: float) -> Any:
    if type(size) is int:
        return math.floor(size * factor)
    top, bottom = factor.as_integer_ratio()
    return size * top // bottom


_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


@composite(
    names=("nn.functional.interpolate", "nn.functional.upsample"),
    samples=calls(
        call(tensor(1, 2, 4, 3), scale_factor=2.0),
        call(tensor(1, 2, 4), 7),
        call(tensor(1, 2, 4, 3), (3, 5), mode="nearest-exact"),
        call(tensor(1, 2, 5), 3, mode="linear"),
        call(tensor(1, 2, 4, 3), (7, 5), mode="bilinear"),
        call(tensor(1, 2, 4, 3), (7, 1), mode="bilinear", align_corners=True),
        call(tensor(1, 2, 4, 3), scale_factor=(1.5, 2.5), mode="bilinear"),
        call(tensor(1, 1, 2, 3, 2), 4, mode="trilinear"),
        call(tensor(1, 2, 4, 3), (7, 5), mode="bicubic"),
        call(tensor(1, 2, 4, 3), (7, 5), mode="bicubic", align_corners=True),
        call(tensor(1, 2, 4, 3), (2, 2), mode="area"),
        *(
            call(tensor(1, 2, 7, 5), (3, 8), mode=m, align_corners=a, antialias=True)
            for m in ("bilinear", "bicubic")
            for a in (False, True)
        ),
        call(tensor(1, 2, 7, 5), scale_factor=(0.4, 1.5), mode="bilinear", antialias=True),
    ),
    errors=[
        error(ValueError, "exactly one", tensor(1, 2, 4)),
        error(NotImplementedError, "not defined for int32", tensor(1, 2, 4, dtype="int32"), 3, mode="linear"),
        error(NotImplementedError, "mode", tensor(1, 2, 4), 3, mode="lanczos"),
        error(NotImplementedError, "bilinear", tensor(1, 2, 4), 3, mode="bilinear"),
        error(RuntimeError, "greater than 0", tensor(1, 2, 4), 0),
        error(RuntimeError, "greater than 0", tensor(1, 2, 4), scale_factor=0.1, recompute_scale_factor=True),
        error(ValueError, "Anti-alias", tensor(1, 2, 4), 3, mode="linear", antialias=True),
    ],
)
def interpolate(
    input: Tensor,
    size: int | Shape | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (N, C, *): nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area.

    ``antialias``: bilinear and bicubic results that shrink are averages of all that they cover. Bytes are weighed in
    float32 and rounded.
    """
    rank = len(input.shape) - 2
    wanted, factors = _sizes(input, size, scale_factor, recompute_scale_factor)
    if antialias and (mode not in ("bilinear", "bicubic") or rank != 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if any(type(n) is int and n < 1 for n in (*input.shape[2:], *wanted)):
        raise RuntimeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input {list(input.shape[2:])} and "
            f"output {wanted}"
        )
    if align_corners is not None and mode not in (*_LINEAR, "bicubic"):
        raise ValueError(f"align_corners option can only be set with the interpolating modes, not {mode!r}")
    if mode == "area":
        return (ops.adaptive_avg_pool1d, ops.adaptive_avg_pool2d, ops.adaptive_avg_pool3d)[rank - 1](
            input, tuple(wanted)
        )
    if _LINEAR.get(mode, rank) != rank or (mode == "bicubic" and rank != 2):
        raise NotImplementedError(f"interpolate: mode {mode!r} does not take an input of {rank} spatial dimensions")
    value, weighs = widen(input), mode not in ("nearest", "nearest-exact")
    if weighs and element_type(input) is uint8:
        value = ops.convert_element_type(input, float32)
    elif weighs and element_type(input).kind != "float":
        raise NotImplementedError(f"interpolate: mode {mode!r} is not defined for {element_type(input)}")
    for dim, (want, factor) in enumerate(zip(wanted, factors, strict=True), start=2):
        if antialias:
            value = resized(value, dim, want, factor, bool(align_corners), mode == "bicubic")
        elif mode in ("nearest", "nearest-exact"):
            value = _nearest(value, dim, want, factor, mode != "nearest")
        elif mode in _LINEAR:
            value = _linear(value, dim, want, factor, bool(align_corners))
        elif mode == "bicubic":
            value = _cubic(value, dim, want, factor, bool(align_corners))
        else:
            raise NotImplementedError(f"interpolate: unknown mode {mode!r}")
    if value.dtype is not input.dtype and element_type(input) is uint8:
        value = ops.convert_element_type(ops.clamp(ops.round(value), 0, 255), uint8)
    return in_format_of(input, narrow(value, input))
