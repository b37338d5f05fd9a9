"""BERT-like encoder: padding masks, masked language model loss with ignored labels, tied output weights."""

from __future__ import annotations

import math
from typing import Any

from formula import fill, tokens

import lamina as torch
from lamina import nn


class Embeddings(nn.Module):
    def __init__(self, vocab, hidden, max_len, pad=0):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden, padding_idx=pad)
        self.position_embeddings = nn.Embedding(max_len, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.0)
        self.register_buffer("position_ids", torch.arange(max_len).expand((1, -1)), persistent=False)

    def forward(self, input_ids, token_type_ids: torch.Tensor | None = None):
        input_shape = input_ids.size()
        seq_length = input_shape[1]
        if token_type_ids is None:
            token_type_ids = torch.zeros(input_shape, dtype=torch.long, device=input_ids.device)
        position_ids = self.position_ids[:, :seq_length]
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        embeddings += self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(embeddings))


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.head_size = heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.dense = nn.Linear(hidden, hidden)

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        new_x_shape = x.size()[:-1] + (self.heads, self.head_size)
        return x.view(new_x_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        q, k, v = (self.transpose_for_scores(f(hidden_states)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_size)
        scores = scores + attention_mask
        context = torch.matmul(nn.functional.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return self.dense(context.view(context.size()[:-2] + (self.heads * self.head_size,)))


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.intermediate, self.output = nn.Linear(hidden, 2 * hidden), nn.Linear(2 * hidden, hidden)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.output(nn.functional.gelu(self.intermediate(x))))


class Bert(nn.Module):
    def __init__(self, vocab=23, hidden=16, heads=2, layers=2):
        super().__init__()
        self.embeddings = Embeddings(vocab, hidden, 12)
        self.layer = nn.ModuleList([Layer(hidden, heads) for _ in range(layers)])
        self.decoder = nn.Linear(hidden, vocab)
        self.decoder.weight = self.embeddings.word_embeddings.weight

    def forward(self, input_ids, attention_mask, labels=None, output_hidden_states=False):
        extended = attention_mask[:, None, None, :].to(dtype=self.decoder.weight.dtype)
        extended = (1.0 - extended) * torch.finfo(extended.dtype).min
        hidden = self.embeddings(input_ids)
        all_hidden = () if output_hidden_states else None
        for layer_module in self.layer:
            if output_hidden_states:
                all_hidden = all_hidden + (hidden,)
            hidden = layer_module(hidden, extended)
        logits = self.decoder(hidden)
        result = {"logits": logits, "hidden_states": all_hidden}
        if labels is not None:
            loss_fct = nn.CrossEntropyLoss(ignore_index=-100)
            result["loss"] = loss_fct(logits.view(-1, logits.size(-1)), labels.view(-1))
        return result


def run(compile: Any) -> list[Any]:
    model = fill(Bert())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    forward = compile(model.forward)
    results = []
    for k, length in enumerate((10, 8, 8)):
        ids = tokens(3, length, below=22, phase=k) + 1
        mask = (torch.arange(length)[None, :] < torch.tensor([length, length - 2, 4])[:, None]).long()
        ids = ids.masked_fill(mask == 0, 0)
        labels = torch.where((ids % 3 == 0) & mask.bool(), ids, torch.full_like(ids, -100))
        out = forward(ids, mask, labels=labels, output_hidden_states=(k == 2))
        optimizer.zero_grad()
        out["loss"].backward()
        optimizer.step()
        results += [out["loss"].item(), out["logits"].detach().mean()]
    return [*results, len(out["hidden_states"]), model.embeddings.word_embeddings.weight.grad[0]]
