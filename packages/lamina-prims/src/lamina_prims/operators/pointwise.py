"""Elementwise arithmetic of two operands."""

from __future__ import annotations

from typing import Any

from ..arrays import element_type
from ..elementwise import Elementwise
from ..registry import both, composite, ops, primitive
from ..samples import binary, call, calls, error, tensor
from ..types import Scalar, Tensor

__all__ = ["add", "div", "floor_divide", "fmod", "mul", "remainder", "sub", "trunc_divide"]  # fmt: skip

_MISMATCH = error(RuntimeError, r"do not broadcast", tensor(2, 3), tensor(2, 4))
_KIND = error(TypeError, "a tensor or a number", tensor(2), "a")


def conjugate(x: Any) -> Any:
    """The complex conjugate; real tensors and numbers as they are."""
    if type(x) is complex:
        return x.conjugate()
    return ops.conj_physical(x) if hasattr(x, "dtype") and element_type(x).kind == "complex" else x


def _nothing(ct: Any, needs: Any) -> tuple[Any, Any]:
    """The gradients of what is flat wherever it is differentiable: zeros, so that every leaf gets a gradient."""
    zeros = ops.zeros_like(ct)
    return zeros if needs[0] else None, zeros if needs[1] else None


@primitive(
    names=("add", "Tensor.add", "Tensor.__add__", "Tensor.__radd__"),
    meta=Elementwise("add"),
    reference="add",
    samples=binary(),
    errors=[_MISMATCH, _KIND],
)
def add(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input + other, elementwise with broadcasting and promotion."""
    ...


@add.vjp
def _(ct):
    return ct, ct


@composite(id="add.alpha", names=both("add"), in_place=True, samples=calls(call(tensor(2, 3), tensor(3), alpha=2)))
def add_alpha(input: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1) -> Tensor:
    """input + alpha * other."""
    return ops.add(input, other if type(alpha) in (int, float) and alpha == 1 else ops.mul(other, alpha))


_NO_BOOL = "use logical_xor (^) or logical_not (~) on bools"


@primitive(
    names=("sub", "subtract", "Tensor.sub", "Tensor.subtract", "Tensor.__sub__"),
    meta=Elementwise("sub", allowed="int float complex", advice=_NO_BOOL),
    reference="subtract",
    samples=binary(),
    errors=[_MISMATCH, error(RuntimeError, "logical_xor", tensor(2, dtype="bool"), tensor(2, dtype="bool"))],
)
def sub(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input - other, elementwise with broadcasting and promotion."""
    ...


@sub.vjp
def _(ct, needs):
    return ct if needs[0] else None, ops.neg(ct) if needs[1] else None


@composite(
    id="sub.alpha",
    names=both("sub", "subtract"),
    in_place=True,
    samples=calls(call(tensor(2, 3), tensor(3), alpha=2)),
)
def sub_alpha(input: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1) -> Tensor:
    """input - alpha * other."""
    return ops.sub(input, other if type(alpha) in (int, float) and alpha == 1 else ops.mul(other, alpha))


@composite(names=("rsub", "Tensor.__rsub__"), samples=calls(call(tensor(2, 3), 2.0)))
def rsub(input: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1) -> Tensor:
    """other - alpha * input."""
    return ops.sub(other, input if type(alpha) in (int, float) and alpha == 1 else ops.mul(input, alpha))


@primitive(
    names=("mul", "multiply", "Tensor.mul", "Tensor.multiply", "Tensor.__mul__", "Tensor.__rmul__"),
    meta=Elementwise("mul"),
    reference="multiply",
    samples=binary(),
    errors=[_MISMATCH],
)
def mul(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input * other, elementwise with broadcasting and promotion."""
    ...


@mul.vjp
def _(ct, input, other, needs):
    return (
        ops.mul(ct, conjugate(other)) if needs[0] else None,
        ops.mul(ct, conjugate(input)) if needs[1] else None,
    )


@primitive(
    names=("div", "divide", "true_divide", "Tensor.div", "Tensor.divide", "Tensor.true_divide", "Tensor.__truediv__"),
    meta=Elementwise("div", "float"),
    reference="true_divide",
    samples=binary(low=1.0),
    errors=[_MISMATCH],
)
def div(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input / other, elementwise; ints give the default dtype. x / 0 is an infinity or nan."""
    ...


@div.vjp
def _(ct, out, other, needs):
    over = ops.div(ct, conjugate(other))
    return over if needs[0] else None, ops.neg(ops.mul(over, conjugate(out))) if needs[1] else None


@composite(
    id="div.rounding",
    names=both("div", "divide"),
    in_place=True,
    samples=calls(
        call(tensor(2, 3), tensor(3, low=0.5), rounding_mode="floor"),
        call(tensor(2, 3), tensor(3, low=0.5), rounding_mode="trunc"),
    ),
    errors=[error(RuntimeError, "rounding_mode", tensor(2), tensor(2), rounding_mode="up")],
)
def div_rounding(input: Tensor, other: Tensor | Scalar, *, rounding_mode: str | None) -> Tensor:
    """input / other, rounded ``"floor"`` (down), ``"trunc"`` (to zero) or (None) not at all."""
    if rounding_mode is None:
        return ops.div(input, other)
    if rounding_mode == "floor":
        return ops.floor_divide(input, other)
    if rounding_mode == "trunc":
        return ops.trunc_divide(input, other)
    raise RuntimeError(f"div: rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}")


@composite(names=("Tensor.__rtruediv__", "Tensor.__rdiv__"), samples=calls(call(tensor(2, 3, low=0.5), 2.0)))
def rdiv(input: Tensor, other: Tensor | Scalar) -> Tensor:
    """other / input."""
    return ops.div(other, input)


def _divisor(xp: Any, a: Any, b: Any) -> None:
    if getattr(xp, "capturing", False):
        return  # a graph of work for a device is being made: there are no values to look at
    if a.dtype.kind in "iu" and a.size and not b.all():
        raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    _divisor(xp, a, b)
    return xp.floor_divide(a, b)


def _trunc_divide(xp: Any, a: Any, b: Any) -> Any:
    _divisor(xp, a, b)
    if a.dtype.kind == "f":
        return xp.trunc(xp.true_divide(a, b))
    if a.dtype.kind == "u":
        return xp.floor_divide(a, b)
    quotient = xp.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    _divisor(xp, a, b)
    return xp.remainder(a, b)


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    _divisor(xp, a, b)
    return xp.fmod(a, b)


_REAL = "int float"
_BY_ZERO = error(RuntimeError, "zero", tensor(2, dtype="int64", low=1), 0)


@primitive(
    names=("floor_divide", "Tensor.floor_divide", "Tensor.__floordiv__"),
    meta=Elementwise("floor_divide", allowed=_REAL),
    reference=_floor_divide,
    samples=binary(low=1.0, high=5.0),
    errors=[_MISMATCH, _BY_ZERO],
)
def floor_divide(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The quotient rounded down. Integers by zero raise a RuntimeError."""
    ...


@floor_divide.vjp
def _(ct, needs):
    return _nothing(ct, needs)


@composite(names=("Tensor.__rfloordiv__",), samples=calls(call(tensor(2, 3, low=0.5), 2.0)))
def rfloor_divide(input: Tensor, other: Tensor | Scalar) -> Tensor:
    """other // input."""
    return ops.floor_divide(other, input)


@primitive(
    meta=Elementwise("trunc_divide", allowed=_REAL),
    reference=_trunc_divide,
    samples=binary(low=1.0, high=5.0),
    errors=[_MISMATCH, _BY_ZERO],
)
def trunc_divide(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """The quotient rounded to zero, as C divides integers."""
    ...


@trunc_divide.vjp
def _(ct, needs):
    return _nothing(ct, needs)


@primitive(
    names=("remainder", "Tensor.remainder", "Tensor.__mod__"),
    meta=Elementwise("remainder", allowed=_REAL, rounds=True),
    reference=_remainder,
    samples=binary(low=1.0, high=5.0),
    errors=[_MISMATCH, _BY_ZERO],
)
def remainder(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input - other * floor(input / other): the sign is the divisor's, as Python's %."""
    ...


@remainder.vjp
def _(ct, input, other, needs):
    by = ops.neg(ops.mul(ct, ops.floor_divide(input, other))) if needs[1] else None
    return ct if needs[0] else None, by


@composite(names=("Tensor.__rmod__",), samples=calls(call(tensor(2, 3, low=0.5), 2.0, gradient=False)))
def rremainder(input: Tensor, other: Tensor | Scalar) -> Tensor:
    """other % input."""
    return ops.remainder(other, input)


@primitive(
    names=both("fmod"),
    meta=Elementwise("fmod", allowed=_REAL, rounds=True),
    reference=_fmod,
    samples=binary(low=1.0, high=5.0),
    errors=[_MISMATCH, _BY_ZERO],
)
def fmod(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input - other * trunc(input / other): the sign is the dividend's, as C's fmod."""
    ...


@fmod.vjp
def _(ct, input, other, needs):
    by = ops.neg(ops.mul(ct, ops.trunc_divide(input, other))) if needs[1] else None
    return ct if needs[0] else None, by
