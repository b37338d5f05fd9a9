"""Kullback-Leibler divergence in closed form."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .continuous import Normal
from .discrete import Bernoulli, Categorical
from .distribution import Distribution, Independent

__all__ = ["kl_divergence"]


def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    shift = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + shift - 1 - ratio.log())


def _bernoulli(p: Any, q: Any) -> Tensor:
    return -q.log_prob(p.probs) - p.entropy()


def _categorical(p: Any, q: Any) -> Tensor:
    return (p.probs * (p.logits - q.logits)).sum(-1)


_RULES = ((Normal, _normal), (Bernoulli, _bernoulli), (Categorical, _categorical))


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), of the batch shape.

    Raises:
        NotImplementedError: no closed form is known here for this pair.
    """
    if isinstance(p, Independent) and isinstance(q, Independent) and p.count == q.count:
        inner = kl_divergence(p.base_dist, q.base_dist)
        return inner.sum(tuple(range(-p.count, 0))) if p.count else inner
    for kind, rule in _RULES:
        if isinstance(p, kind) and isinstance(q, kind):
            return rule(p, q)
    raise NotImplementedError(f"kl_divergence of {type(p).__name__} and {type(q).__name__}")
