"""Llama-like model: RMSNorm, SwiGLU, grouped-query attention, rotary embedding as complex numbers and as sin/cos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from formula import fill, tokens

import lamina as torch
import lamina.nn.functional as F
from lamina import nn


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int | None = 2
    vocab_size: int = 31
    norm_eps: float = 1e-5
    max_seq_len: int = 16
    complex_rope: bool = True


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end, dtype=torch.float32), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_complex(
    xq: torch.Tensor, xk: torch.Tensor, freqs_cis: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def rotate_pairs(x):
    x1, x2 = x[..., ::2] if False else x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def apply_rotary_real(xq, xk, freqs_cis):
    cos = freqs_cis.real.repeat_interleave(2, dim=-1)[None, :, None, :]
    sin = freqs_cis.imag.repeat_interleave(2, dim=-1)[None, :, None, :]
    return xq * cos + rotate_pairs(xq) * sin, xk * cos + rotate_pairs(xk) * sin


class Attention(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.n_kv_heads = args.n_heads if args.n_kv_heads is None else args.n_kv_heads
        self.n_heads, self.n_rep, self.head_dim = (
            args.n_heads,
            args.n_heads // self.n_kv_heads,
            args.dim // args.n_heads,
        )
        self.wq = nn.Linear(args.dim, args.n_heads * self.head_dim, bias=False)
        self.wk, self.wv = (nn.Linear(args.dim, self.n_kv_heads * self.head_dim, bias=False) for _ in range(2))
        self.wo = nn.Linear(args.n_heads * self.head_dim, args.dim, bias=False)
        self.rotary = apply_rotary_complex if args.complex_rope else apply_rotary_real

    def forward(self, x, freqs_cis, mask):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk, xv = (w(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim) for w in (self.wk, self.wv))
        xq, xk = self.rotary(xq, xk, freqs_cis)
        keys, values = xk.repeat_interleave(self.n_rep, dim=2), xv.repeat_interleave(self.n_rep, dim=2)
        scores = xq.transpose(1, 2) @ keys.transpose(1, 2).transpose(2, 3) * self.head_dim**-0.5
        scores = F.softmax((scores + mask).float(), dim=-1).type_as(xq)
        return self.wo((scores @ values.transpose(1, 2)).transpose(1, 2).contiguous().view(bsz, seqlen, -1))


class Transformer(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.tok_embeddings, self.output = nn.Embedding(args.vocab_size, args.dim), nn.Linear(args.dim, args.vocab_size)
        self.attention = nn.ModuleList(Attention(args) for _ in range(args.n_layers))
        self.ffn = nn.ModuleList(nn.Linear(args.dim, 4 * args.dim, bias=False) for _ in range(args.n_layers))
        self.down = nn.ModuleList(nn.Linear(2 * args.dim, args.dim, bias=False) for _ in range(args.n_layers))
        self.norms = nn.ModuleList(RMSNorm(args.dim, args.norm_eps) for _ in range(2 * args.n_layers + 1))
        self.freqs_cis = precompute_freqs_cis(args.dim // args.n_heads, args.max_seq_len * 2)

    def forward(self, ids: torch.Tensor):
        seqlen = ids.shape[1]
        mask = torch.triu(torch.full((seqlen, seqlen), float("-inf")), diagonal=1)
        h = self.tok_embeddings(ids)
        for i, layer in enumerate(self.attention):
            h = h + layer(self.norms[2 * i](h), self.freqs_cis[:seqlen], mask)
            gate, up = self.ffn[i](self.norms[2 * i + 1](h)).chunk(2, dim=-1)
            h = h + self.down[i](F.silu(gate) * up)
        return self.output(self.norms[-1](h)).float()


def run(compile: Any) -> list[Any]:
    results = []
    for complex_rope in (True, False):
        model = fill(Transformer(ModelArgs(complex_rope=complex_rope)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        forward = compile(model)
        for k, length in enumerate((8, 8, 11)):
            ids = tokens(2, length + 1, below=31, phase=k)
            loss = F.cross_entropy(forward(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            results.append(loss.item())
    return results
