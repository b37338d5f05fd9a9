"""Special functions over an array namespace: what the references of ``operators.special`` compute with.

Every function takes the namespace (NumPy or CuPy) and float32 or float64 arrays and returns the same dtype.
"""

from __future__ import annotations

from .bessel import scaled_bessel
from .error_functions import erf, erfc, erfcx, erfinv, ndtri
from .gamma import digamma, hurwitz_zeta, lgamma, polygamma

__all__ = [
    "digamma", "erf", "erfc", "erfcx", "erfinv", "hurwitz_zeta", "lgamma", "ndtri", "polygamma", "scaled_bessel",
]  # fmt: skip
