"""Convolution of one to three spatial dimensions, plain and transposed, through one primitive.

Its derivatives are convolutions again: with respect to the input a transposed one, with respect to the weight a
convolution in which batch and channels change places (``convolution_weight_grad``, which a backend may keep).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import array_namespace, spec_of
from ..memory_formats import channels_last_strides, has_channels_last, in_format_of
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .windows import window_view

__all__ = ["convolution", "convolution_weight_grad"]

Ints = Sequence[int]


def _check(input: Any, weight: Any, bias: Any, transposed: bool, groups: int) -> None:
    rank = len(weight.shape)
    if rank < 3 or len(input.shape) != rank:
        raise RuntimeError(
            f"convolution: expected input and weight with the same number (3 to 5) of dimensions, "
            f"got {tuple(input.shape)} and {tuple(weight.shape)}"
        )
    if input.dtype != weight.dtype or (bias is not None and bias.dtype != weight.dtype):
        kinds = ", ".join(str(t.dtype) for t in (input, weight, bias) if t is not None)
        raise RuntimeError(f"convolution: input, weight and bias must have one dtype, got {kinds}")
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != expected:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have "
            f"{expected} channels, but got {input.shape[1]} channels instead"
        )
    if groups < 1 or weight.shape[0] % groups:
        raise RuntimeError(f"convolution: weight of size {list(weight.shape)} is not divisible in {groups} groups")
    out = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (out,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {out} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )


def _meta(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
    output_padding: Ints, groups: int,
) -> TensorSpec:  # fmt: skip
    _check(input, weight, bias, transposed, groups)
    sizes: list[Any] = []
    for h, k, s, p, d, extra in zip(
        input.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
    ):
        if s < 1 or d < 1:
            raise RuntimeError(f"convolution: non-positive stride {tuple(stride)} or dilation {tuple(dilation)}")
        if transposed:
            sizes.append((h - 1) * s - 2 * p + d * (k - 1) + extra + 1)
        else:
            if h + 2 * p < d * (k - 1) + 1:
                raise RuntimeError(
                    f"Calculated padded input size per channel: {h + 2 * p}. Kernel size: {d * (k - 1) + 1}. "
                    "Kernel size can't be greater than actual input size"
                )
            sizes.append((h + 2 * p - d * (k - 1) - 1) // s + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    shape = (input.shape[0], channels, *sizes)
    strides = channels_last_strides(shape) if _last(input, weight) else None
    return TensorSpec(shape, input.dtype, strides, input.device)


def _last(input: Any, weight: Any) -> bool:
    """Has the result its channels last? Where the input or the weight has."""
    return has_channels_last(spec_of(input)) or has_channels_last(spec_of(weight))


def _padded(xp: Any, input: Any, before: Ints, after: Ints) -> Any:
    """Zeros around the spatial dimensions; negative numbers cut."""
    cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, b, a in zip(input.shape[2:], before, after, strict=True))
    input = input[(slice(None), slice(None), *cut)]
    widths = [(0, 0), (0, 0), *((max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True))]
    return xp.pad(input, widths) if any(b or a for b, a in widths) else input


def _plain(xp: Any, input: Any, weight: Any, stride: Ints, dilation: Ints, groups: int) -> Any:
    """Convolution of a padded input: windows (im2col) times the weight, group by group."""
    rank = weight.ndim - 2
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    windows = window_view(input, range(2, 2 + rank), weight.shape[2:], stride, dilation)
    axes = (1, *range(2 + rank, 2 + 2 * rank))
    results = []
    for g in range(groups):
        part = windows[:, g * per_in : (g + 1) * per_in]
        filters = weight[g * per_out : (g + 1) * per_out]
        results.append(xp.tensordot(part, filters, (axes, tuple(range(1, 2 + rank)))))
    return xp.moveaxis(results[0] if groups == 1 else xp.concatenate(results, -1), -1, 1)


def _dense(xp: Any, array: Any) -> Any:
    """The array in row-major order; also the strides of dimensions with one element are so."""
    return xp.ascontiguousarray(array).reshape(-1).reshape(array.shape)


def _reference(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
    output_padding: Ints, groups: int,
) -> Any:  # fmt: skip
    xp = array_namespace(input, weight)
    dtype, last = input.dtype, _last(input, weight)
    if dtype.itemsize <= 2 and dtype.kind not in "iub":
        input, weight = input.astype(xp.float32), weight.astype(xp.float32)
    if not transposed:
        out = _plain(xp, _padded(xp, input, padding, padding), weight, stride, dilation, groups)
    else:
        spread = xp.zeros(
            (*input.shape[:2], *((h - 1) * s + 1 for h, s in zip(input.shape[2:], stride, strict=True))), input.dtype
        )
        spread[(slice(None), slice(None), *(slice(None, None, s) for s in stride))] = input
        before = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        after = [b + e for b, e in zip(before, output_padding, strict=True)]
        rows = weight.shape[0] // groups
        turned = xp.flip(weight, tuple(range(2, weight.ndim)))
        turned = xp.concatenate([xp.swapaxes(turned[g * rows : (g + 1) * rows], 0, 1) for g in range(groups)])
        out = _plain(xp, _padded(xp, spread, before, after), turned, (1,) * len(stride), dilation, groups)
    out = xp.moveaxis(_dense(xp, xp.moveaxis(out, 1, -1)), -1, 1) if last else _dense(xp, out)
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * len(stride)).astype(out.dtype)
    return out.astype(dtype, copy=False)


_HALF = tensor(1, 2, 5, dtype="bfloat16")
_LAST = tensor(2, 4, 5, 6, kind="channels_last")


def _c(*args: Any) -> Any:
    return call(*args)


@primitive(
    names=("convolution",),
    meta=_meta,
    reference=_reference,
    samples=calls(
        _c(tensor(2, 3, 7), tensor(4, 3, 3), tensor(4), (2,), (1,), (1,), False, (0,), 1),
        _c(tensor(2, 4, 5, 6), tensor(6, 2, 2, 3), None, (1, 2), (1, 0), (2, 1), False, (0, 0), 2),
        _c(tensor(1, 2, 4, 4, 3), tensor(2, 2, 2, 2, 2), None, (1, 1, 1), (0, 0, 1), (1, 1, 1), False, (0, 0, 0), 1),
        _c(tensor(2, 4, 5), tensor(4, 3, 3), tensor(6), (3,), (1,), (2,), True, (1,), 2),
        _c(tensor(1, 2, 3, 4), tensor(2, 3, 3, 2), None, (2, 1), (1, 2), (1, 1), True, (1, 0), 1),
        _c(_LAST, tensor(6, 2, 2, 3), tensor(6), (1, 2), (1, 0), (2, 1), False, (0, 0), 2),
        _c(_LAST, tensor(4, 3, 2, 2, kind="channels_last"), None, (2, 1), (0, 1), (1, 1), True, (1, 0), 1),
        _c(tensor(2, 3, 4, 4), tensor(2, 3, 3, 3, kind="channels_last"), None, *((1,) * 2,) * 3, False, (0,) * 2, 1),
        _c(_HALF, tensor(2, 1, 2, dtype="bfloat16"), None, (1,), (0,), (1,), False, (0,), 2),
    ),
    errors=[
        error(RuntimeError, "channels", tensor(1, 2, 5), tensor(3, 3, 2), None, (1,), (0,), (1,), False, (0,), 1),
        error(RuntimeError, "Kernel size", tensor(1, 2, 2), tensor(3, 2, 3), None, (1,), (0,), (1,), False, (0,), 1),
        error(RuntimeError, "bias", tensor(1, 2, 5), tensor(3, 2, 2), tensor(2), (1,), (0,), (1,), False, (0,), 1),
    ],
)  # fmt: skip
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """Cross-correlation: (N, C, *) with (O, C / groups, *k), or transposed with (C, O / groups, *k), to (N, O, *)."""
    ...


@convolution.normalize
def _(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if bias is None:
        return NotImplemented
    out = convolution(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    return ops.add(out, ops.reshape(bias, (bias.shape[0], *(1,) * len(stride))))


@convolution.vjp
def _(ct, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, needs):
    gi = gw = gb = None
    args = (stride, padding, dilation)
    ct = in_format_of(input if has_channels_last(spec_of(input)) else weight, ct)
    if needs[0]:
        extra = (0,) * len(stride) if transposed else missing(input.shape, ct.shape, weight.shape, *args)
        gi = convolution(ct, weight, None, *args, not transposed, extra, groups)
        gi = _cut(gi, input.shape) if transposed else gi
    if needs[1]:
        out, inp = (input, ct) if transposed else (ct, input)
        gw = convolution_weight_grad(out, inp, tuple(weight.shape), *args, groups)
    if bias is not None and needs[2]:
        gb = ops.sum(ct, (0, *range(2, len(weight.shape))))
    return gi, gw, gb


def missing(input: Any, output: Any, weight: Any, stride: Ints, padding: Ints, dilation: Ints) -> tuple[Any, ...]:
    """Elements at the end of the input that no window reached: the output padding of the transposed convolution."""
    return tuple(
        h - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
        for h, o, k, s, p, d in zip(input[2:], output[2:], weight[2:], stride, padding, dilation, strict=True)
    )


def _cut(value: Tensor, shape: Any) -> Tensor:
    for dim, size in enumerate(shape):
        if dim >= 2 and value.shape[dim] != size:
            value = ops.slice(value, dim, 0, size)
    return value


@composite(
    samples=calls(
        call(tensor(2, 4, 4), tensor(2, 3, 7), (4, 3, 3), (2,), (1,), (1,), 1),
        call(tensor(2, 6, 5, 2), tensor(2, 4, 5, 6), (6, 2, 2, 3), (1, 2), (1, 0), (2, 1), 2),
    )
)
def convolution_weight_grad(
    cotangent: Tensor, input: Tensor, weight_shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    """Gradient of a plain convolution's weight, of ``weight_shape``, from the output's cotangent and the input."""
    n, c = input.shape[:2]
    rank = len(stride)
    spatial = tuple(range(3, 3 + rank))
    # (N, G, C/G, *) -> (C/G, G N, *): the batch is what is summed over
    swapped = ops.permute(ops.reshape(input, (n, groups, c // groups, *input.shape[2:])), (2, 1, 0, *spatial))
    swapped = ops.reshape(swapped, (c // groups, groups * n, *input.shape[2:]))
    filters = ops.permute(cotangent, (1, 0, *range(2, 2 + rank)))
    out = convolution(swapped, filters, None, dilation, padding, stride, False, (0,) * rank, groups)
    return ops.permute(_cut(out, (0, 0, *weight_shape[2:])), (1, 0, *range(2, 2 + rank)))


@convolution_weight_grad.vjp
def _(ct, cotangent, input, stride, padding, dilation, groups, needs):
    args = (stride, padding, dilation)
    first = second = None
    if needs[0]:
        first = convolution(input, ct, None, *args, False, (0,) * len(stride), groups)
    if needs[1]:
        extra = missing(input.shape, cotangent.shape, ct.shape, *args)
        second = convolution(cotangent, ct, None, *args, True, extra, groups)
    return first, second
