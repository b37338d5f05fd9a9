"""Weights of norm 1 times a gain, weights whose largest singular value is 1, and orthogonal ones.

Sources: T. Salimans and D. Kingma 2016; T. Miyato et al. 2018.
"""

from __future__ import annotations

from typing import Any

from ... import random
from ...autograd.grad_mode import no_grad
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .orthogonal import orthogonal
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def _norm(self, weight: Tensor) -> Tensor:
        """Norms over all dimensions but ``dim``."""
        if self.dim is None:
            return weight.norm()
        kept = self.dim % weight.ndim
        return (weight * weight).sum([d for d in range(weight.ndim) if d != kept], keepdim=True).sqrt()

    def forward(self, gain: Tensor, direction: Tensor) -> Tensor:
        """The weight."""
        return direction * (gain / self._norm(direction))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Its norms, and itself as the direction."""
        return self._norm(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the norm (``original0``) and the direction (``original1``) of a weight. ``dim``: one norm for each index
    along it; None: one for all."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.dim, self.n_power_iterations, self.eps = dim % max(weight.ndim, 1), n_power_iterations, eps
        if weight.ndim > 1:
            rows, columns = self._matrix(weight).shape
            for vector, size in (("_u", rows), ("_v", columns)):
                drawn = random.randn(size, dtype=weight.dtype, device=weight.device)
                self.register_buffer(vector, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(self._matrix(weight), 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        turned = weight.movedim(self.dim, 0) if self.dim else weight
        return turned.flatten(1) if turned.ndim > 2 else turned

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t() @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight over its largest singular value, as far as it is known; in training it becomes better known."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / self._u.clone().dot(matrix @ self._v.clone())

    def right_inverse(self, value: Tensor) -> Tensor:
        """Itself: it has the norm already."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, found by power iteration in each forward pass of training.

    ``dim``: what counts as its rows; 0, but 1 for transposed convolutions.

    Raises:
        ValueError: there is no such parameter, or no iteration.
    """
    weight: Any = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"module {type(module).__name__} has no parameter with name {name!r}")
    if n_power_iterations <= 0:
        raise ValueError(f"expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    made = _SpectralNorm(weight.detach(), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
