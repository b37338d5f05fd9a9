"""The base class of optimizers: parameter groups, state, and the interface that schedulers use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..tensor import Tensor

__all__ = ["Optimizer"]

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


class Optimizer:
    """Holds parameters in groups with options each, and state per parameter.

    Subclasses define ``update(parameter, gradient, state, group)``, which changes the parameter in place, and
    ``init_state(parameter, group)``, which gives the state of a parameter before its first update.

    Raises:
        TypeError: parameters that are no tensors.
        ValueError: none at all, a non-leaf, or one in two groups.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params should be an iterable of tensors or dicts, got one Tensor; wrap it in a list")
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        given: list[Any] = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else [p[1] if isinstance(p, tuple) else p for p in params]
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}"
                )
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop (or zero) the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; ``closure`` evaluates the model again and returns the loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            self.make_state()
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self.update(parameter, parameter.grad, self.state[parameter], group)
        return loss

    def make_state(self) -> None:
        """Give a state to every parameter that has a gradient and none yet: one before its first update.

        `step` begins with it. Capture calls it while compiling, so that the first step is compiled like all others.
        """
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not self.state[parameter]:
                    self.state[parameter].update(self.init_state(parameter, group))

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter that was never updated; empty where an optimizer has none."""
        return {}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change one parameter in place; gradients are off."""
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def state_dict(self) -> dict[str, Any]:
        """State and groups with parameters replaced by their positions."""
        number: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                number.setdefault(id(parameter), len(number))
        groups = [{**group, "params": [number[id(p)] for p in group["params"]]} for group in self.param_groups]
        return {"state": {number[id(p)]: dict(s) for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state.

        Raises:
            ValueError: other numbers of groups or parameters.
        """
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        parameters: dict[int, Tensor] = {}
        for own, saved in zip(self.param_groups, groups, strict=True):
            if len(own["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            parameters.update(zip(saved["params"], own["params"], strict=True))
        for own, saved in zip(self.param_groups, groups, strict=True):
            own.update({k: deepcopy(v) for k, v in saved.items() if k != "params"})
        self.state.clear()
        for key, saved in state_dict["state"].items():
            parameter = parameters[int(key)]
            self.state[parameter] = {
                k: v.to(parameter.device, copy=True) if isinstance(v, Tensor) else deepcopy(v) for k, v in saved.items()
            }

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])


def check_range(name: str, value: float, low: float, high: float | None = None) -> None:
    """Raise ValueError unless low <= value (< high)."""
    if isinstance(value, Tensor):
        return
    if not value >= low or (high is not None and not value < high):
        span = f"at least {low}" if high is None else f"in [{low}, {high})"
        raise ValueError(f"invalid {name}: {value}; it must be {span}")
