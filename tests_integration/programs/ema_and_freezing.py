"""Exponential moving average of parameters, transfer learning with frozen layers, evaluation with the average."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.data.clone() for name, p in model.named_parameters() if p.requires_grad}
        self.backup = {}

    def update(self, model):
        for name, param in model.named_parameters():
            if param.requires_grad:
                new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new_average.clone()

    def apply_shadow(self, model):
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self, model):
        for name, param in model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


class ModelEmaV2(nn.Module):
    def __init__(self, model, decay=0.9):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
                ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


def run(compile: Any) -> list[Any]:
    model = fill(nn.Sequential(nn.Linear(5, 8), nn.ReLU6(), nn.Linear(8, 8), nn.Hardswish(), nn.Linear(8, 2)))
    for param in model[0].parameters():
        param.requires_grad = False
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=0.02, amsgrad=True)
    ema, ema2 = EMA(model, 0.8), ModelEmaV2(model)

    @compile
    def train_step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    update2 = compile(ema2.update)
    losses = []
    for k in range(4):
        losses.append(train_step(wave(6, 5, phase=k), wave(6, 2, phase=k + 1)).item())
        ema.update(model)
        update2(model)
    live = model(wave(2, 5)).detach()
    ema.apply_shadow(model)
    model.eval()
    with torch.no_grad():
        averaged = model(wave(2, 5))
    ema.restore(model)
    assert torch.equal(model(wave(2, 5)).detach(), live)
    assert model[0].weight.grad is None
    return [*losses, live, averaged, ema2.module(wave(2, 5)).detach()]
