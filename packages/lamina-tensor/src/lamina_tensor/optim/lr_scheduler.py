"""Schedules of the learning rate. Call ``step()`` after the optimizer's."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from .optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Base: ``factor(epoch)`` gives what each group's initial rate is multiplied by."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, epoch: int) -> float:
        """What the initial rates are multiplied by at this epoch."""
        raise NotImplementedError(f"{type(self).__name__} does not define factor()")

    def get_lr(self) -> list[float]:
        """Rates of this epoch, one per group."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._last_lr = self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in vars(self).items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state."""
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """The factor is a function of the epoch (one, or one per group)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        several = isinstance(lr_lambda, list | tuple)
        self.lr_lambdas: Sequence[Callable[[int], float]] = (
            list(lr_lambda) if several else [lr_lambda] * len(optimizer.param_groups)
        )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of callable objects their attributes."""
        state = super().state_dict()
        kept = [None if isinstance(fn, FunctionType) else dict(vars(fn)) for fn in self.lr_lambdas]
        return {**state, "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state; the functions are those given here."""
        kept = state_dict.get("lr_lambdas", ())
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, attributes in zip(self.lr_lambdas, kept):
            if attributes is not None:
                vars(fn).update(attributes)

    def get_lr(self) -> list[float]:
        """Rates of this epoch."""
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """Each epoch's rate is the last one's times a function of the epoch (one, or one per group)."""

    def get_lr(self) -> list[float]:
        """Rates of this epoch."""
        groups = self.optimizer.param_groups
        if self.last_epoch == 0:
            return [group["lr"] for group in groups]
        return [group["lr"] * fn(self.last_epoch) for group, fn in zip(groups, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times gamma every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """gamma ^ (epoch // step_size)."""
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """gamma ^ (milestones passed)."""
        return self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """gamma ^ epoch."""
        return self.gamma**epoch


class ConstantLR(LRScheduler):
    """``factor`` until ``total_iters``, then 1."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.start_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The start factor, then 1."""
        return self.start_factor if epoch < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` in ``total_iters`` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"factors must be between 0 and 1, got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Linear in the epoch."""
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class PolynomialLR(LRScheduler):
    """(1 - epoch / total_iters) ^ power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Falls to 0."""
        return (1.0 - min(epoch, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to ``eta_min`` in ``T_max`` steps. Source: I. Loshchilov, F. Hutter 2017."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Rates of this epoch."""
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines of growing length (T_0, T_0 T_mult, ...). Source: I. Loshchilov, F. Hutter 2017."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(f"T_0 must be positive and T_mult at least 1, got {T_0} and {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Rates of this epoch."""
        length, at = self.T_0, self.last_epoch
        while at >= length:
            at -= length
            length *= self.T_mult
        share = (1 + math.cos(math.pi * at / length)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up to ``max_lr``, then down to nearly nothing, by cosines. Source: L. Smith and N. Topin 2018."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        self.max_lr, self.total_steps, self.pct_start = max_lr, total_steps, pct_start
        self.first, self.last = max_lr / div_factor, max_lr / div_factor / final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Rates of this step."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"tried to step {self.last_epoch} times; the total number of steps is {self.total_steps}")
        peak = self.pct_start * self.total_steps - 1
        if self.last_epoch <= peak:
            low, high, share = self.first, self.max_lr, self.last_epoch / peak if peak else 1.0
        else:
            low, high = self.max_lr, self.last
            share = (self.last_epoch - peak) / (self.total_steps - 1 - peak)
        rate = high + (low - high) * (1 + math.cos(math.pi * share)) / 2
        return [rate] * len(self.base_lrs)


class CyclicLR(LRScheduler):
    """Triangles between ``base_lr`` and ``max_lr``. Source: L. Smith 2017."""

    def __init__(
        self, optimizer: Optimizer, base_lr: float, max_lr: float, step_size_up: int = 2000, last_epoch: int = -1
    ) -> None:
        self.low, self.high, self.step_size = base_lr, max_lr, step_size_up
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Rates of this step."""
        at = self.last_epoch / self.step_size
        share = 1 - abs(at - 2 * math.floor(at / 2) - 1)
        return [self.low + (self.high - self.low) * share] * len(self.base_lrs)


class SequentialLR:
    """One schedule after the other, changing at the milestones."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedulers need {len(schedulers) - 1} milestones, got {len(milestones)}"
            )
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = -1
        self.step()

    def step(self) -> None:
        """Go on by one."""
        self.last_epoch += 1
        index = bisect_right(self.milestones, self.last_epoch)
        start = self.milestones[index - 1] if index else 0
        self.schedulers[index].step(self.last_epoch - start)

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return [group["lr"] for group in self.optimizer.param_groups]


class ReduceLROnPlateau:
    """Times ``factor`` when a measure has not improved for ``patience`` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("factor should be < 1.0")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs'; got {mode!r}, {threshold_mode!r}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: Any) -> None:
        """Tell the measure of this epoch."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        return math.isinf(self.best) or sign * value < sign * self.best - margin

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return [group["lr"] for group in self.optimizer.param_groups]
