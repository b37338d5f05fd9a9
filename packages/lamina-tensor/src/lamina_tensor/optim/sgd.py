"""Stochastic gradient descent with momentum. Source: I. Sutskever et al. 2013 (Nesterov's form)."""

from __future__ import annotations

from typing import Any

from lamina_fx import float64

from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters, check_range

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr * (momentum-averaged gradient + weight_decay * p)."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0.0)
        check_range("momentum value", momentum, 0.0)
        check_range("weight_decay value", weight_decay, 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening}
        super().__init__(params, {**defaults, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """With momentum: a buffer of zeros; with dampening, also whether it applies: 0 at the first step, then 1."""
        if group["momentum"] == 0:
            return {}
        state = {"momentum_buffer": root.zeros_like(parameter)}
        if group["dampening"] != 0:
            state["damped"] = root.zeros((), dtype=float64, device=parameter.device)
        return state

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0:
            gradient = gradient + parameter * group["weight_decay"]
        momentum = group["momentum"]
        if momentum != 0:
            buffer, damped = state["momentum_buffer"], state.get("damped")
            share: Any = 1 - group["dampening"]
            if damped is not None:  # the first gradient counts in full
                share = share**damped
                damped.fill_(1)
            buffer.mul_(momentum).add_(gradient if group["dampening"] == 0 else gradient * share)
            gradient = gradient + buffer * momentum if group["nesterov"] else buffer
        parameter.sub_(gradient * group["lr"])
