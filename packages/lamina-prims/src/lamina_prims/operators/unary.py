"""Elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays import element_type
from ..elementwise import Elementwise
from ..operator import Operator
from ..promotion import get_default_dtype
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor, unary
from ..types import Tensor
from .pointwise import conjugate

__all__: list[str] = []

_NOT_TENSOR = error(TypeError, "must be a tensor", 3)


def function(
    reference: Any,
    *aliases: str,
    kinds: str = "bool int float complex",
    compute: str = "float",
    names: tuple[str, ...] = (),
    low: float = -3.0,
    high: float = 3.0,
    dtypes: tuple[str, ...] = ("float32", "float64", "bfloat16", "int64"),
    **facets: Any,
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare a primitive of one tensor, spelled as a function and a method, and under ``aliases``."""

    def declare(function: Callable[..., Any]) -> Operator:
        id = function.__name__.rstrip("_")
        wrapped = primitive(
            id=id,
            names=both(id, *aliases) + names,
            meta=Elementwise(id, compute, kinds, tensors=1, **facets),
            reference=reference,
            samples=unary(low, high, dtypes=dtypes),
            errors=[_NOT_TENSOR],
        )
        return wrapped(function)

    return declare


# -- signs and rounding ----------------------------------------------------------------------------------


@function(
    "negative",
    "negative",
    compute="same",
    kinds="int float complex",
    names=("Tensor.__neg__",),
    advice="use logical_not (~)",
)
def neg(input: Tensor) -> Tensor:
    """-input, elementwise."""
    ...


@neg.vjp
def _(ct):
    return (ops.neg(ct),)


@function("absolute", "absolute", compute="abs", kinds="int float complex", names=("Tensor.__abs__",))
def abs_(input: Tensor) -> Tensor:
    """The absolute value; the modulus of a complex number."""
    ...


@abs_.vjp
def _(ct, input):
    return (ops.mul(ct, ops.sgn(input)),)


def _sign(xp: Any, x: Any) -> Any:
    return x if x.dtype.kind == "b" else xp.subtract(x > 0, x < 0, dtype=x.dtype)


@function(_sign, compute="same", kinds="bool int float")
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for nan."""
    ...


@sign.vjp
def _(ct):
    return (ops.zeros_like(ct),)


@composite(names=both("sgn"), in_place=True, samples=unary())
def sgn(input: Tensor) -> Tensor:
    """The sign; of a complex number z, z / abs(z), or 0 for 0."""
    if element_type(input).kind != "complex":
        return ops.sign(input)
    size = ops.abs(input)
    return ops.where(ops.eq(size, 0), 0.0, ops.div(input, size))


def _real_only(reference: str) -> Callable[..., Any]:
    """Rounding leaves integers as they are."""
    return lambda xp, x: getattr(xp, reference)(x) if x.dtype.kind == "f" else x


@function(
    _real_only("floor"),
    compute="same",
    kinds="int float",
)
def floor(input: Tensor) -> Tensor:
    """The largest integer not above, in the same dtype."""
    ...


@function(
    _real_only("ceil"),
    compute="same",
    kinds="int float",
)
def ceil(input: Tensor) -> Tensor:
    """The smallest integer not below, in the same dtype."""
    ...


@function(
    _real_only("trunc"),
    "fix",
    compute="same",
    kinds="int float",
)
def trunc(input: Tensor) -> Tensor:
    """Rounded to zero, in the same dtype."""
    ...


@function(_real_only("rint"), compute="same", kinds="int float", names=("special.round",))
def round_(input: Tensor) -> Tensor:
    """The nearest integer in the same dtype; halves go to the even one."""
    ...


for _op in (floor, ceil, trunc, round_):
    _op.vjp(lambda ct: (ops.zeros_like(ct),))


@composite(
    id="round.decimals",
    names=both("round"),
    in_place=True,
    samples=calls(call(tensor(2, 3), decimals=1)),
)
def round_decimals(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to ``decimals`` digits after the point (before it when negative)."""
    if decimals == 0:
        return ops.round(input)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return ops.div(ops.round(ops.mul(input, scale)), scale)
    return ops.mul(ops.round(ops.div(input, scale)), scale)


