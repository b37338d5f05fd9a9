"""Powers, and functions of two operands that are no arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import complex128, float64, int32, int64

from ..arrays import element_type
from ..elementwise import Elementwise
from ..precision import narrow, widen
from ..promotion import get_default_dtype
from ..registry import both, composite, ops, primitive
from ..samples import binary, call, calls, error, tensor, without_gradient
from ..types import Scalar, Tensor
from .pointwise import conjugate

__all__: list[str] = []

_MISMATCH = error(RuntimeError, r"do not broadcast", tensor(2, 3), tensor(2, 4))


# -- powers ----------------------------------------------------------------------------------------------


def _is_number(value: Any, number: float) -> bool:
    """Is it this number of the host, and no tensor on a device, which would have to be waited for?"""
    if not isinstance(value, (np.ndarray, np.generic)) or value.ndim or value.dtype.kind != "f":
        return False
    return float(value) == number


def _power(xp: Any, a: Any, b: Any) -> Any:
    if _is_number(b, -0.5):
        return xp.reciprocal(xp.sqrt(a))  # of -0.0 and -inf as PyTorch and compiled code; 0.5 is a root in NumPy, too
    if a.dtype.kind not in "iu" or b.dtype.kind == "u" or not (getattr(xp, "capturing", False) or (b < 0).any()):
        return xp.power(a, b)
    odd = xp.where(b % 2 == 0, 1, a)
    return xp.where(b >= 0, xp.power(a, xp.maximum(b, 0)), xp.where((a == 1) | (a == -1), odd, 0)).astype(a.dtype)


class _PowRule(Elementwise):
    """Integers to a negative Python integer have no integer result."""

    def check(self, args: tuple[Any, ...]) -> None:
        super().check(args)
        base, exponent = args
        negative = type(exponent) is int and exponent < 0
        if negative and hasattr(base, "dtype") and element_type(base).kind in ("bool", "int"):
            raise RuntimeError("pow: Integers to negative integer powers are not allowed.")


@primitive(
    id="pow",
    names=("pow", "Tensor.pow", "Tensor.__pow__"),
    meta=_PowRule("pow", allowed="int float complex"),
    reference=_power,
    samples=binary(low=0.5, high=3.0, scalars=(2, 0.5, 3.0)),
    errors=[_MISMATCH, error(RuntimeError, "negative integer powers", tensor(2, dtype="int64"), -1)],
)
def pow_(input: Tensor | Scalar, exponent: Tensor | Scalar) -> Tensor:
    """input ** exponent, elementwise. Integer tensors to negative exponents give 0 (1 and -1 keep their meaning)."""
    ...


@pow_.vjp
def _(ct, out, input, exponent, needs):
    base = power = None
    if needs[0]:
        if type(exponent) in (int, float):
            slope = 0.0 if exponent == 0 else ops.mul(ops.pow(input, exponent - 1), exponent)
            base = ops.mul(ct, slope)
        else:
            slope = ops.mul(ops.pow(input, ops.sub(exponent, 1)), exponent)
            base = ops.mul(ct, conjugate(ops.where(ops.eq(exponent, 0), 0.0, slope)))
    if needs[1]:
        logarithm = ops.log(input) if hasattr(input, "dtype") else float(np.log(input)) if input > 0 else 0.0
        slope = ops.mul(out, logarithm)
        if hasattr(input, "dtype"):
            zero = ops.logical_and(ops.eq(input, 0), ops.ge(exponent, 0))
            slope = ops.where(zero, 0.0, slope)
        power = ops.mul(ct, conjugate(slope))
    return base, power


@composite(names=("Tensor.__rpow__",), samples=calls(call(tensor(2, 3, low=0.5), 2.0)))
def rpow(input: Tensor, other: Tensor | Scalar) -> Tensor:
    """other ** input."""
    return ops.pow(other, input)


@composite(
    names=both("float_power"),
    in_place=True,
    samples=calls(call(tensor(2, 3, low=0.5), 2), call(tensor(3, dtype="int64"), 3)),
)
def float_power(input: Tensor | Scalar, exponent: Tensor | Scalar) -> Tensor:
    """input ** exponent in float64 (complex128 for complex operands)."""

    def wide(x: Any) -> Any:
        if not hasattr(x, "dtype"):
            return x if type(x) is complex else float(x)
        return ops.convert_element_type(x, complex128 if element_type(x).kind == "complex" else float64)

    return ops.pow(wide(input), wide(exponent))


# -- others ----------------------------------------------------------------------------------------------


@primitive(
    names=both("atan2", "arctan2"),
    meta=Elementwise("atan2", "float", "bool int float"),
    reference="arctan2",
    samples=binary(low=0.5),
    errors=[_MISMATCH],
)
def atan2(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The angle of the point (other, input), in (-pi, pi]."""
    ...


