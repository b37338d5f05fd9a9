"""Normalisation over the last dimensions: layer norm and RMS norm.

Statistics are two-pass and float32 for half precision. The derivatives keep the input, the mean and the reciprocal
standard deviation, like the eager implementations they replace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import element_type, spec_of
from ..metas import like, statistics_dtype
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..strides import elementwise_strides
from ..types import Shape, Tensor

__all__ = ["element_count", "normalised", "statistics_gradient"]


def element_count(shape: Sequence[Any]) -> Any:
    """The product of the sizes."""
    count: Any = 1
    for size in shape:
        count = count * size
    return count


def _check_shape(name: str, input: Tensor, normalized_shape: Any, *others: Any) -> tuple[Any, ...]:
    """The normalised shape as a tuple; checks it against the input and the parameters."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    rank = len(shape)
    if rank < 1 or len(input.shape) < rank or tuple(input.shape[len(input.shape) - rank :]) != shape:
        raise RuntimeError(
            f"{name}: Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], "
            f"but got input of size {list(input.shape)}"
        )
    for other in others:
        if other is not None and tuple(other.shape) != shape:
            raise RuntimeError(
                f"{name}: Expected weight and bias to be of same shape as normalized_shape {list(shape)}, "
                f"but got {list(other.shape)}"
            )
    return shape


# -- layer norm -------------------------------------------------------------------------------------

_LAYER = calls(
    call(tensor(2, 3, 4), (4,), tensor(4), tensor(4)),
    call(tensor(2, 3, 4), [3, 4], tensor(3, 4)),
    call(tensor(3, 5), (5,)),
    call(tensor(3, 4, dtype="bfloat16"), (4,), tensor(4, dtype="bfloat16"), tensor(4, dtype="bfloat16")),
    call(tensor(0, 4), (4,), tensor(4), tensor(4)),
)
_BAD = [
    error(RuntimeError, "normalized_shape", tensor(2, 3), (4,)),
    error(RuntimeError, "same shape", tensor(2, 3), (3,), tensor(2)),
]


def _layer_meta(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    shape = _check_shape("layer_norm", input, normalized_shape, weight, bias)
    lead = len(input.shape) - len(shape)
    small = like(input, statistics_dtype(input.dtype), (*input.shape[:lead], *(1,) * len(shape)))
    return normalised(input, small, weight, bias), small, small


def normalised(input: Any, *operands: Any) -> TensorSpec:
    """The result's spec: the input's dtype (half precision with float32 parameters stays half), in the layout that
    elementwise operations with one operand after the other give (None: there is none).
    """
    dtype = input.dtype
    if dtype.kind != "float":
        raise NotImplementedError(f"normalisation is not implemented for {dtype}; convert to a floating-point dtype")
    result = like(input, dtype)
    for operand in operands:
        if operand is not None and operand.ndim:
            layout = elementwise_strides(input.shape, (result, spec_of(operand)))
            result = TensorSpec(input.shape, dtype, layout, input.device)
    return result


@composite(meta=_layer_meta, samples=_LAYER)
def native_layer_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """(layer norm, mean, reciprocal standard deviation); the last two keep the normalised dimensions as 1."""
    shape = _check_shape("layer_norm", input, normalized_shape, weight, bias)
    dims = tuple(range(len(input.shape) - len(shape), len(input.shape)))
    x = widen(input)
    mean = ops.mean(x, dims, True)
    centred = ops.sub(x, mean)
    rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(centred, centred), dims, True), eps))
    value = ops.mul(centred, rstd)
    if weight is not None:
        value = ops.mul(value, widen(weight))
    if bias is not None:
        value = ops.add(value, widen(bias))
    return narrow(value, input), mean, rstd


@native_layer_norm.vjp
def _(ct, out, input, normalized_shape, weight, bias, needs):
    x, given = widen(input), widen(ct[0])
    mean, rstd = out[1], out[2]
    rank = len(input.shape) - (1 if isinstance(normalized_shape, int) else len(normalized_shape))
    dims, lead = tuple(range(rank, len(input.shape))), tuple(range(rank))
    hat = ops.mul(ops.sub(x, mean), rstd)
    gx = gw = gb = None
    if needs[0]:
        g = given if weight is None else ops.mul(given, widen(weight))
        centred = ops.sub(g, ops.add(ops.mean(g, dims, True), ops.mul(hat, ops.mean(ops.mul(g, hat), dims, True))))
        gx = ops.mul(centred, rstd)
        if ct[1] is not None or ct[2] is not None:
            gx = ops.add(gx, statistics_gradient(ct, hat, rstd, dims, element_count(input.shape[rank:])))
    if weight is not None and needs[1]:
        gw = ops.sum(ops.mul(given, hat), lead) if lead else ops.mul(given, hat)
    if bias is not None and needs[2]:
        gb = ops.sum(given, lead) if lead else given
    return gx, gw, gb


