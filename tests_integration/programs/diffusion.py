"""Diffusion: sine and cosine embedding of time, schedule by cumprod, noise prediction, then sampling backwards."""

from __future__ import annotations

import math
from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        device = time.device
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim, time_dim):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(dim, dim, 3, padding=1), nn.GroupNorm(2, dim)
        self.time_mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, 2 * dim))

    def forward(self, x, t):
        scale, shift = self.time_mlp(t)[:, :, None].chunk(2, dim=1)
        return x + F.silu(self.norm(self.conv(x)) * (scale + 1) + shift)


class Denoiser(nn.Module):
    def __init__(self, dim=8, time_dim=12):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPositionEmbeddings(dim), nn.Linear(dim, time_dim), nn.GELU())
        self.first, self.last = nn.Conv1d(1, dim, 1), nn.Conv1d(dim, 1, 1)
        self.blocks = nn.ModuleList([Block(dim, time_dim) for _ in range(2)])

    def forward(self, x, t):
        t = self.time(t)
        x = self.first(x)
        for block in self.blocks:
            x = block(x, t)
        return self.last(x)


def extract(a, t, x_shape):
    out = a.gather(-1, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class Diffusion:
    def __init__(self, timesteps=10):
        self.timesteps = timesteps
        self.betas = torch.linspace(1e-4, 0.2, timesteps)
        alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(alphas, dim=0)
        previous = F.pad(self.alphas_cumprod[:-1], (1, 0), value=1.0)
        self.sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
        self.posterior_variance = self.betas * (1.0 - previous) / (1.0 - self.alphas_cumprod)

    def q_sample(self, x_start, t, noise):
        mean = extract(self.alphas_cumprod.sqrt(), t, x_start.shape) * x_start
        return mean + extract((1.0 - self.alphas_cumprod).sqrt(), t, x_start.shape) * noise

    def p_losses(self, model, x_start, t, noise, loss_type="huber"):
        predicted = model(self.q_sample(x_start=x_start, t=t, noise=noise), t)
        if loss_type == "l2":
            return F.mse_loss(noise, predicted)
        elif loss_type == "huber":
            return F.smooth_l1_loss(noise, predicted)
        raise NotImplementedError(loss_type)

    @torch.no_grad()
    def p_sample(self, model, x, t, t_index, noise):
        model_mean = extract(self.sqrt_recip_alphas, t, x.shape) * (
            x - extract(self.betas, t, x.shape) * model(x, t) / extract((1 - self.alphas_cumprod).sqrt(), t, x.shape)
        )
        if t_index == 0:
            return model_mean
        return model_mean + torch.sqrt(extract(self.posterior_variance, t, x.shape)) * noise


def run(compile: Any) -> list[Any]:
    model, diffusion = fill(Denoiser()), Diffusion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @compile
    def train_step(x, t, noise):
        optimizer.zero_grad()
        loss = diffusion.p_losses(model, x, t, noise)
        loss.backward()
        optimizer.step()
        return loss

    steps = [(wave(4, 1, 12, phase=k), tokens(4, below=10, phase=k), wave(4, 1, 12, phase=k + 4)) for k in range(3)]
    losses = [train_step(*step).item() for step in steps]
    p_sample, img = compile(diffusion.p_sample), wave(2, 1, 12)
    for i in reversed(range(0, diffusion.timesteps, 3)):
        img = p_sample(model, img, torch.full((2,), i, dtype=torch.long), i, wave(2, 1, 12, phase=i))
    return [*losses, img, img.clamp(-1, 1).add(1).mul(127.5).to(torch.uint8)]
