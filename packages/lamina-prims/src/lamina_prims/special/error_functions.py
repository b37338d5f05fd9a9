"""erf, erfc, erfcx and their inverses.

Rational approximations of W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23,
1969, in three ranges of |x|; the inverse starts from M. Giles, "Approximating the erfinv function", 2012, and
is refined by Newton's method.

>>> import numpy as np
>>> float(erf(np, np.array(0.5)))
0.5204998778130465
"""

from __future__ import annotations

from typing import Any

__all__ = ["erf", "erfc", "erfcx", "erfinv", "ndtri"]

_A = (
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
    1.85777706184603153e-1,
)
_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
_C = (
    5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01, 2.98635138197400131e02,
    8.81952221241769090e02, 1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03,
    2.15311535474403846e-8,
)  # fmt: skip
_D = (
    1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03,
    3.29079923573345963e03, 4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03,
)  # fmt: skip
_P = (
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
    1.63153871373020978e-2,
)
_Q = (
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_ONE_OVER_SQRT_PI = 5.6418958354775628695e-1


def _ratio(y: Any, top: tuple[float, ...], bottom: tuple[float, ...]) -> Any:
    """Cody's pair of Horner schemes; the last coefficient of ``top`` leads."""
    upper, lower = top[-1] * y, y
    for a, b in zip(top[:-2], bottom[:-1], strict=True):
        upper, lower = (upper + a) * y, (lower + b) * y
    return (upper + top[-2]) / (lower + bottom[-1])


def _small(x: Any) -> Any:
    """erf for |x| <= 0.47."""
    return x * _ratio(x * x, _A, _B)


def _scaled_tail(xp: Any, y: Any) -> Any:
    """exp(y*y) erfc(y) for y > 0.46."""
    middle = _ratio(xp.minimum(y, 4.0), _C, _D)
    far = xp.maximum(y, 4.0)
    square = 1.0 / (far * far)
    rest = (_ONE_OVER_SQRT_PI - square * _ratio(square, _P, _Q)) / far
    return xp.where(y <= 4.0, middle, rest)


def _gauss(xp: Any, y: Any) -> Any:
    """exp(-y*y), with the square split so that its rounding error does not count."""
    head = xp.trunc(xp.minimum(y, 40.0) * 16.0) / 16.0
    return xp.exp(-head * head) * xp.exp(-(y - head) * (y + head))


_SINGLE_LIMIT = 3.95
_SINGLE_TOP = (
    1.1283791065216064, 0.19154267013072968, 0.05287424847483635, 0.0038077819626778364, 0.00028467088122852147,
    2.0258598851796705e-06,
)  # fmt: skip
_SINGLE_BOTTOM = (
    1.0, 0.5030829310417175, 0.11455629765987396, 0.015054336749017239, 0.0011706181103363633, 3.7830413930350915e-05,
)  # fmt: skip


def _erf_single(xp: Any, x: Any) -> Any:
    """erf in float32 by one ratio of polynomials in x * x, within 4e-7: a quarter of the work of the three ranges.

    The coefficients are a fit of our own (iterated weighted least squares on Chebyshev points, all positive).
    """
    x = xp.clip(x, -_SINGLE_LIMIT, _SINGLE_LIMIT)
    square = x * x
    top, bottom = _SINGLE_TOP[-1] * square, _SINGLE_BOTTOM[-1] * square
    for a, b in zip(_SINGLE_TOP[-2:0:-1], _SINGLE_BOTTOM[-2:0:-1], strict=True):
        top += a
        top *= square
        bottom += b
        bottom *= square
    top += _SINGLE_TOP[0]
    bottom += _SINGLE_BOTTOM[0]
    top *= x
    top /= bottom
    return xp.clip(top, -1.0, 1.0)


def erf(xp: Any, x: Any) -> Any:
    """The error function."""
    if x.dtype.itemsize == 4 and x.ndim:
        return _erf_single(xp, x)
    y = xp.abs(x)
    tail = 1.0 - _scaled_tail(xp, xp.maximum(y, 0.4)) * _gauss(xp, xp.minimum(y, 10.0))
    return xp.where(y <= 0.46875, _small(xp.minimum(xp.maximum(x, -1.0), 1.0)), xp.copysign(tail, x))


def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), accurate for large x."""
    y = xp.abs(x)
    tail = _scaled_tail(xp, xp.maximum(y, 0.4)) * _gauss(xp, xp.minimum(y, 30.0))
    near = 1.0 - _small(xp.minimum(xp.maximum(x, -1.0), 1.0))
    return xp.where(y <= 0.46875, near, xp.where(x < 0, 2.0 - tail, tail))


def erfcx(xp: Any, x: Any) -> Any:
    """exp(x*x) erfc(x). Overflows to infinity for large negative x."""
    y = xp.abs(x)
    positive = _scaled_tail(xp, xp.maximum(y, 0.4))
    grown = 2.0 * xp.exp(x * x)
    near = xp.exp(x * x) * (1.0 - _small(xp.minimum(xp.maximum(x, -1.0), 1.0)))
    return xp.where(y <= 0.46875, near, xp.where(x < 0, grown - positive, positive))


_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_OUTER = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    value = coefficients[0] + 0.0 * x
    for c in coefficients[1:]:
        value = value * x + c
    return value


def _inverse(xp: Any, x: Any, q: Any) -> Any:
    """y >= 0 with erf(y) = x and erfc(y) = q, for x in [0, 1); both are given, so that neither end loses digits."""
    w = -xp.log(q * (1.0 + x))
    root = xp.sqrt(xp.maximum(w, 5.0))
    y = xp.where(w < 5.0, _horner(xp.minimum(w, 5.0) - 2.5, _CENTRAL), _horner(root - 3.0, _OUTER)) * x
    y = xp.where(w > 25.0, xp.sqrt(xp.maximum(w - 0.5 * xp.log(xp.maximum(w, 1.0)) - 0.5724, 1.0)), y)
    for _ in range(4 if x.dtype.itemsize == 8 else 2):
        slope = 1.1283791670955126 * _gauss(xp, y)
        miss = xp.where(x < 0.5, erf(xp, y) - x, q - erfc(xp, y))
        step = miss / xp.where(slope == 0, 1.0, slope)
        y = y - step / (1.0 + y * step)  # Halley: the second derivative is -2 y times the first
    return y


def erfinv(xp: Any, x: Any) -> Any:
    """The inverse of erf on [-1, 1]; +-1 give +-inf, beyond is NaN."""
    size = xp.abs(x)
    inside = xp.where(size < 1, size, 0.0 * size)
    y = xp.where(size == 1, xp.inf, _inverse(xp, inside, 1.0 - inside))
    return xp.where(size <= 1, xp.copysign(y, x), xp.nan)


def ndtri(xp: Any, p: Any) -> Any:
    """The quantile of the standard normal distribution on [0, 1]; 0 and 1 give -inf and inf, beyond is NaN."""
    tail = xp.minimum(p, 1.0 - p)
    good = (tail > 0) & (tail <= 0.5)
    q = 2.0 * xp.where(good, tail, 0.25)
    y = 1.4142135623730951 * _inverse(xp, 1.0 - q, q)
    value = xp.where(p < 0.5, -y, y)
    return xp.where(good, value, xp.where(p == 0, -xp.inf, xp.where(p == 1, xp.inf, xp.nan)))
