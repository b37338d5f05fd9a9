"""Multi-head attention. Source: A. Vaswani et al., "Attention is all you need" (2017)."""

from __future__ import annotations

from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention with ``num_heads`` heads over projections of query, key and value.

    Sequences are (time, batch, width), with ``batch_first`` (batch, time, width), or (time, width) without a batch.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"embed_dim ({embed_dim}) must be a positive multiple of num_heads ({num_heads})")
        if add_bias_kv or add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn are not supported; append the rows to key and value")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim = embed_dim // num_heads
        self._same = self.kdim == embed_dim and self.vdim == embed_dim

        def matrix(*shape: int) -> Parameter:
            return Parameter(root.empty(shape, device=device, dtype=dtype))

        if self._same:
            self.in_proj_weight = matrix(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = matrix(embed_dim, embed_dim)
            self.k_proj_weight = matrix(embed_dim, self.kdim)
            self.v_proj_weight = matrix(embed_dim, self.vdim)
        if bias:
            self.in_proj_bias = matrix(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None and name.endswith("weight"):
                init.xavier_uniform_(parameter)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        width, bias = self.embed_dim, self.in_proj_bias
        if self._same and query is key and key is value:
            q, k, v = F.linear(query, self.in_proj_weight, bias).chunk(3, dim=-1)
            return q, k, v
        if self._same:
            weights = self.in_proj_weight.split(width, 0)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if bias is None else bias.split(width, 0)
        given = (query, key, value)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip(given, weights, biases, strict=True))
        return q, k, v

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend. Masks are True (or -inf) where attention is not allowed. Returns (result, weights or None)."""
        batched = query.ndim == 3
        time_first = batched and not self.batch_first
        q, k, v = self._project(query, key, value)
        if time_first:
            q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        q, k, v = (t.unflatten(-1, (self.num_heads, self.head_dim)).transpose(-3, -2) for t in (q, k, v))
        mask = self._mask(q, k, key_padding_mask, attn_mask, is_causal and need_weights)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) / self.head_dim**0.5
            weights = F.softmax(scores if mask is None else scores + mask, dim=-1)
            result = F.dropout(weights, dropout) @ v
            if average_attn_weights:
                weights = weights.mean(-3)
        else:
            causal = is_causal and mask is None
            result = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        result = self.out_proj(result.transpose(-3, -2).flatten(-2))
        return (result.transpose(0, 1) if time_first else result), weights

    def _mask(
        self, q: Tensor, k: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, causal: bool
    ) -> Tensor | None:
        """One additive mask that broadcasts to the scores (..., heads, time, time), or None."""
        masks = []
        if attn_mask is not None:
            mask = _additive(attn_mask, q)
            masks.append(mask.unflatten(0, (-1, self.num_heads)) if mask.ndim == 3 else mask)
        elif causal:
            ones = root.ones((q.shape[-2], k.shape[-2]), dtype=q.dtype, device=q.device)
            masks.append(_additive(ones.triu(1) != 0, q))
        if key_padding_mask is not None:
            mask = _additive(key_padding_mask, q)
            masks.append(mask[..., None, None, :])
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else masks[0] + masks[1]


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype.kind != "bool":
        return mask
    return root.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill(mask, float("-inf"))
