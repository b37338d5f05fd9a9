"""Choosing between elements: where, minimum and maximum, clamp, masked fills; parts of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from ..arrays import element_type
from ..elementwise import Elementwise
from ..promotion import get_default_dtype
from ..registry import both, composite, ops, primitive
from ..samples import binary, call, calls, error, tensor
from ..types import Scalar, Tensor

__all__ = ["clamp", "masked_fill", "maximum", "minimum", "where"]


@primitive(
    names=("where",),
    meta=Elementwise("where", conditions=1),
    reference=lambda xp, condition, a, b: xp.where(condition, a, b),
    in_place=False,
    samples=calls(
        call(tensor(2, 3, dtype="bool"), tensor(2, 3), tensor(3)),
        call(tensor(2, 1, dtype="bool"), tensor(3), 0.0),
        call(tensor(2, dtype="bool"), 1, 2.5),
        call(tensor(2, dtype="bool"), tensor(2, dtype="int64"), tensor(2, dtype="float16")),
    ),
    errors=[
        error(RuntimeError, "boolean", tensor(2), tensor(2), tensor(2)),
        error(RuntimeError, "do not broadcast", tensor(2, dtype="bool"), tensor(3), tensor(3)),
    ],
)
def where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """``input`` where ``condition`` is true, ``other`` elsewhere; all three broadcast."""
    ...


@where.vjp
def _(ct, condition, needs):
    return (
        None,
        ops.where(condition, ct, 0) if needs[1] else None,
        ops.where(condition, 0, ct) if needs[2] else None,
    )


@composite(id="where.method", names=("Tensor.where",), samples=calls(call(tensor(2, 3), tensor(3, dtype="bool"), 0.0)))
def where_method(input: Tensor, condition: Tensor, other: Tensor | Scalar) -> Tensor:
    """``input`` where ``condition`` is true, ``other`` elsewhere."""
    return ops.where(condition, input, other)


@primitive(
    names=both("maximum"),
    meta=Elementwise("maximum", allowed="bool int float"),
    reference="maximum",
    samples=binary(),
    errors=[error(RuntimeError, "do not broadcast", tensor(2, 3), tensor(2, 4))],
)
def maximum(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The larger element; nan when one is nan."""
    ...


@primitive(
    names=both("minimum"),
    meta=Elementwise("minimum", allowed="bool int float"),
    reference="minimum",
    samples=binary(),
    errors=[error(RuntimeError, "do not broadcast", tensor(2, 3), tensor(2, 4))],
)
def minimum(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The smaller element; nan when one is nan."""
    ...


def _winner(ct: Any, better: Any, tie: Any) -> Any:
    """The cotangent where this operand won, half of it where both are equal."""
    return ops.where(tie, ops.mul(ct, 0.5), ops.where(better, ct, 0))


@maximum.vjp
def _(ct, input, other, needs):
    tie = ops.eq(input, other)
    return (
        _winner(ct, ops.gt(input, other), tie) if needs[0] else None,
        _winner(ct, ops.lt(input, other), tie) if needs[1] else None,
    )


@minimum.vjp
def _(ct, input, other, needs):
    tie = ops.eq(input, other)
    return (
        _winner(ct, ops.lt(input, other), tie) if needs[0] else None,
        _winner(ct, ops.gt(input, other), tie) if needs[1] else None,
    )


@composite(names=both("fmax"), samples=binary(scalars=()))
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger element; where one is nan, the other."""
    input_wins = ops.bitwise_or(ops.ge(input, other), ops.isnan(other))
    return ops.where(input_wins, input, other)


@composite(names=both("fmin"), samples=binary(scalars=()))
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller element; where one is nan, the other."""
    input_wins = ops.bitwise_or(ops.le(input, other), ops.isnan(other))
    return ops.where(input_wins, input, other)


@composite(
    names=both("clamp", "clip"),
    in_place=True,
    samples=calls(
        call(tensor(2, 3), -1, 1), call(tensor(2, 3), min=0.5), call(tensor(2, 3), max=tensor(3)),
        call(tensor(2, 3, dtype="int64", low=-9, high=9), 0, 2.5), call(tensor(9, kind="special"), -1.0, 1.0),
    ),
    errors=[error(RuntimeError, "at least one of", tensor(2, 3))],
)  # fmt: skip
def clamp(input: Tensor, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Tensor:
    """``input`` limited to [min, max]; nan stays nan. Where min > max the result is max."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of min and max must not be None")
    if min is not None:
        input = ops.maximum(input, min)
    return input if max is None else ops.minimum(input, max)


@clamp.vjp
def _(ct, input, min, max, needs):
    below = None if min is None else ops.ge(input, min)
    above = None if max is None else ops.le(input, max)
    inside = above if below is None else below if above is None else ops.bitwise_and(below, above)
    low = high = None
    if needs[1]:
        low = ops.where(ops.bitwise_not(below), ct, 0)
        if max is not None:
            low = ops.where(ops.lt(min, max), low, 0)
    if needs[2]:
        crossed = ops.bitwise_not(above)
        high = ops.where(crossed if min is None else ops.bitwise_or(crossed, ops.gt(min, max)), ct, 0)
    return ops.where(inside, ct, 0) if needs[0] else None, low, high


