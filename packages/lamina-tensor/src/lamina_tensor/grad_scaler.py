"""Scaling of losses for float16, whose small gradients would vanish.

The loss is multiplied by a scale before the backward pass, gradients are divided by it before the step; a step with an
infinite or NaN gradient is left out, and the scale is halved; after many good steps it grows. Source: P. Micikevicius
et al., "Mixed Precision Training" (2018).
"""

from __future__ import annotations

import warnings
from typing import Any

from lamina_fx import float32

from . import creation
from .autograd.grad_mode import no_grad

__all__ = ["GradScaler"]

_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """See the module. On the CPU, where products are bfloat16, it is switched off and passes all through.

    Args:
        device: ``"cuda"``: on where there is a GPU.
        init_scale, growth_factor, backoff_factor, growth_interval: the scale at first, what it is multiplied by after
            ``growth_interval`` good steps, and by after a bad one.
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        from .cuda.devices import is_available

        self._enabled = bool(enabled) and str(device).startswith("cuda")
        if self._enabled and not is_available():
            warnings.warn("GradScaler is not enabled: there is no GPU", stacklevel=2)
            self._enabled = False
        if self._enabled and not (growth_factor > 1.0 and 0.0 < backoff_factor < 1.0):
            raise ValueError("GradScaler: growth_factor must be above 1, backoff_factor between 0 and 1")
        self._device = device
        self._scale, self._growth_tracker = float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._optimizers: dict[int, tuple[int, bool]] = {}

    def is_enabled(self) -> bool:
        """Does it scale."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """The losses times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (tuple, list)):
            return type(outputs)(self.scale(o) for o in outputs)
        return outputs * creation.tensor(self._scale, dtype=float32, device=outputs.device)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, and note whether all are finite.

        Raises:
            RuntimeError: it was called already since the last ``update``, or the step was taken.
        """
        if not self._enabled:
            return
        stage, _ = self._optimizers.get(id(optimizer), (_READY, False))
        if stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(1.0 / self._scale)
                        finite = finite and bool(parameter.grad.isfinite().all())
        self._optimizers[id(optimizer)] = (_UNSCALED, finite)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, unless a gradient is not finite.

        Raises:
            RuntimeError: it was called already since the last ``update``.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        stage, finite = self._optimizers.get(id(optimizer), (_READY, False))
        if stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage == _READY:
            self.unscale_(optimizer)
            finite = self._optimizers[id(optimizer)][1]
        self._optimizers[id(optimizer)] = (_STEPPED, finite)
        return optimizer.step(*args, **kwargs) if finite else None

    def update(self, new_scale: Any = None) -> None:
        """Set the scale for the next step: smaller after a bad one, larger after many good ones, or ``new_scale``."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(not finite for _, finite in self._optimizers.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._optimizers.clear()

    def get_scale(self) -> float:
        """The scale; 1 when it is switched off."""
        return self._scale if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Scale and its rules; empty when it is switched off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state.

        Raises:
            RuntimeError: it is empty: that of a scaler that was switched off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled GradScaler."
            )
        self._scale, self._growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
