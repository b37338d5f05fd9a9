"""GAN: two optimizers, detach, a gradient penalty that differentiates a gradient, spectral norm by hand."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.autograd as autograd
import lamina.nn as nn
import lamina.optim as optim


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


def generator():
    return nn.Sequential(nn.Linear(4, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 6), nn.Tanh())


def discriminator():
    return nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))


def gradient_penalty(netD, real, fake, eps):
    interpolates = (eps * real + (1 - eps) * fake).requires_grad_(True)
    out = netD(interpolates)
    (gradients,) = autograd.grad(
        outputs=out, inputs=interpolates, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def run(compile: Any) -> list[Any]:
    netG, netD = generator(), discriminator()
    netG.apply(weights_init)
    netD.apply(weights_init)
    fill(netG)
    fill(netD)
    criterion = nn.BCEWithLogitsLoss()
    optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def train_discriminator(real, noise, eps):
        netD.zero_grad()
        errD_real = criterion(netD(real), torch.full((real.size(0), 1), 1.0))
        errD_real.backward()
        fake = netG(noise)
        errD_fake = criterion(netD(fake.detach()), torch.zeros(real.size(0), 1))
        errD_fake.backward()
        penalty = 10.0 * gradient_penalty(netD, real.data, fake.data, eps)
        penalty.backward()
        optimizerD.step()
        return errD_real + errD_fake + penalty

    def train_generator(noise):
        netG.zero_grad()
        for p in netD.parameters():
            p.requires_grad_(False)
        loss = criterion(netD(netG(noise)), torch.ones(noise.size(0), 1))
        loss.backward()
        for p in netD.parameters():
            p.requires_grad_(True)
        optimizerG.step()
        return loss

    train_discriminator, train_generator = compile(train_discriminator), compile(train_generator)
    results = []
    for k in range(3):
        real, noise = wave(8, 6, phase=k).tanh(), wave(8, 4, phase=k + 7)
        d_loss = train_discriminator(real, noise, (wave(8, 1, phase=k + 3) + 1) / 2)
        g_loss = train_generator(noise)
        results += [d_loss.item(), g_loss.item()]
    netG.eval()
    return [*results, netG(wave(2, 4)).detach()]