def statistics_gradient(ct: Any, hat: Tensor, rstd: Tensor, dims: tuple[int, ...], count: Any) -> Tensor:
    """What flows to the input through the mean and the reciprocal standard deviation."""
    total = ops.mul(hat, 0.0)
    if ct[1] is not None:
        total = ops.add(total, ops.div(ct[1], count))
    if ct[2] is not None:
        total = ops.sub(total, ops.mul(ops.div(ops.mul(ct[2], ops.mul(rstd, rstd)), count), hat))
    return total


@composite(
    meta=lambda *args, **kwargs: _layer_meta(*args, **kwargs)[0],
    names=("nn.functional.layer_norm", "layer_norm"),
    samples=_LAYER,
    errors=_BAD,
)
def layer_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions. Source: Ba et al. 2016."""
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


# -- RMS norm ---------------------------------------------------------------------------------------


def _rms_meta(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> tuple[TensorSpec, TensorSpec]:
    shape = _check_shape("rms_norm", input, normalized_shape, weight)
    lead = len(input.shape) - len(shape)
    small = like(input, statistics_dtype(input.dtype), (*input.shape[:lead], *(1,) * len(shape)))
    return normalised(input, small, weight), small


@composite(
    meta=_rms_meta,
    samples=calls(call(tensor(2, 3, 4), (4,), tensor(4)), call(tensor(2, 3, 4), (3, 4), None, 1e-3)),
)
def native_rms_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """(RMS norm, reciprocal root mean square with the normalised dimensions as 1)."""
    shape = _check_shape("rms_norm", input, normalized_shape, weight)
    dims = tuple(range(len(input.shape) - len(shape), len(input.shape)))
    x = widen(input)
    small = _epsilon(x) if eps is None else eps
    scale = ops.rsqrt(ops.add(ops.mean(ops.mul(x, x), dims, True), small))
    value = ops.mul(x, scale)
    if weight is not None:
        value = ops.mul(value, widen(weight))
    return narrow(value, input), scale


def _epsilon(x: Tensor) -> float:
    return 2.0**-52 if element_type(x).itemsize == 8 else 2.0**-23


@native_rms_norm.vjp
def _(ct, out, input, normalized_shape, weight, needs):
    x, scale = widen(input), out[1]
    given = ops.mul(x, 0.0) if ct[0] is None else widen(ct[0])
    rank = len(input.shape) - (1 if isinstance(normalized_shape, int) else len(normalized_shape))
    dims, lead = tuple(range(rank, len(input.shape))), tuple(range(rank))
    hat = ops.mul(x, scale)
    gx = gw = None
    if needs[0]:
        g = given if weight is None else ops.mul(given, widen(weight))
        gx = ops.mul(ops.sub(g, ops.mul(hat, ops.mean(ops.mul(g, hat), dims, True))), scale)
        if ct[1] is not None:
            cubed = ops.mul(ct[1], ops.mul(scale, scale))
            gx = ops.sub(gx, ops.mul(hat, ops.div(cubed, element_count(input.shape[rank:]))))
    if weight is not None and needs[1]:
        gw = ops.sum(ops.mul(given, hat), lead) if lead else ops.mul(given, hat)
    return gx, gw


@composite(
    meta=lambda *args, **kwargs: _rms_meta(*args, **kwargs)[0],
    names=("nn.functional.rms_norm", "rms_norm"),
    samples=calls(
        call(tensor(2, 3, 4), (4,), tensor(4)),
        call(tensor(2, 3, 4), [3, 4], eps=1e-3),
        call(tensor(3, 4, dtype="bfloat16"), (4,), tensor(4, dtype="bfloat16")),
    ),
    errors=_BAD[:1],
)
def rms_norm(input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x * x) + eps) * weight over the last dimensions. Source: Zhang and Sennrich 2019."""
    return native_rms_norm(input, normalized_shape, weight, eps)[0]
