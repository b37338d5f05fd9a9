"""Rprop and averaged SGD. Sources: M. Riedmiller and H. Braun 1993; B. Polyak and A. Juditsky 1992."""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters, check_range

__all__ = ["ASGD", "Rprop"]


class Rprop(Optimizer):
    """Steps by the signs of gradients: a weight's step grows while its sign stays, and shrinks where it changes."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
    ) -> None:
        check_range("learning rate", lr, 0.0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No gradient before, all steps ``lr``."""
        return {"prev": root.zeros_like(parameter), "step_size": root.full_like(parameter, group["lr"])}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (smaller, larger), (least, most) = group["etas"], group["step_sizes"]
        turn = gradient * state["prev"]
        factor = root.where(turn > 0, larger, root.where(turn < 0, smaller, root.ones_like(turn)))
        state["step_size"].mul_(factor).clamp_(least, most)
        gradient = root.where(turn < 0, 0.0, gradient)
        parameter.sub_(gradient.sign() * state["step_size"])
        state["prev"].copy_(gradient)


class ASGD(Optimizer):
    """SGD with falling rates whose weights are averaged from step ``t0`` on (``state["ax"]``)."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
    ) -> None:
        check_range("learning rate", lr, 0.0)
        check_range("weight_decay", weight_decay, 0.0)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No step taken."""
        names = ("step", 0.0), ("eta", group["lr"]), ("mu", 1.0)
        state = {name: root.full((), value, dtype=float32, device=parameter.device) for name, value in names}
        return {**state, "ax": root.zeros_like(parameter)}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        step, eta, mu, mean = (state[name] for name in ("step", "eta", "mu", "ax"))
        if group["weight_decay"] != 0:
            gradient = gradient + parameter * group["weight_decay"]
        parameter.copy_(parameter * (1 - eta * group["lambd"]) - gradient * eta)
        mean.copy_(root.where(mu == 1, parameter, mean + (parameter - mean) * mu))
        step.add_(1)
        eta.copy_(group["lr"] / (1 + step * (group["lambd"] * group["lr"])) ** group["alpha"])
        mu.copy_(1 / (step - group["t0"]).clamp(min=1))
