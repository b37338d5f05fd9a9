"""Adam and AdamW. Sources: D. Kingma and J. Ba 2015; I. Loshchilov and F. Hutter 2019 (decoupled decay)."""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters, check_range

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adaptive moments. The step count is a tensor, so that a compiled step does not depend on its value."""

    _decoupled = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        check_range("learning rate", lr, 0.0)
        check_range("epsilon value", eps, 0.0)
        check_range("beta parameter at index 0", betas[0], 0.0, 1.0)
        check_range("beta parameter at index 1", betas[1], 0.0, 1.0)
        check_range("weight_decay value", weight_decay, 0.0)
        defaults = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "amsgrad": amsgrad, "maximize": maximize})

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """No step taken, moments of zero."""
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        step = root.zeros((), dtype=float32, device=parameter.device)
        return {"step": step, **{name: root.zeros_like(parameter) for name in names}}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        if group["maximize"]:
            gradient = -gradient
        if decay != 0:
            if self._decoupled:
                parameter.mul_(1 - lr * decay)
            else:
                gradient = gradient + parameter * decay
        step, mean, square = state["step"], state["exp_avg"], state["exp_avg_sq"]
        step.add_(1)
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(largest.maximum(square))
            square = largest
        correction1 = 1 - beta1**step
        correction2 = (1 - beta2**step).sqrt()
        denominator = square.sqrt() / correction2 + group["eps"]
        parameter.sub_(mean / denominator * (lr / correction1))


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself."""

    _decoupled = True

    def __init__(self, params: Parameters, lr: float = 1e-3, *args: Any, weight_decay: float = 1e-2, **kw: Any) -> None:
        if len(args) > 2:
            args, weight_decay, rest = args[:2], args[2], args[3:]
            kw.update(zip(("amsgrad",), rest, strict=False))
        super().__init__(params, lr, *args, weight_decay=weight_decay, **kw)
