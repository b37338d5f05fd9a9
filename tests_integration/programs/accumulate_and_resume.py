"""Gradient accumulation, clipping, warm-up and cosine schedule, then save, load and resume from a checkpoint."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
from lamina.optim.lr_scheduler import LambdaLR


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, last_epoch=-1):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step + 1) / float(max(1, num_warmup_steps))
        progress = float(current_step - num_warmup_steps) / float(max(1, num_training_steps - num_warmup_steps))
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))

    return LambdaLR(optimizer, lr_lambda, last_epoch)


def make():
    model = fill(nn.Sequential(nn.Linear(6, 12, bias=False), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    return model, optimizer, get_cosine_schedule_with_warmup(optimizer, 2, 8)


def train(compile, model, optimizer, scheduler, steps, accumulation_steps=2):
    criterion = nn.MSELoss()

    @compile
    def micro_step(x, y):
        loss = criterion(model(x), y) / accumulation_steps
        loss.backward()
        return loss

    @compile
    def update():
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        optimizer.zero_grad()
        return norm

    history = []
    for i in steps:
        total = 0.0
        for j in range(accumulation_steps):
            total += micro_step(wave(4, 6, phase=i + j), wave(4, 2, phase=i - j)).item()
        norm = update()
        scheduler.step()
        history += [total, norm.item(), optimizer.param_groups[0]["lr"]]
    return history


def run(compile: Any) -> list[Any]:
    model, optimizer, scheduler = make()
    history = train(compile, model, optimizer, scheduler, range(3))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        state = {
            "epoch": 3,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        torch.save(state, path)
        checkpoint = torch.load(path, map_location="cpu", weights_only=False)
    expected = train(compile, model, optimizer, scheduler, range(3, 6))
    model, optimizer, scheduler = make()
    print_keys = model.load_state_dict(checkpoint["model_state_dict"], strict=True)
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    resumed = train(compile, model, optimizer, scheduler, range(checkpoint["epoch"], 6))
    assert all(abs(a - b) < 1e-6 for a, b in zip(expected, resumed)), (expected, resumed)
    return [*history, *resumed, str(print_keys)]
