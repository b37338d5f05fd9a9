"""The tape entry of one call of a compiled graph: a node of the eager engine whose backward runs the compiled half.

Everything that is the same at each call (which results are differentiable, where gradients go, what is saved) is
found once, in ``TapePlan``; a call makes one node and hangs the results on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lamina_tensor
from lamina_fx import Node, TensorSpec
from lamina_tensor import Tensor
from lamina_tensor._C import TensorBase, alias, is_grad_enabled, set_grad_enabled, wrap
from lamina_tensor.autograd.node import _FREED, check_version, edge_of
from lamina_tensor.autograd.node import Node as TapeNode
from lamina_tensor.autograd.record import INFERENCE
from lamina_tensor.autograd.reduce_gradient import reduce_gradient
from lamina_tensor.creator import calling_user_code

from .joint import BackwardStep, JointGraph
from .partition import Partition, ancestors

if TYPE_CHECKING:
    from .runtime import CompiledGraph

__all__ = ["TapePlan", "call_recorded", "tape_plan", "write_rebased"]


@dataclass(frozen=True, slots=True)
class TapePlan:
    """What does not change from call to call.

    Attributes:
        results: positions of the differentiable results of the forward half, in the order of the tangents.
        tangents: the spec of each tangent.
        steps: backward steps; one without ``rebased`` where the program overwrites no input that has a history.
        saved: (is an input, position) of what the backward half reads; of results, which are returned as well.
        returned: how many of the forward half's results are the program's.
        snapshots: inputs that the call overwrites and a second derivative reads.
        read: inputs that the gradients depend on.
        always: the program was traced for ``no_grad`` and switches recording on itself (it was captured from behind
            a break in a ``no_grad`` block): its differentiable results have a history whatever the caller's mode.
    """

    results: tuple[int, ...]
    tangents: tuple[TensorSpec, ...]
    steps: tuple[BackwardStep, ...]
    saved: tuple[tuple[bool, int], ...]
    returned: int
    snapshots: tuple[int, ...]
    read: tuple[int, ...]
    always: bool = False


def tape_plan(joint: JointGraph, halves: Partition) -> TapePlan:
    """The plan for calls of a graph that was cut in two."""
    differentiable = [o for o in joint.outputs if o.tangent is not None]
    differentiable.sort(key=lambda o: o.tangent)  # type: ignore[arg-type,return-value]
    specs = [t.spec for t in joint.tangents]
    needed = ancestors([r for r in joint.results[joint.forward_count :] if isinstance(r, Node)])
    read = tuple(k for k, n in enumerate(joint.graph.placeholders) if n in needed)
    return TapePlan(
        tuple(o.value if o.kind == "rebase" else o.index for o in differentiable),
        tuple(s for s in specs if isinstance(s, TensorSpec)),
        joint.backward_steps,
        tuple((place == "input", k) for place, k in halves.places),
        joint.forward_count,
        tuple(k for k in read if k in joint.overwritten),
        tuple(k for k in read if k < len(joint.inputs)),
        not is_grad_enabled(),
    )


def call_recorded(compiled: CompiledGraph, plan: TapePlan, inputs: tuple[Any, ...]) -> Sequence[Any]:
    """Run the forward half; its differentiable results get a history."""
    entered = is_grad_enabled()
    recording = entered or plan.always
    try:
        set_grad_enabled(recording)
        before = _with_snapshots(plan, inputs) if plan.snapshots and recording else inputs
        set_grad_enabled(False)
        results = list(compiled.forward(*inputs))
    finally:
        set_grad_enabled(entered)
    if not recording:
        write_rebased(compiled.joint, inputs, results)
        return results
    _unshare(plan, inputs, results)
    edges = {step.rebased: _edge(before[step.rebased]) for step in plan.steps if step.rebased is not None}
    for step in plan.steps:
        node = CompiledNode(compiled, plan, step, (inputs, before), results, edges)
        for tangent in step.tangents:
            position = plan.results[tangent]
            result = results[position]
            if step.rebased is not None:  # others may return the same value with another history
                result = alias(result, type(result), False)
            result._grad_fn = node
            result._output_nr = position
            if step.rebased is not None:
                inputs[step.rebased].copy_(result)
    return results


def write_rebased(joint: JointGraph, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Write inputs that have a history and are overwritten: the copy gives them the history of what is copied."""
    for info in joint.outputs:
        if info.kind == "rebase":
            inputs[info.index].copy_(results[info.value])


def _edge(value: Any) -> tuple[Any, Any]:
    """Where the gradient of an input goes, and its shape and dtype; (None, None) where it wants none."""
    if not isinstance(value, TensorBase) or not value._requires_grad:
        return None, None
    return edge_of(value), (value._sizes, value.dtype)


