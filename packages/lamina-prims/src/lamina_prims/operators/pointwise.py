"""Elementwise arithmetic and functions."""

from __future__ import annotations

from ..elementwise import Elementwise
from ..registry import primitive
from ..types import Scalar, Tensor

__all__ = ["add", "mul", "neg", "tanh"]


@primitive(names=("add", "Tensor.add", "Tensor.__add__", "Tensor.__radd__"), meta=Elementwise("add"), reference="add")
def add(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input + other, elementwise with broadcasting and promotion."""
    ...


@add.vjp
def _(ct):
    return ct, ct


@primitive(names=("mul", "Tensor.mul", "Tensor.__mul__", "Tensor.__rmul__"), meta=Elementwise("mul"), reference="multiply")
def mul(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """input * other, elementwise with broadcasting and promotion."""
    ...


@mul.vjp
def _(ct, input, other):
    return mul(ct, other), mul(ct, input)


@primitive(names=("neg", "Tensor.neg", "Tensor.__neg__"), meta=Elementwise("neg", allowed="int float complex"), reference="negative")
def neg(input: Tensor) -> Tensor:
    """-input, elementwise."""
    ...


@neg.vjp
def _(ct):
    return (neg(ct),)


@primitive(names=("tanh", "Tensor.tanh"), meta=Elementwise("tanh", "float", "bool int float complex"), reference="tanh")
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent, elementwise. Saturates to +-1; tanh(nan) is nan."""
    ...


@tanh.vjp
def _(ct, out):
    return (mul(ct, add(1.0, neg(mul(out, out)))),)
