"""Special functions: error functions, the gamma family, Bessel functions, and what is composed of them.

The numbers come from ``lamina_prims.special`` (plain array arithmetic, since SciPy is no dependency).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import special as functions
from ..elementwise import Elementwise
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, chain, error, nary, tensor, unary
from ..types import Scalar, Tensor

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "log_ndtr",
    "multigammaln", "ndtr", "ndtri", "polygamma", "xlog1py", "zeta",
]  # fmt: skip

_SQRT_HALF = math.sqrt(0.5)
_REAL = "bool int float"


def _rule(name: str) -> Elementwise:
    return Elementwise(name, "float", _REAL, tensors=1)


def _gaussian(x: Tensor) -> Tensor:
    return ops.exp(ops.neg(ops.mul(x, x)))


# -- error functions --------------------------------------------------------------------------------


@primitive(names=(*both("erf"), "special.erf"), meta=_rule("erf"), reference=functions.erf, samples=unary())
def erf(input: Tensor) -> Tensor:
    """2 / sqrt(pi) times the integral of ops.exp(-t*t) from 0 to ``input``, elementwise."""
    ...


@erf.vjp
def _(ct, input):
    return (ops.mul(ct, ops.mul(_gaussian(input), 2.0 / math.sqrt(math.pi))),)


@primitive(names=(*both("erfc"), "special.erfc"), meta=_rule("erfc"), reference=functions.erfc, samples=unary())
def erfc(input: Tensor) -> Tensor:
    """1 - erf(input), accurate for large arguments."""
    ...


@erfc.vjp
def _(ct, input):
    return (ops.mul(ct, ops.mul(_gaussian(input), -2.0 / math.sqrt(math.pi))),)


@primitive(names=("special.erfcx",), meta=_rule("erfcx"), reference=functions.erfcx, samples=unary())
def erfcx(input: Tensor) -> Tensor:
    """exp(input**2) erfc(input), elementwise."""
    ...


@erfcx.vjp
def _(ct, out, input):
    return (ops.mul(ct, ops.sub(ops.mul(ops.mul(input, out), 2.0), 2.0 / math.sqrt(math.pi))),)


@primitive(
    names=(*both("erfinv"), "special.erfinv"),
    meta=_rule("erfinv"),
    reference=functions.erfinv,
    samples=unary(-0.99, 0.99),
)
def erfinv(input: Tensor) -> Tensor:
    """The inverse of erf on (-1, 1), elementwise."""
    ...


@erfinv.vjp
def _(ct, out):
    return (ops.mul(ct, ops.mul(ops.exp(ops.mul(out, out)), 0.5 * math.sqrt(math.pi))),)


@primitive(names=("special.ndtri",), meta=_rule("ndtri"), reference=functions.ndtri, samples=unary(0.01, 0.99))
def ndtri(input: Tensor) -> Tensor:
    """The quantile of the standard normal distribution, elementwise on (0, 1)."""
    ...


@ndtri.vjp
def _(ct, out):
    return (ops.mul(ct, ops.mul(ops.exp(ops.mul(ops.mul(out, out), 0.5)), math.sqrt(2.0 * math.pi))),)


@composite(names=("special.ndtr",), samples=unary())
def ndtr(input: Tensor) -> Tensor:
    """The standard normal distribution function, elementwise."""
    return ops.mul(erfc(ops.mul(input, -_SQRT_HALF)), 0.5)


@composite(
    names=("special.log_ndtr",),
    samples=chain(unary(-9, 5, special=False), calls(call(np.array([-1.0, -0.995, -1.005])))),
)
def log_ndtr(input: Tensor) -> Tensor:
    """log(ndtr(input)), accurate far to the left."""
    scaled = ops.mul(input, _SQRT_HALF)
    low = ops.minimum(scaled, -0.5)  # each branch is cut off well inside the other's range
    left = ops.sub(ops.log(ops.mul(erfcx(ops.neg(low)), 0.5)), ops.mul(low, low))
    right = ops.log1p(ops.mul(erfc(ops.maximum(scaled, -0.9)), -0.5))
    return ops.where(ops.lt(input, -1.0), left, right)


# -- gamma ------------------------------------------------------------------------------------------


@primitive(
    names=(*both("lgamma"), "special.gammaln"), meta=_rule("lgamma"), reference=functions.lgamma, samples=unary(0.1, 9)
)
def lgamma(input: Tensor) -> Tensor:
    """log |gamma(input)|, elementwise."""
    ...


@lgamma.vjp
def _(ct, input):
    return (ops.mul(ct, digamma(input)),)


@primitive(
    names=(*both("digamma"), "special.digamma", "special.psi"),
    meta=_rule("digamma"),
    reference=functions.digamma,
    samples=unary(0.1, 9),
)
def digamma(input: Tensor) -> Tensor:
    """The derivative of lgamma, elementwise."""
    ...


@digamma.vjp
def _(ct, input):
    return (ops.mul(ct, polygamma(1, input)),)


@primitive(
    names=("special.zeta",),
    meta=Elementwise("zeta", "float", _REAL),
    reference=functions.hurwitz_zeta,
    samples=calls(
        call(tensor(2, 3, low=1.5, high=5), tensor(2, 3, low=0.5, high=4), gradient=False),
        call(2.0, tensor(4, dtype="float64", low=0.5, high=9)),
        call(tensor(3, low=1.5, high=5), 1.0, gradient=False),
    ),
)
def zeta(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    """Hurwitz's zeta function: sum over k >= 0 of (other + k) ** -input. Differentiable in ``other``."""
    ...


