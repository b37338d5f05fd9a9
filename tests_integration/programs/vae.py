"""Variational autoencoder with the reparameterisation trick (noise given), KL annealing and a step schedule."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
from lamina import nn, optim
from lamina.nn import functional as F
from lamina.optim.lr_scheduler import StepLR


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 20)
        self.fc21 = nn.Linear(20, 4)
        self.fc22 = nn.Linear(20, 4)
        self.fc3 = nn.Linear(4, 20)
        self.fc4 = nn.Linear(20, 36)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, noise=None):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std) if noise is None else noise
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, noise=None):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar, noise)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + beta * KLD


def run(compile: Any) -> list[Any]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = fill(VAE()).to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)

    @compile
    def train_step(data, noise, beta):
        optimizer.zero_grad()
        recon, mu, logvar = model(data, noise)
        loss = loss_function(recon, data, mu, logvar, beta)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for epoch in range(4):
        data = (wave(5, 6, 6, phase=epoch).to(device) > 0).float()
        loss = train_step(data, wave(5, 4, phase=epoch + 5), min(1.0, epoch / 3))
        scheduler.step()
        losses.append(loss.item() / len(data))
    sample = model.decode(wave(2, 4)).cpu()
    return [*losses, scheduler.get_last_lr()[0], sample.detach()]