@composite(names=both("frac"), in_place=True, samples=unary(dtypes=("float32", "float64")))
def frac(input: Tensor) -> Tensor:
    """What is behind the point: input - trunc(input)."""
    return ops.sub(input, ops.trunc(input))


@composite(names=("positive", "Tensor.positive", "Tensor.__pos__"), samples=unary())
def positive(input: Tensor) -> Tensor:
    """+input: the tensor itself."""
    return input


# -- exponentials and logarithms -------------------------------------------------------------------------


@function("exp")
def exp(input: Tensor) -> Tensor:
    """e ** input."""
    ...


@exp.vjp
def _(ct, out):
    return (ops.mul(ct, conjugate(out)),)


@function("exp2", kinds="bool int float", names=("special.exp2",))
def exp2(input: Tensor) -> Tensor:
    """2 ** input."""
    ...


@exp2.vjp
def _(ct, out):
    return (ops.mul(ct, ops.mul(out, math.log(2))),)


@function("expm1", kinds="bool int float", names=("special.expm1",))
def expm1(input: Tensor) -> Tensor:
    """e ** input - 1, exact near 0."""
    ...


@expm1.vjp
def _(ct, out):
    return (ops.mul(ct, ops.add(out, 1)),)


@function("log", low=0.1)
def log(input: Tensor) -> Tensor:
    """The natural logarithm; log(0) is -inf, of negative numbers nan."""
    ...


@log.vjp
def _(ct, input):
    return (ops.div(ct, conjugate(input)),)


@function("log2", low=0.1, kinds="bool int float")
def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2."""
    ...


@log2.vjp
def _(ct, input):
    return (ops.div(ct, ops.mul(input, math.log(2))),)


@function("log10", low=0.1, kinds="bool int float")
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10."""
    ...


@log10.vjp
def _(ct, input):
    return (ops.div(ct, ops.mul(input, math.log(10))),)


@function("log1p", low=-0.9, kinds="bool int float", names=("special.log1p",))
def log1p(input: Tensor) -> Tensor:
    """log(1 + input), exact near 0."""
    ...


@log1p.vjp
def _(ct, input):
    return (ops.div(ct, ops.add(input, 1)),)


@function("sqrt", low=0.1)
def sqrt(input: Tensor) -> Tensor:
    """The square root; of negative numbers nan."""
    ...


@sqrt.vjp
def _(ct, out):
    return (ops.div(ct, ops.mul(conjugate(out), 2)),)


@function(lambda xp, x: 1 / xp.sqrt(x), low=0.1)
def rsqrt(input: Tensor) -> Tensor:
    """1 / sqrt(input)."""
    ...


@rsqrt.vjp
def _(ct, out):
    out = conjugate(out)
    return (ops.mul(ct, ops.mul(ops.mul(out, ops.mul(out, out)), -0.5)),)


@function(lambda xp, x: 1 / x, low=0.1)
def reciprocal(input: Tensor) -> Tensor:
    """1 / input."""
    ...


@reciprocal.vjp
def _(ct, out):
    out = conjugate(out)
    return (ops.neg(ops.mul(ct, ops.mul(out, out))),)


@composite(names=both("square"), in_place=True, samples=unary())
def square(input: Tensor) -> Tensor:
    """input * input."""
    return ops.mul(input, input)


@composite(names=(*both("sigmoid"), "special.expit", "nn.functional.sigmoid"), in_place=True, samples=unary())
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)); ints give the default dtype."""
    return ops.reciprocal(ops.add(ops.exp(ops.neg(_floating(input))), 1.0))


@sigmoid.vjp
def _(ct, out):
    return (ops.mul(ct, ops.mul(ops.sub(1.0, out), conjugate(out))),)


def _floating(input: Any) -> Any:
    kind = element_type(input).kind
    return ops.convert_element_type(input, get_default_dtype()) if kind in ("bool", "int") else input


@composite(
    names=(*both("logit"), "special.logit"),
    in_place=True,
    samples=unary(0.1, 0.9, dtypes=("float32", "float64"), special=False),
)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(input / (1 - input)), with input clamped to [eps, 1 - eps] when ``eps`` is given."""
    if eps is not None:
        input = ops.clamp(input, eps, 1 - eps)
    return ops.log(ops.div(input, ops.sub(1, input)))
