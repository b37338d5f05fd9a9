"""The backward part of a joint graph: gradients of a traced program's results, written by the eager engine.

Most programs have one backward step, from all results to all inputs. A program that overwrites an input which has a
history has one for each of these besides: the caller may differentiate by that input as the program leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import lamina_tensor
from lamina_fx import Graph, Node
from lamina_tensor import Tensor, autograd
from lamina_tensor.autograd.engine import grad_until
from lamina_tensor.autograd.node import MODIFIED

from .joint import BackwardStep, OutputInfo

__all__ = ["Derivatives", "Differentiation"]


@dataclass(frozen=True)
class Derivatives:
    """What ``Differentiation`` found. ``positions`` maps inputs to gradients where there is one step only; the other
    fields are as in ``JointGraph``.
    """

    outputs: tuple[OutputInfo, ...]
    tangents: tuple[Node, ...] = ()
    gradients: tuple[Node, ...] = ()
    positions: dict[int, int] = field(default_factory=dict)
    steps: tuple[BackwardStep, ...] = ()
    nodes: frozenset[Node] = frozenset()
    refused: str | None = None


class Differentiation:
    """Of a program with these leaves; ``values`` are the inputs as the program left them."""

    def __init__(self, graph: Graph, tracer: Any, leaves: Sequence[Any], values: Sequence[Any]) -> None:
        self.graph = graph
        self.tracer = tracer
        self.leaves = {k: v for k, v in enumerate(leaves) if isinstance(v, Tensor) and v.requires_grad}
        self.values = values
        self.gradients: list[Node] = []
        self.refused: str | None = None

    def run(self, outputs: Sequence[OutputInfo], result: Callable[[Node], int]) -> Derivatives:
        """Write the gradients of ``outputs``; ``result(node)`` makes a node a result of the forward part."""
        done = [_described(info, self.tracer, result) for info in outputs]
        wanted = [k for k, info in enumerate(done) if info.requires_grad]
        if not wanted or not self.leaves:
            return Derivatives(tuple(done))
        tangents: list[Node] = []
        for k in wanted:
            done[k] = replace(done[k], tangent=len(tangents))
            with self.graph.inserting_after(self.graph.placeholders[-1]):
                spec = outputs[k].value.spec.replace(strides=None)
                tangents.append(self.graph.placeholder(f"tangent_{len(tangents)}", spec=spec))
        seeds = [self.tracer.input(node) for node in tangents]
        before = set(self.graph.nodes)
        rebased = {done[k].tangent: done[k].index for k in wanted if done[k].kind == "rebase"}
        roots = [outputs[k].value for k in wanted]
        positions: dict[int, int] = {}
        steps: tuple[BackwardStep, ...] = ()
        if rebased:
            steps = self._steps(roots, seeds, rebased)
        else:
            positions = {k: at for _, k, at in self._gradients(roots, seeds, {})}
        nodes = frozenset(node for node in self.graph.nodes if node not in before)
        return Derivatives(tuple(done), tuple(tangents), tuple(self.gradients), positions, steps, nodes, self.refused)

    def _steps(self, roots: list[Any], seeds: list[Any], rebased: dict[Any, int]) -> tuple[BackwardStep, ...]:
        """A step for each overwritten input, those that others derive from first, then one for all other results."""
        steps = []
        stops = {k: self.values[k] for k in rebased.values()}
        for tangent, k in sorted(rebased.items(), key=lambda item: self.values[item[1]].grad_fn.sequence):
            others = {j: value for j, value in stops.items() if j != k}
            found = self._gradients([roots[tangent]], [seeds[tangent]], others)
            steps.append(BackwardStep((tangent,), found, k))
        rest = tuple(t for t in range(len(roots)) if t not in rebased)
        if rest:
            found = self._gradients([roots[t] for t in rest], [seeds[t] for t in rest], stops)
            steps.append(BackwardStep(rest, found))
        return tuple(steps)

    def _gradients(self, roots: list[Any], seeds: list[Any], stops: dict[int, Any]) -> tuple[tuple[str, int, int], ...]:
        """Kind, input and position of each gradient there is."""
        targets = [*(("input", k, v) for k, v in self.leaves.items()), *(("rebased", k, v) for k, v in stops.items())]
        places = []
        tensors = [value for _, _, value in targets]
        for (kind, k, _), gradient in zip(targets, self._values(roots, tensors, seeds, stops), strict=True):
            if gradient is not None:
                places.append((kind, k, len(self.gradients)))
                self.gradients.append(self.tracer.value(gradient))
        return tuple(places)

    def _values(self, roots: list[Any], targets: list[Any], seeds: list[Any], stops: dict[int, Any]) -> Sequence[Any]:
        """What eager raises when it comes to the backward pass is no error of the call: it is noted, for then."""
        try:
            if stops:
                return grad_until(roots, targets, seeds, stops.values())
            return autograd.grad(roots, targets, seeds, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            if not str(error).startswith(MODIFIED):
                raise
            self.refused = str(error)
            with autograd.no_grad():
                return [lamina_tensor.zeros_like(target) for target in targets]


def _described(info: OutputInfo, tracer: Any, result: Callable[[Node], int]) -> OutputInfo:
    """Without the traced tensor."""
    if info.kind == "rebase":
        return replace(info, value=result(tracer.value(info.value)))
    return replace(info, value=None) if info.kind in ("value", "root") else info
