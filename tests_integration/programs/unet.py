"""U-Net: skip connections by cat, transposed convolutions and interpolate, dice and binary cross entropy."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, 3, padding=1, bias=False),
            nn.GroupNorm(2, mid_channels),
            nn.SiLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, 3, padding=1, bias=False),
            nn.GroupNorm(2, out_channels),
            nn.LeakyReLU(0.1, inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels + out_channels, out_channels)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels // 2 + out_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down2 = nn.Sequential(nn.AvgPool2d(2), DoubleConv(8, 16))
        self.up1, self.up2 = Up(16, 8, bilinear=False), Up(8, 4, bilinear=True)
        self.outc = nn.Conv2d(4, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up2(self.up1(x3, x2), x1)
        x = F.interpolate(x, size=(20, 20), mode="nearest")
        return self.outc(x)


def dice_loss(logits, target, smooth=1.0):
    probs = torch.sigmoid(logits).flatten(1)
    target = target.flatten(1)
    intersection = (probs * target).sum(-1)
    return 1 - ((2.0 * intersection + smooth) / (probs.sum(-1) + target.sum(-1) + smooth)).mean()


def run(compile: Any) -> list[Any]:
    model = fill(UNet())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, momentum=0.5)

    def train_step(image, mask):
        logits = model(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask, pos_weight=torch.tensor([2.0])) + dice_loss(
            logits, mask
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        return loss.item()

    step = compile(train_step)
    losses = [step(wave(2, 1, 18, 18, phase=k), (wave(2, 1, 20, 20, phase=k + 9) > 0).float()) for k in range(3)]
    return [*losses, model(wave(1, 1, 18, 18)).detach()]