def _plus_one(s: Any) -> Any:
    return ops.add(s, 1) if hasattr(s, "shape") else s + 1


@zeta.vjp
def _(ct, input, other, needs):
    if needs[0]:
        raise RuntimeError("zeta: no derivative with respect to the first argument is known")
    return None, ops.mul(ct, ops.neg(ops.mul(zeta(_plus_one(input), other), input)))


@composite(
    names=("polygamma", "special.polygamma"),
    samples=calls(
        call(1, tensor(2, 3, low=0.2, high=5)),
        call(0, tensor(3, low=0.2, high=5)),
        call(3, tensor(3, dtype="float64", low=0.5)),
    ),
    errors=[error(RuntimeError, "non-negative", -1, tensor(3))],
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma, elementwise."""
    if n < 0:
        raise RuntimeError(f"polygamma: n must be non-negative, got {n}")
    if n == 0:
        return digamma(input)
    return ops.mul(zeta(n + 1.0, input), float(math.factorial(n)) if n % 2 else -float(math.factorial(n)))


@composite(
    names=("special.multigammaln", "mvlgamma", "Tensor.mvlgamma"), samples=calls(call(tensor(3, low=2.5, high=6), 3))
)
def multigammaln(input: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function of dimension ``p``, elementwise; ``input`` > (p - 1) / 2."""
    total = lgamma(input)
    for j in range(1, p):
        total = ops.add(total, lgamma(ops.sub(input, 0.5 * j)))
    return ops.add(total, 0.25 * p * (p - 1) * math.log(math.pi))


# -- Bessel -----------------------------------------------------------------------------------------


def _scaled(order: int) -> Any:
    return lambda xp, x: functions.scaled_bessel(xp, order, x)


@primitive(names=("special.i0e",), meta=_rule("i0e"), reference=_scaled(0), samples=unary(-40, 40))
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) I0(x): the scaled modified Bessel function of order 0, elementwise."""
    ...


@i0e.vjp
def _(ct, out, input):
    return (ops.mul(ct, ops.sub(i1e(input), ops.mul(_sign(input), out))),)


@primitive(names=("special.i1e",), meta=_rule("i1e"), reference=_scaled(1), samples=unary(-40, 40))
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) I1(x): the scaled modified Bessel function of order 1, elementwise."""
    ...


@i1e.vjp
def _(ct, out, input):
    zero = ops.eq(input, 0)
    safe = ops.where(zero, 1.0, input)
    slope = ops.sub(i0e(input), ops.mul(out, ops.add(_sign(input), ops.reciprocal(safe))))
    return (ops.mul(ct, ops.where(zero, 0.5, slope)),)


def _sign(input: Tensor) -> Tensor:
    return ops.where(ops.gt(input, 0), 1.0, ops.where(ops.lt(input, 0), -1.0, ops.mul(input, 0.0)))


@composite(names=(*both("i0"), "special.i0"), samples=unary(-5, 5))
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0, elementwise."""
    return ops.mul(i0e(input), ops.exp(ops.abs(input)))


@i0.vjp
def _(ct, input):
    return (ops.mul(ct, i1(input)),)


@composite(names=("special.i1",), samples=unary(-5, 5))
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1, elementwise."""
    return ops.mul(i1e(input), ops.exp(ops.abs(input)))


# -- entropy and logarithms -------------------------------------------------------------------------


@composite(names=("special.xlog1py",), samples=nary(2, 0.1, 3))
def xlog1py(input: Tensor | Scalar, other: Tensor) -> Tensor:
    """input * ops.log1p(other), and 0 where ``input`` is 0 (NaN where ``other`` is NaN)."""
    zero = ops.logical_and(ops.eq(input, 0), ops.eq(other, other))
    return ops.where(zero, 0.0, ops.mul(input, ops.log1p(ops.where(zero, 0.0, other))))


@xlog1py.vjp
def _(ct, input, other, needs):
    gi = go = None
    if needs[0]:
        outside = ops.logical_and(ops.eq(input, 0), ops.le(other, -1))
        gi = ops.mul(ct, ops.where(outside, 0.0, ops.log1p(ops.where(outside, 0.0, other))))
    if needs[1]:
        go = ops.mul(ct, ops.div(input, ops.add(other, 1.0)))
    return gi, go


@composite(names=("special.entr",), samples=unary(0.1, 3))
def entr(input: Tensor) -> Tensor:
    """-x ops.log(x) for x > 0, 0 at 0, -inf below."""
    positive = ops.gt(input, 0)
    value = ops.neg(ops.mul(input, ops.log(ops.where(positive, input, 1.0))))
    rest = ops.where(ops.eq(input, 0), ops.mul(input, 0.0), -math.inf)
    return ops.where(ops.logical_or(positive, ops.isnan(input)), value, rest)


@composite(names=("Tensor.polygamma",), id="polygamma.method", samples=calls(call(tensor(3, low=0.5, high=5), 2)))
def polygamma_method(input: Tensor, n: int) -> Tensor:
    """The ``n``-th derivative of digamma, elementwise."""
    return ops.polygamma(n, input)
