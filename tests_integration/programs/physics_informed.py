"""Physics-informed network: derivatives of the output by autograd.grad, LBFGS-free training, meta-learning step."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
from lamina.autograd import grad


class MLP(nn.Module):
    def __init__(self, layers=(2, 12, 12, 1)):
        super().__init__()
        self.activation = nn.Tanh()
        self.linears = nn.ModuleList([nn.Linear(a, b) for a, b in zip(layers[:-1], layers[1:])])

    def forward(self, x, t):
        h = torch.cat([x, t], dim=1)
        for linear in self.linears[:-1]:
            h = self.activation(linear(h))
        return self.linears[-1](h)


def residual(model, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_t = grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    u_x = grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    u_xx = grad(u_x, x, grad_outputs=torch.ones_like(u_x), create_graph=True)[0]
    return u_t + u * u_x - 0.01 * u_xx


def maml_step(w, b, x, y, inner_lr=0.1):
    loss = ((x @ w + b - y) ** 2).mean()
    gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
    fast_w, fast_b = w - inner_lr * gw, b - inner_lr * gb
    return ((x @ fast_w + fast_b - y) ** 2).mean()


def run(compile: Any) -> list[Any]:
    model = fill(MLP())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def train_step(x, t):
        optimizer.zero_grad()
        loss = (
            residual(model, x, t).pow(2).mean()
            + (model(x.detach(), torch.zeros_like(t)) + torch.sin(x.detach() * 3)).pow(2).mean()
        )
        loss.backward()
        optimizer.step()
        return loss

    step = compile(train_step)
    results = [step(wave(10, 1, phase=k), wave(10, 1, phase=k + 3).abs()).item() for k in range(3)]
    w, b = wave(3, 1).requires_grad_(), torch.zeros(1, requires_grad=True)
    meta = compile(maml_step)
    meta(w, b, wave(5, 3), wave(5, 1, phase=1)).backward()
    jacobian = torch.stack([grad(out, w, retain_graph=True)[0] for out in (wave(4, 3) @ w).tanh().flatten()])
    return [*results, w.grad, b.grad, jacobian.squeeze(-1)]
