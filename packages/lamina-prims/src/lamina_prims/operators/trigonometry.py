"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

import math

from ..registry import both, composite, ops
from ..samples import unary
from ..types import Tensor
from .pointwise import conjugate
from .unary import function

__all__: list[str] = []


# -- trigonometry ----------------------------------------------------------------------------------------


@function("sin")
def sin(input: Tensor) -> Tensor:
    """The sine of an angle in radians."""
    ...


@sin.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.cos(input))),)


@function("cos")
def cos(input: Tensor) -> Tensor:
    """The cosine of an angle in radians."""
    ...


@cos.vjp
def _(ct, input):
    return (ops.neg(ops.mul(ct, conjugate(ops.sin(input)))),)


@function("tan", low=-1.4, high=1.4)
def tan(input: Tensor) -> Tensor:
    """The tangent of an angle in radians."""
    ...


@tan.vjp
def _(ct, out):
    return (ops.mul(ct, ops.add(conjugate(ops.mul(out, out)), 1)),)


@function("arcsin", "arcsin", low=-0.9, high=0.9)
def asin(input: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] with this sine; outside [-1, 1] nan."""
    ...


@asin.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.rsqrt(ops.sub(1, ops.mul(input, input))))),)


@function("arccos", "arccos", low=-0.9, high=0.9)
def acos(input: Tensor) -> Tensor:
    """The angle in [0, pi] with this cosine; outside [-1, 1] nan."""
    ...


@acos.vjp
def _(ct, input):
    return (ops.neg(ops.mul(ct, conjugate(ops.rsqrt(ops.sub(1, ops.mul(input, input)))))),)


@function("arctan", "arctan")
def atan(input: Tensor) -> Tensor:
    """The angle in (-pi/2, pi/2) with this tangent."""
    ...


@atan.vjp
def _(ct, input):
    return (ops.div(ct, conjugate(ops.add(ops.mul(input, input), 1))),)


@function("sinh")
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine."""
    ...


@sinh.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.cosh(input))),)


@function("cosh")
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    ...


@cosh.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.sinh(input))),)


@function("tanh", low=-9.0, high=9.0, names=("nn.functional.tanh",))
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent. Saturates to +-1; tanh(nan) is nan."""
    ...


@tanh.vjp
def _(ct, out):
    return (ops.mul(ct, ops.sub(1, conjugate(ops.mul(out, out)))),)


@function("arcsinh", "arcsinh")
def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    ...


@asinh.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.rsqrt(ops.add(ops.mul(input, input), 1)))),)


@function("arccosh", "arccosh", low=1.1)
def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine; below 1 nan."""
    ...


@acosh.vjp
def _(ct, input):
    return (ops.mul(ct, conjugate(ops.rsqrt(ops.sub(ops.mul(input, input), 1)))),)


@function("arctanh", "arctanh", low=-0.9, high=0.9)
def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent; outside (-1, 1) nan or infinite."""
    ...


@atanh.vjp
def _(ct, input):
    return (ops.div(ct, conjugate(ops.sub(1, ops.mul(input, input)))),)


@composite(names=(*both("sinc"), "special.sinc"), in_place=True, samples=unary(0.1, 3.0, dtypes=("float32", "float64")))
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
    angle = ops.mul(input, math.pi)
    safe = ops.where(ops.eq(angle, 0), 1.0, angle)
    return ops.where(ops.eq(angle, 0), 1.0, ops.div(ops.sin(safe), safe))


@composite(names=both("deg2rad"), in_place=True, samples=unary(dtypes=("float32", "int64")))
def deg2rad(input: Tensor) -> Tensor:
    """Degrees to radians."""
    return ops.mul(input, math.pi / 180)


@composite(names=both("rad2deg"), in_place=True, samples=unary(dtypes=("float32", "int64")))
def rad2deg(input: Tensor) -> Tensor:
    """Radians to degrees."""
    return ops.mul(input, 180 / math.pi)
