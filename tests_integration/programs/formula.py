"""Numbers by formula instead of at random: programs have the same weights and data wherever they run.

>>> wave(3).shape
lamina.Size([3])
"""

from __future__ import annotations

from typing import Any

import lamina as torch


def wave(*shape: int, phase: int = 0) -> Any:
    """Float32 values in [-1, 1) that look scattered: multiples of a prime modulo another."""
    count = 1
    for size in shape:
        count *= size
    return (((torch.arange(count) + 31 * phase) * 7919 % 997).float() / 498.5 - 1.0).reshape(shape)


def tokens(*shape: int, below: int, phase: int = 0) -> Any:
    """Int64 values in [0, below)."""
    count = 1
    for size in shape:
        count *= size
    return ((torch.arange(count) + 17 * phase) * 7919 % 997 % below).reshape(shape)


def fill(model: Any) -> Any:
    """Give every parameter of a module values by formula, of the size that training starts from; returns the module."""
    with torch.no_grad():
        for k, (name, parameter) in enumerate(model.named_parameters()):
            values = wave(*parameter.shape, phase=k)
            if parameter.dim() > 1:
                parameter.copy_(values * (3.0 / parameter[0].numel()) ** 0.5)
            else:
                parameter.copy_(values * 0.05 + (1.0 if name.endswith("weight") else 0.0))
    return model