@composite(names=both("clamp_min"), in_place=True, samples=calls(call(tensor(2, 3), 0.0)))
def clamp_min(input: Tensor, min: Tensor | Scalar) -> Tensor:
    """``input``, at least ``min``."""
    return ops.clamp(input, min)


@composite(names=both("clamp_max"), in_place=True, samples=calls(call(tensor(2, 3), 0.0)))
def clamp_max(input: Tensor, max: Tensor | Scalar) -> Tensor:
    """``input``, at most ``max``."""
    return ops.clamp(input, None, max)


@composite(
    names=both("masked_fill"),
    in_place=True,
    samples=calls(
        call(tensor(2, 3), tensor(2, 3, dtype="bool"), -1.5), call(tensor(2, 3), tensor(3, dtype="bool"), tensor()),
        call(tensor(2, 3, dtype="bfloat16"), tensor(2, 1, dtype="bool"), float("-inf"), gradient=False),
    ),
    errors=[error(RuntimeError, "boolean", tensor(2), tensor(2), 1.0)],
)  # fmt: skip
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Scalar) -> Tensor:
    """``input`` with ``value`` (a number or a tensor without dimensions) where ``mask`` is true."""
    dtype = element_type(input)
    if hasattr(value, "dtype"):
        if len(value.shape):
            raise RuntimeError(f"masked_fill: value must have no dimensions, it has shape {list(value.shape)}")
        value = value if element_type(value) is dtype else ops.convert_element_type(value, dtype)
    else:
        value = _number_as(dtype, value)
    return ops.where(mask, value, input)


def _number_as(dtype: Any, value: Any) -> Any:
    if isinstance(value, complex) and dtype.kind != "complex":
        raise RuntimeError(f"value {value} cannot be converted to {dtype} without losing its imaginary part")
    if dtype.kind == "bool":
        return bool(value)
    return int(value) if dtype.kind == "int" and isinstance(value, (bool, float)) and math.isfinite(value) else value


@composite(names=both("addcmul"), in_place=True, samples=calls(call(tensor(2, 3), tensor(3), tensor(2, 1), value=0.5)))
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """input + value * tensor1 * tensor2."""
    product = ops.mul(tensor1, tensor2)
    return ops.add(input, product if type(value) in (int, float) and value == 1 else ops.mul(product, value))


@composite(
    names=both("addcdiv"), in_place=True, samples=calls(call(tensor(2, 3), tensor(3), tensor(2, 1, low=1.0), value=0.5))
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """input + value * tensor1 / tensor2."""
    quotient = ops.div(tensor1, tensor2)
    return ops.add(input, quotient if type(value) in (int, float) and value == 1 else ops.mul(quotient, value))


@composite(
    names=both("lerp"),
    in_place=True,
    samples=calls(call(tensor(2, 3), tensor(3), 0.3), call(tensor(2, 3), tensor(2, 3), tensor(3))),
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Scalar) -> Tensor:
    """input + weight * (end - input): ``input`` at weight 0, ``end`` at weight 1."""
    return ops.add(input, ops.mul(ops.sub(end, input), weight))


@composite(names=both("heaviside"), samples=calls(call(tensor(2, 3), tensor(3), gradient=False)))
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, ``values`` at zero."""
    return ops.where(ops.eq(input, 0), values, ops.convert_element_type(ops.gt(input, 0), element_type(input)))


@composite(
    names=(*both("xlogy"), "special.xlogy"),
    in_place=True,
    samples=calls(call(tensor(2, 3, low=0.5), tensor(3, low=0.5)), call(tensor(3), 2.0), call(2, tensor(3, low=0.5))),
)
def xlogy(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input * log(other), and 0 where input is 0 (nan where other is nan)."""
    if not hasattr(other, "dtype"):
        other = ops.full((), other, dtype=get_default_dtype(), device=input.device)
    if not hasattr(input, "dtype"):
        input = ops.full((), input, dtype=get_default_dtype(), device=other.device)
    zero = ops.bitwise_and(ops.eq(input, 0), ops.eq(other, other))
    return ops.where(zero, 0.0, ops.mul(input, ops.log(other)))


@composite(names=both("hypot"), in_place=True, samples=binary(0.5, dtypes=("float32", "float64"), mixed=(), scalars=()))
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """sqrt(input**2 + other**2) without overflow on the way; infinite beside an infinity, also for NaN."""
    a, b = ops.abs(input), ops.abs(other)
    large, small = ops.maximum(a, b), ops.minimum(a, b)
    ratio = ops.div(small, ops.where(ops.eq(large, 0), 1.0, large))
    length = ops.mul(large, ops.sqrt(ops.add(ops.mul(ratio, ratio), 1)))
    beside_nan = ops.logical_and(ops.isnan(large), ops.logical_or(ops.isinf(a), ops.isinf(b)))
    return ops.where(beside_nan, math.inf, ops.where(ops.isinf(large), large, length))


@composite(names=both("logaddexp"), samples=binary(dtypes=("float32", "float64"), mixed=(), scalars=()))
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """log(exp(input) + exp(other)) without overflow."""
    large = ops.maximum(input, other)
    gap = ops.neg(ops.abs(ops.sub(input, other)))
    return ops.where(ops.isinf(large), large, ops.add(large, ops.log1p(ops.exp(gap))))
