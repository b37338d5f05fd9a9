"""GPT generation with a cache of keys and values that grows by cat: prefill, then one token at a time."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens

import lamina as torch
import lamina.nn as nn
from lamina.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd = n_head, n_embd

    def forward(self, x, past=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if past is not None:
            past_k, past_v = past
            k = torch.cat([past_k, k], dim=-2)
            v = torch.cat([past_v, v], dim=-2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)), (k, v)


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(n_embd, 4 * n_embd), c_proj=nn.Linear(4 * n_embd, n_embd)))

    def forward(self, x, past=None):
        a, present = self.attn(self.ln_1(x), past)
        x = x + a
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)))), present


class GPT(nn.Module):
    def __init__(self, vocab=29, block_size=24, n_layer=2, n_head=2, n_embd=16):
        super().__init__()
        self.block_size = block_size
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, past=None):
        past_len = 0 if past is None else past[0][0].size(-2)
        pos = torch.arange(past_len, past_len + idx.size(1), dtype=torch.long, device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        presents = []
        for i, block in enumerate(self.h):
            x, present = block(x, None if past is None else past[i])
            presents.append(present)
        return self.lm_head(self.ln_f(x)), presents


@torch.no_grad()
def generate(forward, idx, max_new_tokens, temperature=1.0, top_k=None):
    past = None
    step_input = idx
    for _ in range(max_new_tokens):
        logits, past = forward(step_input, past)
        logits = logits[:, -1, :] / temperature
        if top_k is not None:
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
        probs = F.softmax(logits, dim=-1)
        step_input = torch.argmax(probs, dim=-1, keepdim=True)
        idx = torch.cat((idx, step_input), dim=1)
    return idx, probs


def run(compile: Any) -> list[Any]:
    model = fill(GPT()).eval()
    print_size = sum(p.numel() for p in model.parameters())
    forward = compile(model)
    ids, probs = generate(forward, tokens(2, 5, below=29), 8, temperature=0.8, top_k=5)
    with torch.inference_mode():
        whole, _ = model(ids[:, :-1])
    same = torch.allclose(F.softmax(whole[:, -1] / 0.8, -1).max(-1).values.argmax(), probs.max(-1).values.argmax())
    return [print_size, ids, probs, same]