def _with_snapshots(plan: TapePlan, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that the call overwrites as they were before, with their history."""
    before = list(inputs)
    for k in plan.snapshots:
        before[k] = inputs[k].clone()
    return tuple(before)


def _unshare(plan: TapePlan, inputs: tuple[Any, ...], results: list[Any]) -> None:
    """A differentiable result that is an input's tensor object becomes another object over the same memory."""
    given = set(map(id, inputs))
    for position in plan.results:
        if id(results[position]) in given:
            results[position] = alias(results[position], type(results[position]), False)


class CompiledNode(TapeNode):
    """A backward step of one call. ``edges_of``: of the overwritten inputs as they were before the call.

    Other inputs may get a new history by the write: those that view the same tensor.
    """

    __slots__ = ("compiled", "inputs", "outputs", "plan", "saved", "step", "versions")

    def __init__(
        self,
        compiled: CompiledGraph,
        plan: TapePlan,
        step: BackwardStep,
        given: tuple[tuple[Any, ...], tuple[Any, ...]],
        results: Sequence[Any],
        edges_of: dict[int, tuple[Any, Any]],
    ) -> None:
        now, inputs = given
        places = [edges_of[k] if kind == "input" and k in edges_of else _edge(now[k]) for kind, k, _ in step.gradients]
        super().__init__([edge for edge, _ in places], [meta for _, meta in places])
        self.compiled = compiled
        self.plan = plan
        self.step = step
        self.inputs: tuple[Any, ...] | None = inputs
        self.saved: list[tuple[Any, int]] | None = None
        self.versions = [inputs[k]._version if isinstance(inputs[k], TensorBase) else -1 for k in plan.read]
        saved = []
        for is_input, k in plan.saved:
            value = inputs[k] if is_input else results[k]
            if not isinstance(value, TensorBase):
                saved.append((value, -1))
                continue
            if value._inference and is_input and k in compiled.saved_by_eager:
                raise RuntimeError(INFERENCE)
            if not is_input and k < plan.returned:  # the result's history is this node: keeping it would be a cycle
                value = alias(value, type(value), False)
            saved.append((value, value._version))
        self.saved = saved

    def name(self) -> str:
        """What ``print(tensor)`` shows."""
        return "CompiledFunctionBackward"

    def release(self) -> None:
        """Drop saved values."""
        self.saved = self.inputs = None

    @property
    def released(self) -> bool:
        """True after ``release``."""
        return self.saved is None

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Run the backward half: one gradient per edge."""
        saved, inputs = self.saved, self.inputs
        if saved is None or inputs is None:
            raise RuntimeError(_FREED)
        if self.compiled.joint.refused is not None:
            raise RuntimeError(self.compiled.joint.refused)
        for value, version in saved:
            if version >= 0 and value._version != version:
                check_version(self.name(), value, version, value._sizes)
        compiled = self.compiled
        tangents = self._tangents(grads)
        with calling_user_code():
            if is_grad_enabled():
                for k, version in zip(self.plan.read, self.versions, strict=True):
                    if version >= 0:
                        check_version(self.name(), inputs[k], version, inputs[k]._sizes)
                found = compiled.differentiable_gradients(inputs, tangents)
            else:
                found = compiled.gradients(inputs, [value for value, _ in saved], tangents)
        return [
            None if meta is None else self._fitted(found[at], meta)
            for (_, _, at), meta in zip(self.step.gradients, self.metas, strict=True)
        ]

    def _fitted(self, gradient: Any, meta: tuple[Any, Any]) -> Any:
        if gradient is None or (gradient._sizes == meta[0] and gradient.dtype is meta[1]):
            return gradient
        return reduce_gradient(gradient, *meta, self.name())

    def _tangents(self, grads: list[Any]) -> list[Any]:
        """The cotangents in the traced layout, zeros where there is none."""
        tangents: list[Tensor] = []
        own = self.step.tangents
        for tangent, (position, spec) in enumerate(zip(self.plan.results, self.plan.tangents, strict=True)):
            given = grads[position] if tangent in own and position < len(grads) else None
            if given is None:
                sizes = [self.compiled.sizes(self.inputs, s) for s in spec.shape]  # type: ignore[arg-type]
                given = lamina_tensor.zeros(sizes, dtype=spec.dtype, device=spec.device)
            elif not given.is_contiguous():  # such as what a sum spreads; no history is kept, so no operator is needed
                plain = given._array is not None and not is_grad_enabled()
                given = wrap(given._array.copy()) if plain else given.contiguous()
            tangents.append(given)
        return tangents
