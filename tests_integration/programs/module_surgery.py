"""Changing modules: LoRA adapters put in by setattr, buffers, weight tying, parametrised layers, counting, printing."""

from __future__ import annotations

import math
from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 2, alpha: float = 4.0):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.register_buffer("calls", torch.tensor(0, dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.base(x) + F.linear(F.linear(x, self.lora_A), self.lora_B) * self.scaling

    def extra_repr(self) -> str:
        return f"r={self.lora_A.shape[0]}, scaling={self.scaling}"


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, n, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(n))
        self.register_buffer("bias", torch.zeros(n))
        self.register_buffer("running_mean", torch.zeros(n))
        self.register_buffer("running_var", torch.ones(n))

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


class TiedLM(nn.Module):
    def __init__(self, vocab=11, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.body = nn.Sequential(nn.Linear(dim, dim), nn.Mish(), nn.Linear(dim, dim))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.body(self.embed(ids)))


def replace_linears(module, r):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and name != "head":
            setattr(module, name, LoRALinear(child, r))
        else:
            replace_linears(child, r)


def run(compile: Any) -> list[Any]:
    model = TiedLM()
    assert len(list(model.parameters())) == 5 and model.head.weight is model.embed.weight
    replace_linears(model, 2)
    fill(model)
    trainable = [(n, p) for n, p in model.named_parameters() if "lora" in n or n.startswith("embed")]
    optimizer = torch.optim.AdamW([p for _, p in trainable], lr=0.01)

    @compile
    def step(ids):
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    results = [step(tokens(3, 6, below=11, phase=k)).item() for k in range(3)]
    body = model.get_submodule("body.0")
    results += [body.calls.item(), sum(p.numel() for p in model.parameters() if p.requires_grad)]
    assert "r=2, scaling=2.0" in repr(model) and "(embed): Embedding(11, 8)" in repr(model)
    assert sorted(model.state_dict())[:3] == ["body.0.base.bias", "body.0.base.weight", "body.0.calls"]

    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Dropout2d(0.5))
    net[1] = FrozenBatchNorm2d(3)
    net.add_module("pool", nn.AdaptiveAvgPool2d(1))
    del net[2]
    fill(net)
    results.append(compile(net)(wave(2, 2, 4, 4)).detach())
    missing, unexpected = net.load_state_dict({"0.weight": wave(3, 2, 1, 1)}, strict=False)
    results += [len(missing), len(unexpected), net[0].weight.detach().sum()]
    merged = body.base.weight + body.lora_B @ body.lora_A * body.scaling
    return [*results, merged.detach()]
