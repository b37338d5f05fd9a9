"""Bounds on gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import creation
from ...autograd.grad_mode import no_grad
from ...namespace import root
from ...tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]


def _list(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0) -> Tensor:
    """The norm of all elements of these tensors together. A 0-d tensor."""
    given = list(tensors)
    if not given:
        return creation.tensor(0.0)
    if norm_type == float("inf"):
        return root.stack([t.detach().abs().max() for t in given]).max()
    if norm_type == 2.0:
        return root.stack([(t.detach() * t.detach()).sum() for t in given]).sum().sqrt()
    return root.stack([t.detach().abs().pow(norm_type).sum() for t in given]).sum().pow(1.0 / norm_type)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scale all gradients in place so that their common norm is at most ``max_norm``; returns the norm before.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, when the norm is not finite.
    """
    with no_grad():
        grads = [p.grad for p in _list(parameters) if p.grad is not None]
        total = get_total_norm(grads, norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"the total norm of order {norm_type} of the gradients is {float(total)}, so it cannot be clipped"
            )
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: Any = None) -> None:
    """Clamp each element of all gradients in place to +-``clip_value``."""
    with no_grad():
        for parameter in _list(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(-clip_value, clip_value)
