"""Dropout layers. Source: N. Srivastava et al. 2014."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


class _Dropout(Module):
    _function = ""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*); the identity in evaluation."""
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""

    _function = "dropout"


class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L)."""

    _function = "dropout1d"


class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W)."""

    _function = "dropout2d"


class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W)."""

    _function = "dropout3d"


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance under SELU. Source: G. Klambauer et al. 2017."""

    _function = "alpha_dropout"
