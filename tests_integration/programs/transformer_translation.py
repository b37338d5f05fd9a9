"""nn.Transformer layers with causal and padding masks, label smoothing, the inverse-square-root schedule."""

from __future__ import annotations

import math
from typing import Any

from formula import fill, tokens

import lamina as torch
import lamina.nn as nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=32):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Translator(nn.Module):
    def __init__(self, vocab=15, d_model=16, nhead=2):
        super().__init__()
        self.d_model = d_model
        self.src_embed, self.tgt_embed = nn.Embedding(vocab, d_model), nn.Embedding(vocab, d_model)
        self.pos = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, num_layers=2, norm=nn.LayerNorm(d_model), enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(d_model, nhead, 32, dropout=0.0, batch_first=True), 1
        )
        self.generator = nn.Linear(d_model, vocab)

    def forward(self, src, tgt):
        src_padding, tgt_padding = src == 0, tgt == 0
        tgt_mask = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), diagonal=1)
        memory = self.encoder(self.pos(self.src_embed(src) * math.sqrt(self.d_model)), src_key_padding_mask=src_padding)
        out = self.decoder(
            self.pos(self.tgt_embed(tgt) * math.sqrt(self.d_model)),
            memory,
            tgt_mask=tgt_mask,
            tgt_key_padding_mask=tgt_padding,
            memory_key_padding_mask=src_padding,
        )
        return self.generator(out)


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer, self._step, self.warmup = optimizer, 0, warmup
        self.factor, self.model_size = factor, model_size

    def rate(self, step):
        return self.factor * (self.model_size**-0.5 * min(step**-0.5, step * self.warmup**-1.5))

    def step(self):
        self._step += 1
        for p in self.optimizer.param_groups:
            p["lr"] = self.rate(self._step)
        self.optimizer.step()


def run(compile: Any) -> list[Any]:
    model = fill(Translator())
    for p in model.parameters():
        if p.dim() > 1:
            p.data.mul_(0.7)
    criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
    opt = NoamOpt(16, 0.1, 4, torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98), eps=1e-9))
    forward = compile(model)
    losses = []
    for k in range(4):
        src, tgt = tokens(3, 7, below=14, phase=k) + 1, tokens(3, 6, below=14, phase=k + 1) + 1
        src[0, 5:], tgt[1, 4:] = 0, 0
        logits = forward(src, tgt[:, :-1])
        loss = criterion(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1))
        opt.optimizer.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        ys = torch.ones(3, 1).fill_(1).type_as(src.data)
        for _ in range(4):
            prob = forward(src, ys)[:, -1]
            _, next_word = torch.max(prob, dim=1)
            ys = torch.cat([ys, next_word.unsqueeze(1)], dim=1)
    return [*losses, ys]
