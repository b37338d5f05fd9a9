"""Normal, LogNormal, Uniform, Exponential, Laplace."""

from __future__ import annotations

import math
from typing import Any

from .. import random
from ..namespace import root
from ..tensor import Tensor
from .distribution import Distribution, broadcast, check

__all__ = ["Exponential", "Laplace", "LogNormal", "Normal", "Uniform"]


class Normal(Distribution):
    """Mean ``loc``, standard deviation ``scale`` > 0."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        check("Normal", self.scale > 0, "scale must be positive")
        super().__init__(self.loc.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        noise = random.randn(self._shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        scaled = (value - self.loc) / self.scale
        return -0.5 * scaled * scaled - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of at most ``value``."""
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def entropy(self) -> Tensor:  # noqa: D102
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale * self.scale)


class LogNormal(Normal):
    """The exponential of a Normal."""

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        return super().log_prob(value.log()) - value.log()

    def entropy(self) -> Tensor:  # noqa: D102
        return super().entropy() + self.loc

    mean = property(lambda self: (self.loc + self.scale * self.scale / 2).exp())
    variance = property(lambda self: ((self.scale * self.scale).exp() - 1) * (2 * self.loc + self.scale**2).exp())
    stddev = property(lambda self: self.variance.sqrt())


class Uniform(Distribution):
    """Equally likely in [low, high)."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast(low, high)
        check("Uniform", self.low < self.high, "low must be below high")
        super().__init__(self.low.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        drawn = random.rand(self._shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        inside = (self.low <= value) & (value < self.high)
        return root.where(inside, -(self.high - self.low).log(), -math.inf)

    def entropy(self) -> Tensor:  # noqa: D102
        return (self.high - self.low).log()

    mean = property(lambda self: (self.low + self.high) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)


class Exponential(Distribution):
    """Density rate * exp(-rate * x)."""

    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        check("Exponential", self.rate > 0, "rate must be positive")
        super().__init__(self.rate.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        drawn = random.rand(self._shape(sample_shape), dtype=self.rate.dtype)
        return -root.log1p(-drawn) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        return self.rate.log() - self.rate * value

    def entropy(self) -> Tensor:  # noqa: D102
        return 1.0 - self.rate.log()

    mean = property(lambda self: 1 / self.rate)
    variance = property(lambda self: 1 / (self.rate * self.rate))


class Laplace(Distribution):
    """Density exp(-|x - loc| / scale) / (2 scale)."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        check("Laplace", self.scale > 0, "scale must be positive")
        super().__init__(self.loc.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        drawn = random.rand(self._shape(sample_shape), dtype=self.loc.dtype) - 0.5
        return self.loc - self.scale * drawn.sign() * root.log1p(-2 * drawn.abs())

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:  # noqa: D102
        return 1 + (2 * self.scale).log()

    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale * self.scale)
