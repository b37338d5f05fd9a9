"""Models, eager against compiled: forward, gradients, buffers; with graphs and breaks counted."""

from __future__ import annotations

from typing import Any

from compare import compare_model

import lamina
import lamina.nn as nn
import lamina.nn.functional as F


def test_mlp() -> None:
    model = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
    made = compare_model(model, lamina.randn(7, 12))
    assert (made.graphs, made.breaks) == (1, 0)


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.norm = nn.BatchNorm2d(16)
        self.fc1, self.fc2 = nn.Linear(16 * 5 * 5, 84), nn.Linear(84, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def test_convolutional_network() -> None:
    made = compare_model(LeNet(), lamina.randn(4, 1, 28, 28), tolerance=1e-4)
    assert (made.graphs, made.breaks) == (1, 0)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, s, w))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.n1, self.attention, self.n2 = nn.LayerNorm(width), Attention(width, 2), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(17, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(layers))
        self.head = nn.Linear(16, 17, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.positions(lamina.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_gpt() -> None:
    made = compare_model(GPT(), lamina.randint(0, 17, (3, 8)))
    assert (made.graphs, made.breaks) == (1, 0)


def test_gpt_with_dropout_draws_the_same_masks() -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, 4), nn.Dropout(0.1))
    made = compare_model(model, lamina.randn(6, 8))
    assert (made.graphs, made.breaks) == (1, 0)


class LSTMLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(5, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        h, c = lamina.zeros(x.shape[1], 8), lamina.zeros(x.shape[1], 8)
        outputs = []
        for step in x:
            h, c = self.cell(step, (h, c))
            outputs.append(self.out(h))
        return lamina.stack(outputs)


def test_lstm_cell_loop() -> None:
    made = compare_model(LSTMLoop(), lamina.randn(6, 3, 5))
    assert (made.graphs, made.breaks) == (1, 0)


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.Tanh())
        self.mean, self.log_variance = nn.Linear(16, 3), nn.Linear(16, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 10))

    def forward(self, x: Any) -> Any:
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + lamina.randn_like(mean) * (0.5 * log_variance).exp()
        reconstruction = F.mse_loss(self.decoder(z), x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        return reconstruction + divergence


def test_vae() -> None:
    made = compare_model(VAE(), lamina.randn(5, 10), loss=lambda out: out, tolerance=1e-4)
    assert (made.graphs, made.breaks) == (1, 0)


def test_transformer_layers() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu", batch_first=True)
    made = compare_model(nn.TransformerEncoder(layer, 2), lamina.randn(2, 6, 16), tolerance=1e-4)
    assert made.breaks == 0
