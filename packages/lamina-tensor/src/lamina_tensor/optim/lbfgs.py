"""L-BFGS. Source: J. Nocedal and S. Wright, Numerical Optimization, 2nd edition (algorithms 7.4, 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..namespace import root
from ..tensor import Tensor
from .optimizer import Optimizer, Parameters

__all__ = ["LBFGS"]

_CURVATURE = 1e-10
"""Pairs whose product is not above are not kept: the approximation would not stay positive."""


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last ``history_size`` changes of parameters and gradients.

    ``step(closure)`` evaluates the closure several times: it clears the gradients, computes the loss, calls
    ``backward`` and returns the loss. ``line_search_fn`` is None (steps of ``lr``) or ``"strong_wolfe"``.

    Raises:
        ValueError: several parameter groups, or another line search.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn must be None or 'strong_wolfe', not {line_search_fn!r}")
        evaluations = max_iter * 5 // 4 if max_eval is None else max_eval
        options = {"lr": lr, "max_iter": max_iter, "max_eval": evaluations, "tolerance_grad": tolerance_grad}
        options.update(tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn)
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to ``max_iter`` iterations; returns the first loss.

        Raises:
            TypeError: no closure.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that evaluates the model again and returns the loss")
        with no_grad():
            return _Run(self, closure).run()


@dataclass
class _Point:
    """Along the search line: distance, loss, gradient and its slope along the line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


class _Run:
    """One call of ``step``."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.group = optimizer.param_groups[0]
        self.parameters: list[Tensor] = self.group["params"]
        self.state = optimizer.state[self.parameters[0]]
        self.closure = closure
        self.evaluations = 0

    def evaluate(self) -> tuple[Any, Tensor]:
        """The loss here, and the gradient as one vector."""
        with enable_grad():
            loss = self.closure()
        self.evaluations += 1
        self.state["func_evals"] = self.state.get("func_evals", 0) + 1
        parts = [root.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        return loss, root.cat([part.reshape(-1) for part in parts]).clone()

    def move(self, direction: Tensor, distance: float) -> None:
        """All parameters along a vector."""
        at = 0
        for parameter in self.parameters:
            count = parameter.numel()
            parameter.add_(direction[at : at + count].view_as(parameter), alpha=distance)
            at += count

    def run(self) -> Any:
        """Iterate."""
        group, state = self.group, self.state
        first, gradient = self.evaluate()
        loss = float(first)
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for iteration in range(group["max_iter"]):
            direction = self._direction(gradient)
            state["n_iter"] = state.get("n_iter", 0) + 1
            slope = float(gradient.dot(direction))
            step = group["lr"] * (min(1.0, 1.0 / float(gradient.abs().sum())) if state["n_iter"] == 1 else 1.0)
            state["prev_flat_grad"], before = gradient, loss
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is None:
                self.move(direction, step)
                if iteration + 1 < group["max_iter"]:
                    found, gradient = self.evaluate()
                    loss = float(found)
            else:
                best = self._search(direction, _Point(0.0, loss, gradient, slope), step)
                step, loss, gradient = best.t, best.loss, best.gradient
                self.move(direction, step)
            state["d"], state["t"] = direction, step
            if self._finished(gradient, direction, step, loss - before):
                break
        return first

    def _finished(self, gradient: Tensor, direction: Tensor, step: float, change: float) -> bool:
        group = self.group
        return (
            self.evaluations >= group["max_eval"]
            or float(gradient.abs().max()) <= group["tolerance_grad"]
            or float((direction * step).abs().max()) <= group["tolerance_change"]
            or abs(change) < group["tolerance_change"]
        )

    def _direction(self, gradient: Tensor) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient: the two-loop recursion."""
        state = self.state
        if "d" not in state:
            state.update(old_dirs=[], old_stps=[], H_diag=1.0)
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        product = float(change.dot(moved))
        if product > _CURVATURE:
            if len(state["old_dirs"]) == self.group["history_size"]:
                state["old_dirs"].pop(0), state["old_stps"].pop(0)
            state["old_dirs"].append(change)
            state["old_stps"].append(moved)
            state["H_diag"] = product / float(change.dot(change))
        pairs = [(y, s, 1.0 / float(y.dot(s))) for y, s in zip(state["old_dirs"], state["old_stps"], strict=True)]
        result = -gradient
        weights = []
        for y, s, inverse in reversed(pairs):
            weights.append(float(s.dot(result)) * inverse)
            result = result - y * weights[-1]
        result = result * state["H_diag"]
        for (y, s, inverse), weight in zip(pairs, reversed(weights), strict=True):
            result = result + s * (weight - float(y.dot(result)) * inverse)
        return result

    # -- line search -----------------------------------------------------------------------------------

    def _at(self, direction: Tensor, t: float) -> _Point:
        """The point at distance ``t``; the parameters stay where they are."""
        kept = [p.clone() for p in self.parameters]
        self.move(direction, t)
        loss, gradient = self.evaluate()
        for parameter, value in zip(self.parameters, kept, strict=True):
            parameter.copy_(value)
        return _Point(t, float(loss), gradient, float(gradient.dot(direction)))

    def _search(self, direction: Tensor, start: _Point, t: float, decrease: float = 1e-4, flat: float = 0.9) -> _Point:
        """A point that fulfils the strong Wolfe conditions, or the best one found in 25 evaluations."""
        low = start
        for count in range(25):
            point = self._at(direction, t)
            if point.loss > start.loss + decrease * t * start.slope or (count and point.loss >= low.loss):
                return self._zoom(direction, start, low, point, 25 - count, decrease, flat)
            if abs(point.slope) <= -flat * start.slope:
                return point
            if point.slope >= 0:
                return self._zoom(direction, start, point, low, 25 - count, decrease, flat)
            t = min(max(_cubic_minimum(low, point), t + 0.01 * (t - low.t)), t * 10)
            low = point
        return low

    def _zoom(
        self, direction: Tensor, start: _Point, low: _Point, high: _Point, left: int, decrease: float, flat: float
    ) -> _Point:
        """Narrow an interval that contains such a point; ``low`` is its better end."""
        for _ in range(left):
            first, last = min(low.t, high.t), max(low.t, high.t)
            if (last - first) * float(direction.abs().max()) < self.group["tolerance_change"]:
                break
            margin = 0.1 * (last - first)
            point = self._at(direction, min(max(_cubic_minimum(low, high), first + margin), last - margin))
            if point.loss > start.loss + decrease * point.t * start.slope or point.loss >= low.loss:
                high = point
                continue
            if abs(point.slope) <= -flat * start.slope:
                return point
            if point.slope * (high.t - low.t) >= 0:
                high = low
            low = point
        return low


def _cubic_minimum(a: _Point, b: _Point) -> float:
    """Where the cubic through two points with these slopes is least; their middle where it has no minimum."""
    middle = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = middle * middle - a.slope * b.slope
    if not square >= 0:  # NaN, too
        return (a.t + b.t) / 2
    root_of = square**0.5 if b.t > a.t else -(square**0.5)
    bottom = b.slope - a.slope + 2 * root_of
    return (a.t + b.t) / 2 if bottom == 0 else b.t - (b.t - a.t) * (b.slope + root_of - middle) / bottom
