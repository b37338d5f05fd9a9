"""Bernoulli, Categorical, OneHotCategorical: by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from lamina_prims import operator
from lamina_prims.dims import broadcast_shapes

from .. import random
from ..namespace import root
from ..tensor import Tensor
from .distribution import Distribution, broadcast, check

__all__ = ["Bernoulli", "Categorical", "OneHotCategorical"]


def _one_of(name: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError(f"{name}: give either probs or logits, not both or neither")


def _within(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1, so that logarithms are finite."""
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}.get(probs.dtype.name, 2.0**-23)
    return probs.clamp(eps, 1 - eps)


class Bernoulli(Distribution):
    """1 with probability ``probs``, else 0."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of("Bernoulli", probs, logits)
        self._probs = None if probs is None else broadcast(probs)[0]
        self._logits = None if logits is None else broadcast(logits)[0]
        if self._probs is not None:
            check("Bernoulli", (self._probs >= 0) & (self._probs <= 1), "probs must be in [0, 1]")
        super().__init__((self._probs if self._logits is None else self._logits).shape)

    @property
    def probs(self) -> Tensor:
        """Probability of 1."""
        return self._logits.sigmoid() if self._probs is None else self._probs  # type: ignore[union-attr]

    @property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        if self._logits is not None:
            return self._logits
        kept = _within(self._probs)  # type: ignore[arg-type]
        return kept.log() - root.log1p(-kept)

    def sample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return random.bernoulli(self.probs.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        logits, value = root.broadcast_tensors(self.logits, value)
        return -operator("binary_cross_entropy_with_logits")(logits, value, reduction="none")

    def entropy(self) -> Tensor:  # noqa: D102
        return operator("binary_cross_entropy_with_logits")(self.logits, self.probs, reduction="none")

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))


class Categorical(Distribution):
    """An index below the last dimension's size, by probabilities (normalised here) or logits."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one_of("Categorical", probs, logits)
        given = probs if logits is None else logits
        if given.dim() < 1:
            raise ValueError("Categorical: probs or logits must have a dimension")
        if logits is None:
            check("Categorical", probs >= 0, "probs must not be negative")
            self._probs: Tensor | None = probs / probs.sum(-1, keepdim=True)
            self._logits: Tensor | None = None
        else:
            self._probs, self._logits = None, logits - logits.logsumexp(-1, keepdim=True)
        self._events = given.shape[-1]
        super().__init__(given.shape[:-1])

    @property
    def probs(self) -> Tensor:
        """Probabilities that sum to 1."""
        return self._logits.softmax(-1) if self._probs is None else self._probs  # type: ignore[union-attr]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return _within(self._probs).log() if self._logits is None else self._logits  # type: ignore[arg-type]

    def _draw(self, sample_shape: Any) -> Tensor:
        count = 1
        for size in tuple(sample_shape):
            count *= size
        rows = self.probs.detach().reshape(-1, self._events)
        drawn = random.multinomial(rows, count, True)
        return drawn.t().reshape((*tuple(sample_shape), *self.batch_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return self._draw(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        value = value.long().unsqueeze(-1)
        logits = self.logits
        shape = broadcast_shapes("Categorical.log_prob", [value.shape[:-1], logits.shape[:-1]])
        return logits.expand((*shape, self._events)).gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Tensor:  # noqa: D102
        return -(self.logits * self.probs).sum(-1)

    mode = property(lambda self: self.probs.argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All indices, as the first dimension."""
        values = root.arange(self._events).reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class OneHotCategorical(Categorical):
    """A Categorical whose values are one-hot vectors."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits)
        Distribution.__init__(self, self.batch_shape, (self._events,))

    def sample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return operator("one_hot")(self._draw(sample_shape), self._events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        return super().log_prob(value.argmax(-1))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
