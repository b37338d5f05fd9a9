"""Mixed precision with autocast on the CPU: products in bfloat16, sums and losses in float32, float32 weights."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc1, self.norm, self.fc2 = (
            nn.Conv2d(1, 4, 3),
            nn.Linear(64, 16),
            nn.LayerNorm(16),
            nn.Linear(16, 3),
        )

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.gelu(self.norm(self.fc1(x.flatten(1)))))


def run(compile: Any) -> list[Any]:
    model = fill(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @compile
    def train_step(x, y):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return loss, out

    results = []
    for k in range(3):
        loss, out = train_step(wave(4, 1, 10, 10, phase=k), tokens(4, below=3, phase=k))
        results += [loss.item(), str(out.dtype).split(".")[-1], str(loss.dtype).split(".")[-1]]
    with torch.amp.autocast("cpu"):
        product = wave(3, 3) @ wave(3, 3)
        with torch.autocast("cpu", enabled=False):
            exact = wave(3, 3) @ wave(3, 3)
    return [*results, product.dtype == torch.bfloat16, exact]
