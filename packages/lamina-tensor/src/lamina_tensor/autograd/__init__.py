"""Autograd: recording, the engine, gradient modes, custom functions."""

from __future__ import annotations

from typing import Any

from .engine import backward, grad
from .function import Function, once_differentiable
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .node import Node


def Variable(data: Any, requires_grad: bool = False) -> Any:
    """The tensor itself (made to require a gradient if asked): variables and tensors have long been one."""
    return data.requires_grad_() if requires_grad else data


__all__ = [
    "Function",
    "Node",
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]
