"""Sequence to sequence with additive attention, a GRU cell, packed sources and teacher forcing."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F
from lamina.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Encoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden, padding_idx=0)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, hidden)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        outputs, hidden = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        hidden = torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))
        return outputs, hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query).unsqueeze(1) + self.Ua(keys))).squeeze(2)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights


class Decoder(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.attention = BahdanauAttention(hidden)
        self.cell = nn.GRUCell(3 * hidden, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, encoder_outputs, hidden, mask, max_length, target=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, dtype=torch.long).fill_(1)
        decoder_outputs, attentions = [], []
        for i in range(max_length):
            context, weights = self.attention(hidden, encoder_outputs, mask)
            hidden = self.cell(torch.cat((self.embedding(decoder_input), context), dim=1), hidden)
            output = self.out(hidden)
            decoder_outputs.append(output)
            attentions.append(weights)
            if target is not None:
                decoder_input = target[:, i]  # teacher forcing
            else:
                decoder_input = output.argmax(-1).detach()
        return F.log_softmax(torch.stack(decoder_outputs, dim=1), dim=-1), torch.stack(attentions, 1)


def run(compile: Any) -> list[Any]:
    encoder, decoder = fill(Encoder(11, 8)), fill(Decoder(9, 8))
    optimizers = [torch.optim.Adam(encoder.parameters(), lr=0.01), torch.optim.Adam(decoder.parameters(), lr=0.01)]
    criterion = nn.NLLLoss()
    decode = compile(decoder)
    sentences = [tokens(n, below=10, phase=n) + 1 for n in (4, 6, 3)]
    lengths = torch.tensor([len(s) for s in sentences])
    src = pad_sequence(sentences, batch_first=True, padding_value=0)
    mask = src != 0
    target = tokens(3, 5, below=9)
    losses = []
    for _ in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        outputs, hidden = encoder(src, lengths)
        log_probs, attention = decode(outputs, hidden, mask, 5, target)
        loss = criterion(log_probs.flatten(0, 1), target.flatten())
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        outputs, hidden = encoder(src, lengths)
        log_probs, attention = decode(outputs, hidden, mask, 4)
    return [*losses, log_probs.argmax(-1), attention[0]]
