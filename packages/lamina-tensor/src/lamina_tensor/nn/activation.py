"""Activations as modules: a table of names, functions and their parameters."""

from __future__ import annotations

from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from .module import Module
from .parameter import Parameter


class _Activation(Module):
    """Base of the generated classes: keeps the parameters as attributes and passes them to the function."""

    _function = ""
    _defaults: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self._defaults)
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes at most {len(names)} arguments ({', '.join(names)})")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        unknown = [name for name in given if name not in self._defaults]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}; it takes {', '.join(names)}")
        for name, default in self._defaults.items():
            setattr(self, name, given.get(name, default))

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return getattr(F, self._function)(input, **{name: getattr(self, name) for name in self._defaults})

    def extra_repr(self) -> str:
        """The parameters that differ from their defaults."""
        changed = {n: getattr(self, n) for n, default in self._defaults.items() if getattr(self, n) != default}
        return ", ".join(f"{name}={value!r}" for name, value in changed.items())


_TABLE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("CELU", "celu", {"alpha": 1.0, "inplace": False}),
    ("ELU", "elu", {"alpha": 1.0, "inplace": False}),
    ("GELU", "gelu", {"approximate": "none"}),
    ("GLU", "glu", {"dim": -1}),
    ("Hardshrink", "hardshrink", {"lambd": 0.5}),
    ("Hardsigmoid", "hardsigmoid", {"inplace": False}),
    ("Hardswish", "hardswish", {"inplace": False}),
    ("Hardtanh", "hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    ("LeakyReLU", "leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    ("LogSigmoid", "logsigmoid", {}),
    ("LogSoftmax", "log_softmax", {"dim": None}),
    ("Mish", "mish", {"inplace": False}),
    ("ReLU", "relu", {"inplace": False}),
    ("ReLU6", "relu6", {"inplace": False}),
    ("SELU", "selu", {"inplace": False}),
    ("Sigmoid", "sigmoid", {}),
    ("SiLU", "silu", {"inplace": False}),
    ("Softmax", "softmax", {"dim": None}),
    ("Softmin", "softmin", {"dim": None}),
    ("Softplus", "softplus", {"beta": 1.0, "threshold": 20.0}),
    ("Softshrink", "softshrink", {"lambd": 0.5}),
    ("Softsign", "softsign", {}),
    ("Tanh", "tanh", {}),
    ("Tanhshrink", "tanhshrink", {}),
    ("Threshold", "threshold", {"threshold": 0.0, "value": 0.0, "inplace": False}),
)


def _make(name: str, function: str, defaults: dict[str, Any]) -> type[_Activation]:
    doc = f"``nn.functional.{function}`` as a module. (*) -> (*)."
    return type(
        name, (_Activation,), {"_function": function, "_defaults": defaults, "__doc__": doc, "__module__": __name__}
    )


class RReLU(Module):
    """``nn.functional.rrelu`` as a module: random slopes in training. (*) -> (*)."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The bounds of the slopes."""
        return f"lower={self.lower}, upper={self.upper}"


globals().update({name: _make(name, function, defaults) for name, function, defaults in _TABLE})


class PReLU(Module):
    """max(0, x) + weight * min(0, x), with one learned weight or one per channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(root.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """(*) -> (*)."""
        return F.prelu(input, self.weight)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> same."""
        return F.softmax(input, dim=-3)


__all__ = ["PReLU", "RReLU", "Softmax2d", *(name for name, _, _ in _TABLE)]
