"""Modified Bessel functions of the first kind, scaled by exp(-|x|).

Below 30: the integral over one period of exp(|x| (cos t - 1)) cos(n t), by the trapezoidal rule, which converges
exponentially; above: Hankel's asymptotic series (Abramowitz and Stegun 9.6.19, 9.7.1).

>>> import numpy as np
>>> round(float(scaled_bessel(np, 0, np.array(1.0)) * np.e), 12)
1.266065877752
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["scaled_bessel"]

_POINTS = 48
_LIMIT = 30.0


def scaled_bessel(xp: Any, order: int, x: Any) -> Any:
    """exp(-|x|) I_order(x) for order 0 or 1."""
    size = xp.abs(x)
    near = xp.minimum(size, _LIMIT)
    total = xp.zeros_like(size)
    for k in range(_POINTS):
        angle = 2.0 * math.pi * k / _POINTS
        total = total + xp.exp(near * (math.cos(angle) - 1.0)) * math.cos(order * angle)
    far = xp.maximum(size, _LIMIT)
    term = xp.ones_like(size)
    series = term
    for k in range(1, 20):
        term = term * (-(4.0 * order * order - (2 * k - 1) ** 2)) / (8.0 * k * far)
        series = series + term
    value = xp.where(size <= _LIMIT, total / _POINTS, series / xp.sqrt(2.0 * math.pi * far))
    value = xp.where(xp.isnan(x), x, value)
    return xp.copysign(value, x) if order else value
