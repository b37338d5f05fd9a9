"""A GPT of 124M parameters and its training step, which read alike for lamina and for torch.

``training(T)`` gives the step: forward and backward in bfloat16 by ``autocast``, master weights, moments and the
optimizer in float32, everything in one function, so that all of it can be compiled as one graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["GPT2", "SMALL", "Config", "data", "flops", "make", "parameters", "small_error", "start", "training"]


@dataclass(frozen=True)
class Config:
    """Sizes: of the model, and of a batch."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    length: int
    batch: int


GPT2 = Config(layers=12, width=768, heads=12, vocabulary=50304, length=1024, batch=16)
SMALL = Config(layers=2, width=64, heads=2, vocabulary=96, length=32, batch=4)
"""For checks: the same program, small."""


def make(T: Any, config: Config, device: str = "cuda") -> Any:
    """The model, with float32 parameters; the weights of the embedding are those of the last product."""
    nn, F = T.nn, T.nn.functional
    width, heads = config.width, config.heads

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (
                p.view(batch, length, heads, width // heads).transpose(1, 2)
                for p in self.qkv(self.ln1(x)).split(width, 2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(config.vocabulary, width), nn.Embedding(config.length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(config.layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return F.linear(self.norm(x), self.tokens.weight)

    model = Model()
    start(T, model)
    return model.to(device)


def start(T: Any, model: Any, seed: int = 0) -> None:
    """Weights that are the same for every library: of a normal distribution, 0.02 wide; biases are zero."""
    random = np.random.default_rng(seed)
    with T.no_grad():
        for parameter in model.parameters():
            if len(parameter.shape) > 1:
                made = random.standard_normal(tuple(parameter.shape), np.float32) * np.float32(0.02)
                parameter.copy_(T.from_numpy(made))
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()


def parameters(config: Config) -> int:
    """How many the model has."""
    width = config.width
    return config.layers * (12 * width**2 + 13 * width) + (config.vocabulary + config.length + 2) * width


def flops(config: Config) -> float:
    """Operations of the products in a training step: three times those of the forward pass, causal scores halved."""
    tokens = config.batch * config.length
    weights = config.layers * 12 * config.width**2 + config.vocabulary * config.width
    scores = config.layers * 2.0 * config.length * config.width
    return 3 * tokens * (2.0 * weights + scores)


def data(T: Any, config: Config, device: str = "cuda") -> tuple[Any, Any]:
    """(tokens, targets), the same every time and for every library."""
    count = config.batch * config.length
    tokens = (T.arange(count, device=device) * 7919 + 17) % config.vocabulary
    tokens = tokens.view(config.batch, config.length)
    return tokens, (tokens * 31 + 7) % config.vocabulary


def training(T: Any, config: Config, model: Any, device: str = "cuda") -> Callable[[Any, Any], Any]:
    """``step(tokens, targets)``: one step of AdamW; the loss."""
    F = T.nn.functional
    optimizer = T.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)

    def step(tokens: Any, targets: Any) -> Any:
        with T.autocast(device, dtype=T.bfloat16):
            logits = model(tokens)
            loss = F.cross_entropy(logits.view(-1, config.vocabulary), targets.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def small_error(T: Any, steps: int = 4) -> float:
    """Largest relative error of the small model's first losses, compiled on the GPU, against eager on the CPU."""
    found = []
    for device in ("cuda", "cpu"):
        step = training(T, SMALL, make(T, SMALL, device), device)
        run = T.compile(step, dynamic=False) if device == "cuda" else step
        found.append([float(run(*data(T, SMALL, device)).item()) for _ in range(steps)])
    return max(abs(a - b) / abs(b) for a, b in zip(*found, strict=True))
