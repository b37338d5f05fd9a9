"""What distributions have in common."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..namespace import root
from ..size import Size
from ..tensor import Tensor

__all__ = ["Distribution", "Independent", "broadcast", "check"]


class Distribution:
    """A distribution over values of shape ``event_shape``, one per element of ``batch_shape``."""

    has_rsample = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)
        del validate_args  # parameters are always checked

    def _shape(self, sample_shape: Any) -> tuple[Any, ...]:
        return (*tuple(sample_shape), *self.batch_shape, *self.event_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape sample_shape + batch_shape + event_shape, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """As ``sample``, differentiable in the parameters. NotImplementedError: not for this distribution."""
        raise NotImplementedError(f"{type(self).__name__} has no reparametrised sample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` samples."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density or probability at ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def entropy(self) -> Tensor:
        """Entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)})"


class Independent(Distribution):
    """The last ``count`` batch dimensions of a distribution as part of its values: log_prob sums over them."""

    def __init__(self, base: Distribution, count: int, validate_args: bool | None = None) -> None:
        shape = (*base.batch_shape, *base.event_shape)
        cut = len(base.batch_shape) - count
        if cut < 0:
            raise ValueError(f"Independent: {count} dimensions of the batch shape {tuple(base.batch_shape)}")
        self.base_dist, self.count, self.has_rsample = base, count, base.has_rsample
        super().__init__(shape[:cut], shape[cut:])

    def sample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:  # noqa: D102
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:  # noqa: D102
        return _sum_last(self.base_dist.log_prob(value), self.count)

    def entropy(self) -> Tensor:  # noqa: D102
        return _sum_last(self.base_dist.entropy(), self.count)

    mean = property(lambda self: self.base_dist.mean)
    variance = property(lambda self: self.base_dist.variance)


def _sum_last(value: Tensor, count: int) -> Tensor:
    return value if count == 0 else value.sum(tuple(range(-count, 0)))


def broadcast(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape."""
    given = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = None if given is None else given.dtype
    return list(root.broadcast_tensors(*[v if isinstance(v, Tensor) else _number(v, dtype) for v in values]))


def _number(value: Any, dtype: Any) -> Tensor:
    return root.full((), float(value), dtype=dtype)


def check(name: str, holds: Tensor, what: str) -> None:
    """Refuse parameters out of their range (where their values are known).

    Raises:
        ValueError: names the distribution and what its parameter must be.
    """
    if holds._array is not None and not bool(holds.all()):
        raise ValueError(f"{name}: {what}")