@atan2.vjp
def _(ct, input, other, needs):
    square = [x * x if isinstance(x, (int, float)) else ops.mul(x, x) for x in (input, other)]
    scale = ops.div(ct, ops.add(*square))
    return ops.mul(scale, other) if needs[0] else None, ops.neg(ops.mul(scale, input)) if needs[1] else None


@primitive(
    names=both("copysign"),
    meta=Elementwise("copysign", "float", "bool int float", exact=True),
    reference="copysign",
    samples=binary(low=0.5),
    errors=[_MISMATCH],
)
def copysign(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The magnitude of ``input`` with the sign of ``other`` (-0.0 and nan have signs)."""
    ...


@copysign.vjp
def _(ct, out, input):
    return ops.where(ops.eq(input, 0), 0.0, ops.mul(ct, ops.div(out, input))), None


@composite(
    names=both("ldexp"),
    in_place=True,
    samples=calls(
        call(tensor(2, 3), tensor(3, dtype="int64")), call(tensor(3), tensor(2, 1, dtype="int32", low=-160, high=160)),
        call(tensor(3, dtype="float64"), tensor(3, dtype="int64", low=-1080, high=1080)),
        call(tensor(3, dtype="float16"), tensor(3, dtype="int64", low=-20, high=20)), call(tensor(3), tensor(3)),
        call(tensor(3, dtype="int64"), tensor(3, dtype="int64")),
    ),
)  # fmt: skip
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2**other; exactly, and in the dtype of ``input``, where ``other`` has integers."""
    kinds = [element_type(x).kind if hasattr(x, "dtype") else "" for x in (input, other)]
    if kinds[1] != "int" or kinds[0] == "complex":
        return ops.mul(input, ops.exp2(other))
    held = input if kinds[0] == "float" else ops.convert_element_type(input, get_default_dtype())
    return narrow(_scaled(widen(held), other), held)


def _scaled(x: Tensor, exponent: Tensor) -> Tensor:
    """x * 2**exponent by three factors. A result below the normal numbers is rounded by the last one alone: a factor
    that takes it down so far leaves nothing of the digits that it rounds away."""
    double = element_type(x).itemsize == 8
    bits, bias, whole = (52, 1023, int64) if double else (23, 127, int32)
    left = ops.clamp(ops.convert_element_type(exponent, int64), -3 * bias, 3 * bias)
    for last in (False, False, True):
        step = ops.clamp(left, 1 - bias, bias)
        if not last:
            step = ops.where(ops.lt(left, 1 - bias), bits + 2 - bias, step)
        left = ops.sub(left, step)
        power = ops.bitwise_left_shift(ops.convert_element_type(ops.add(step, bias), whole), bits)
        x = ops.mul(x, ops.bitcast(power, element_type(x)))
    return x


@primitive(
    names=both("nextafter"),
    meta=Elementwise("nextafter", allowed="float", exact=True),
    reference="nextafter",
    samples=without_gradient(binary(dtypes=("float32", "float64"), mixed=(), scalars=())),
    errors=[_MISMATCH],
)
def nextafter(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The next number of the dtype after ``input`` towards ``other``."""
    ...


@nextafter.vjp
def _():
    return None, None
