"""Hooks on tensors and modules, activation checkpointing, gradients of inputs, per-layer statistics."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from functools import partial
from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
from lamina.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict([("up", nn.Linear(dim, 2 * dim)), ("act", nn.ELU()), ("down", nn.Linear(2 * dim, dim))])
        )

    def forward(self, x):
        return x + self.net(x)


class Model(nn.Module):
    def __init__(self, dim=6, depth=3, use_checkpoint=True):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        for block in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x


def run(compile: Any) -> list[Any]:
    model, plain = fill(Model()), fill(Model(use_checkpoint=False))
    compiled = compile(model)
    x = wave(4, 6).requires_grad_()
    compiled(x).square().sum().backward()
    y = wave(4, 6).requires_grad_()
    plain(y).square().sum().backward()
    assert torch.allclose(x.grad, y.grad, atol=1e-5)
    results = [x.grad]

    stats = defaultdict(list)

    def record(name, module, inputs, output):
        stats[name].append(output.detach().std().item())

    handles = [
        m.register_forward_hook(partial(record, n)) for n, m in plain.named_modules() if isinstance(m, nn.Linear)
    ]
    pre = plain.blocks[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    gradients = []
    full = plain.blocks[1].register_full_backward_hook(lambda m, gin, gout: gradients.append(gout[0].norm().item()))
    hooked = compile(plain)
    out = hooked(wave(4, 6, phase=1).requires_grad_())
    out.register_hook(lambda grad: grad.clamp(-1, 1))
    out.retain_grad()
    out.pow(2).sum().backward()
    results += [out.grad, *gradients, *(v for k in sorted(stats) for v in stats[k])]
    for handle in [*handles, pre, full]:
        handle.remove()
    stats.clear()
    plain(wave(1, 6))
    assert not stats

    weight = plain.blocks[0].net.up.weight
    weight.grad = None
    hook = weight.register_hook(lambda g: g * 0.5)
    plain(wave(4, 6)).sum().backward()
    hook.remove()
    results.append(weight.grad.sum())
    sequence = fill(nn.Sequential(*[nn.Linear(6, 6) for _ in range(4)]))
    z = wave(2, 6).requires_grad_()
    checkpoint_sequential(sequence, 2, z, use_reentrant=False).sum().backward()
    return [*results, z.grad]
