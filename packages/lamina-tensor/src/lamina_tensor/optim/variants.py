"""Variants of Adam. Sources: D. Kingma and J. Ba 2015 (Adamax); T. Dozat 2016 (NAdam); L. Liu et al. 2020 (RAdam)."""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters, check_range

__all__ = ["Adamax", "NAdam", "RAdam"]


class _Moments(Optimizer):
    """Two moments and a count of steps; checks what all variants have."""

    def __init__(self, params: Parameters, options: dict[str, Any]) -> None:
        check_range("learning rate", options["lr"], 0.0)
        check_range("epsilon", options["eps"], 0.0)
        check_range("weight_decay", options["weight_decay"], 0.0)
        for beta in options["betas"]:
            check_range("beta", beta, 0.0, 1.0)
        super().__init__(params, options)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No step taken, moments of zero."""
        state = {name: root.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        return {"step": root.zeros((), dtype=float32, device=parameter.device), **state}

    def begin(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        """Count the step, decay the weights; the gradient to go on with."""
        state["step"].add_(1)
        if group["weight_decay"] == 0:
            return gradient
        if group.get("decoupled_weight_decay"):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            return gradient
        return gradient + parameter * group["weight_decay"]


class RAdam(_Moments):
    """Adam that adapts only once enough gradients were seen for the variance to be known."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay})

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        gradient = self.begin(parameter, gradient, state, group)
        first, second = group["betas"]
        step = state["step"].double()  # its differences are small ones of large numbers
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        power = second**step
        most = 2 / (1 - second) - 1
        length = most - 2 * step * power / (1 - power)
        known = root.clamp(length, min=5.0)  # below, the square root would be of a negative number
        rectified = ((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)).sqrt()
        adaptive = rectified * (1 - power).sqrt() / (square.sqrt() + group["eps"])
        scale = root.where(length > 5.0, adaptive, root.ones_like(adaptive))
        parameter.sub_(mean / (1 - first**step) * scale * group["lr"])


class NAdam(_Moments):
    """Adam with Nesterov's momentum, whose strength grows to ``betas[0]``."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_range("momentum_decay", momentum_decay, 0.0)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        options["momentum_decay"] = momentum_decay
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """As Adam's; the product of all momenta so far is 1."""
        state = super().init_state(parameter, group)
        return {**state, "mu_product": root.ones((), dtype=float32, device=parameter.device)}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        gradient = self.begin(parameter, gradient, state, group)
        first, second = group["betas"]
        step = state["step"].double()  # its differences are small ones of large numbers
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        now = first * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        then = first * (1 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        product = state["mu_product"].mul_(now)
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        size = (square / (1 - second**step)).sqrt() + group["eps"]
        ahead = gradient * ((1 - now) / (1 - product)) + mean * (then / (1 - product * then))
        parameter.sub_(ahead / size * group["lr"])


class Adamax(_Moments):
    """Adam with the largest of the decayed gradients in place of the second moment."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No step taken, both zero."""
        state = super().init_state(parameter, group)
        return {"step": state["step"], "exp_avg": state["exp_avg"], "exp_inf": state["exp_avg_sq"]}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        gradient = self.begin(parameter, gradient, state, group)
        first, second = group["betas"]
        state["exp_avg"].lerp_(gradient, 1 - first)
        largest = root.maximum(state["exp_inf"] * second, gradient.abs() + group["eps"])
        state["exp_inf"].copy_(largest)
        parameter.sub_(state["exp_avg"] / largest * (group["lr"] / (1 - first ** state["step"])))
