"""Probability distributions: sample, log_prob, entropy, mean and variance of the common ones.

>>> from lamina_tensor import tensor
>>> Bernoulli(tensor(0.5)).entropy()
tensor(0.6931)
"""

from __future__ import annotations

from . import continuous, discrete
from .continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical
from .distribution import Distribution, Independent
from .divergence import kl_divergence

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "LogNormal", "Normal",
    "OneHotCategorical", "Uniform", "kl_divergence",
]  # fmt: skip

_ = continuous, discrete
