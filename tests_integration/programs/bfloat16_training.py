"""Mixed precision by hand: bfloat16 weights and activations, float32 master weights; and a model moved with .to()."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def run(compile: Any) -> list[Any]:
    model = fill(mlp()).to(torch.bfloat16)
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
    master = [p.detach().clone().float() for p in model.parameters()]
    for p in master:
        p.requires_grad = True
    optimizer = torch.optim.SGD(master, lr=0.1, momentum=0.9)
    loss_scale = 128.0

    @compile
    def train_step(x, y):
        out = model(x.to(torch.bfloat16)).float()
        loss = F.mse_loss(out, y)
        model.zero_grad()
        (loss * loss_scale).backward()
        for p, m in zip(model.parameters(), master):
            m.grad = p.grad.float() / loss_scale
        optimizer.step()
        with torch.no_grad():
            for p, m in zip(model.parameters(), master):
                p.copy_(m)
        return loss

    results = [train_step(wave(8, 16, phase=k), wave(8, 4, phase=k + 2)).item() for k in range(4)]
    half = fill(mlp()).half()
    double = fill(mlp()).double()
    y16, y64 = half(wave(2, 16).half()), double(wave(2, 16).double())
    assert y16.dtype is torch.float16 and y64.dtype is torch.float64
    return [*results, y16.detach().float(), y64.detach()]
