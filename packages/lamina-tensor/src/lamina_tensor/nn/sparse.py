"""Embedding tables."""

from __future__ import annotations

from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"padding_idx {padding_idx} must be within num_embeddings ({num_embeddings})")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.weight = Parameter(root.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal rows; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def extra_repr(self) -> str:
        """Sizes."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


class Embedding(_Table):
    """Rows of a table. Integer (*) -> (*, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A table with these rows."""
        table = cls(embeddings.shape[0], embeddings.shape[1], padding_idx)
        table.weight = Parameter(embeddings, requires_grad=not freeze)
        return table

    def forward(self, input: Tensor) -> Tensor:
        """Integer (*) -> (*, embedding_dim)."""
        return F.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows. Integer (B, N) -> (B, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: str = "mean",
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"mode must be 'sum', 'mean' or 'max', got {mode!r}")
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype)
        self.mode = mode

    def forward(self, input: Tensor, offsets: Tensor | None = None) -> Tensor:
        """(B, N), or (N) with ``offsets`` (B) -> (B, embedding_dim)."""
        return F.embedding_bag(input, self.weight, offsets, mode=self.mode, padding_idx=self.padding_idx)
