"""RMSprop, Adagrad and Adadelta. Sources: G. Hinton 2012 (lecture 6e); J. Duchi et al. 2011; M. Zeiler 2012."""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters, check_range

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(Optimizer):
    """Divides by a running root mean square of the gradient."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        for name, value in (("learning rate", lr), ("epsilon", eps), ("momentum", momentum), ("alpha", alpha)):
            check_range(name, value, 0.0)
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "momentum": momentum, "centered": centered})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Averages of zero."""
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return {name: root.zeros_like(parameter) for name in names}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if group["weight_decay"] != 0:
            gradient = gradient + parameter * group["weight_decay"]
        alpha, square = group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        variance = square
        if group["centered"]:
            state["grad_avg"].lerp_(gradient, 1 - alpha)
            variance = square - state["grad_avg"] * state["grad_avg"]
        change = gradient / (variance.sqrt() + group["eps"])
        if group["momentum"] > 0:
            change = state["momentum_buffer"].mul_(group["momentum"]).add_(change)
        parameter.sub_(change * group["lr"])


class Adagrad(Optimizer):
    """Divides by the root of the sum of squared gradients."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        for name, value in (("learning rate", lr), ("lr_decay", lr_decay), ("epsilon", eps)):
            check_range(name, value, 0.0)
        options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No step taken, the sum at its first value."""
        first = root.full_like(parameter, group["initial_accumulator_value"])
        return {"step": root.zeros((), dtype=float32, device=parameter.device), "sum": first}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if group["weight_decay"] != 0:
            gradient = gradient + parameter * group["weight_decay"]
        rate = group["lr"] / (1 + state["step"] * group["lr_decay"])
        state["step"].add_(1)
        state["sum"].addcmul_(gradient, gradient, value=1.0)
        parameter.sub_(gradient / (state["sum"].sqrt() + group["eps"]) * rate)


class Adadelta(Optimizer):
    """Steps scaled by running averages of squared gradients and squared steps."""

    def __init__(
        self, params: Parameters, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ) -> None:
        check_range("learning rate", lr, 0.0)
        check_range("rho", rho, 0.0, 1.0000001)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Averages of zero."""
        return {"square_avg": root.zeros_like(parameter), "acc_delta": root.zeros_like(parameter)}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if group["weight_decay"] != 0:
            gradient = gradient + parameter * group["weight_decay"]
        rho, eps = group["rho"], group["eps"]
        state["square_avg"].mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt() * gradient
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.sub_(delta * group["lr"])
