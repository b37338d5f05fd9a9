"""Eager tensors with autograd, nn and optim."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
