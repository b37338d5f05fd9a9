"""The gamma function's logarithm and its derivatives: recurrence up to where Stirling's series is exact.

Source: Abramowitz and Stegun, 6.1.41, 6.3.18 and 23.2 (Euler-Maclaurin for the Hurwitz zeta function).

>>> import numpy as np
>>> round(float(lgamma(np, np.array(5.0))), 12) == round(float(np.log(24.0)), 12)
True
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["digamma", "hurwitz_zeta", "lgamma", "polygamma"]

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_SHIFT = 10


def _sin_pi(xp: Any, x: Any) -> Any:
    """|sin(pi x)|, exact zeros at the integers; small numbers keep their digits, on both sides of 0."""
    return xp.abs(xp.sin(math.pi * (x - xp.floor(x + 0.5))))


def lgamma(xp: Any, x: Any) -> Any:
    """log |gamma(x)|; infinite at 0, -1, -2, ..."""
    if x.dtype.itemsize == 4:  # the recurrence and the reflection cancel: only double precision leaves all digits
        return lgamma(xp, x.astype(xp.float64)).astype(xp.float32)
    mirrored = x < 0.5
    y = xp.where(mirrored, 1.0 - x, x)
    small = y < _SHIFT
    product = xp.ones_like(y)
    base = xp.where(small, y, 1.0)
    for k in range(_SHIFT):
        product = product * (base + k)
    high = xp.where(small, y + _SHIFT, y)
    inverse = 1.0 / high
    square = inverse * inverse
    series = xp.zeros_like(y)
    for k in range(8, 0, -1):
        series = series * square + _BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    value = (high - 0.5) * (xp.log(high) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + series * inverse
    value = xp.where(small, value - xp.log(product), value)
    value = xp.where((x == 1.0) | (x == 2.0), 0.0, value)
    value = xp.where(mirrored, math.log(math.pi) - xp.log(_sin_pi(xp, x)) - value, value)
    return xp.where(xp.isinf(x), xp.inf, value)


def digamma(xp: Any, x: Any) -> Any:
    """The derivative of lgamma. NaN at -1, -2, ...; -inf at +0, +inf at -0."""
    if x.dtype.itemsize == 4:
        return digamma(xp, x.astype(xp.float64)).astype(xp.float32)
    mirrored = x < 0.5
    y = xp.where(mirrored, 1.0 - x, x)
    small = y < _SHIFT
    total = xp.zeros_like(y)
    base = xp.where(small, y, 1.0)
    for k in range(_SHIFT):
        total = total + 1.0 / (base + k)
    high = xp.where(small, y + _SHIFT, y)
    square = 1.0 / (high * high)
    series = xp.zeros_like(y)
    for k in range(8, 0, -1):
        series = series * square + _BERNOULLI[k - 1] / (2 * k)
    value = xp.log(high) - 0.5 / high - series * square
    value = xp.where(small, value - total, value)
    part = x - xp.floor(x)
    value = xp.where(mirrored, value - math.pi / xp.tan(math.pi * xp.where(part == 0.0, 0.25, part)), value)
    value = xp.where((x <= 0) & (part == 0.0), xp.nan, value)
    return xp.where(x == 0, xp.copysign(xp.inf, -x), value)


def hurwitz_zeta(xp: Any, s: Any, q: Any) -> Any:
    """sum over k >= 0 of (q + k)**-s for s > 1; NaN for s < 1 and for non-integral s with negative q."""
    total = xp.zeros_like(q + s)
    lift = xp.where(q < 0, xp.minimum(-xp.floor(q), 1000.0), 0.0)
    # terms with a negative base are summed one by one; the rest starts at a positive one
    for k in range(int(lift.max()) if lift.size else 0):
        total = total + xp.where(k < lift, xp.power(q + k, -s), 0.0)
    base = q + lift
    for k in range(_SHIFT):
        total = total + xp.power(base + k, -s)
    high = base + _SHIFT
    tail = xp.power(high, -s)
    total = total + tail * high / xp.where(s == 1, 1.0, s - 1.0) + 0.5 * tail
    factor = s * tail / high
    for k, bernoulli in enumerate(_BERNOULLI[:9], start=1):
        total = total + factor * (bernoulli / math.factorial(2 * k))
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (high * high)
    total = xp.where((q <= 0) & (q == xp.floor(q)), xp.inf, total)
    return xp.where(s > 1, total, xp.where(s == 1, xp.inf, xp.nan))


def polygamma(xp: Any, n: int, x: Any) -> Any:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(xp, x)
    sign = 1.0 if n % 2 else -1.0
    return sign * math.factorial(n) * hurwitz_zeta(xp, xp.full_like(x, n + 1.0), x)
