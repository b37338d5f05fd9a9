"""Trace a captured graph through the eager autograd engine into a joint graph.

The captured program runs on tensors whose storage is a value in a new graph, so its gradients are the eager
engine's by construction, and in-place writes and views become functional by the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import lamina_tensor
from lamina_fx import Graph, Node, ScalarSpec, TensorSpec, float64
from lamina_fx.expect import expect
from lamina_tensor import Tensor, autograd
from lamina_tensor.views import offset_of

from .derivatives import Differentiation
from .joint import GradUpdate, InputInfo, JointGraph, OutputInfo
from .outputs import describe_outputs
from .replay import Replay, replaced_gradients, touches_gradients

__all__ = ["trace_joint"]


def trace_joint(captured: Graph, inputs: Sequence[Any]) -> JointGraph:
    """Trace ``captured`` with inputs like these.

    ``inputs`` has one entry per placeholder: a tensor (real or fake; only its spec, ``requires_grad``, leaf state and
    ``.grad`` are read) or a number. Where the program touches gradients, each leaf's ``.grad`` that is no input
    already becomes an additional one (``JointGraph.grad_inputs``).
    """
    expect("trace_joint", captured, Graph, "a Graph")
    expect("trace_joint", inputs, Sequence, "a list of inputs, one per placeholder")
    if len(inputs) != len(captured.placeholders):
        raise TypeError(f"trace_joint: {len(captured.placeholders)} placeholders, but {len(inputs)} inputs")
    return _Trace(captured, inputs).run()


class _Entry(autograd.Function):
    """Stands between a leaf and the program where the program's input is no leaf: it may be written in place."""

    @staticmethod
    def forward(ctx: Any, leaf: Any, tracer: Any) -> Any:
        """The same value in memory of its own."""
        return tracer.copy(leaf)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        """Passed on."""
        return cotangent, None


class _Trace:
    """State of one tracing. ``leaves`` are what gradients are taken by, ``values`` what the program gets."""

    def __init__(self, captured: Graph, inputs: Sequence[Any]) -> None:
        self.captured = captured
        self.examples = list(inputs)
        self.graph = Graph()
        self.nodes: list[Node] = []
        self.leaves: list[Any] = []
        self.values: list[Any] = []
        self.grad_inputs: list[int] = []
        self.results: list[Node] = []
        self.result_index: dict[Node, int] = {}

    def run(self) -> JointGraph:
        """Do everything."""
        with lamina_tensor.trace(self.graph) as self.tracer:
            self._make_inputs()
            replay = Replay(self.captured, self.graph, self.tracer)
            returned = replay.run(*self.values[: len(self.examples)])
            self.graph.regions = ()
            self.tracer.meta = {}
            outputs = describe_outputs(self.tracer, returned, self.values, self._result)
            updates = self._grad_updates()
            rebased = [k for k in range(len(self.values)) if self._written(k) and self._has_history(k)]
            outputs += [OutputInfo("rebase", k, value=self.values[k], requires_grad=True) for k in rebased]
            outputs = [replace(o, node=replay.node_of(o.value)) if o.requires_grad else o for o in outputs]
            found = Differentiation(self.graph, self.tracer, self.leaves, self.values).run(outputs, self._result)
            written = [self._written(k) and k not in rebased for k in range(len(self.values))]
            self._write_back(written)
        self.graph.output((*self.results, *found.gradients))
        return JointGraph(
            self.graph,
            tuple(self._input_infos(written, found.positions)),
            found.outputs,
            tuple(updates),
            len(self.results),
            found.tangents,
            found.nodes,
            tuple(self.grad_inputs),
            tuple(sorted(self.replaced)),
            found.steps,
            found.refused,
        )

    # -- inputs ----------------------------------------------------------------------------------

    def _make_inputs(self) -> None:
        for placeholder, example in zip(self.captured.placeholders, self.examples, strict=True):
            if isinstance(example, Tensor):
                spec = placeholder.spec if isinstance(placeholder.spec, TensorSpec) else example.spec
                offset = offset_of(example)
                self._make_input(placeholder.target, spec, example.requires_grad, example.is_leaf, offset)
            elif isinstance(placeholder.spec, ScalarSpec) and placeholder.spec.kind is float and type(example) is float:
                # A number that varies from call to call: an input without dimensions, which promotes as a number does.
                self._make_input(placeholder.target, TensorSpec((), float64), False, True)
            else:
                spec = placeholder.spec
                symbolic = isinstance(spec, ScalarSpec) and hasattr(spec.value, "expr")
                value = spec.value if symbolic else example  # the example's number is this call's only
                self.nodes.append(self.graph.placeholder(placeholder.target, spec=spec))
                self.leaves.append(value)
                self.values.append(value)
        self.replaced = replaced_gradients(self.captured)
        if touches_gradients(self.captured):
            self._make_grads()
        leaf = [isinstance(v, Tensor) and v.is_leaf for v in self.values]
        self.first_grads = [v.grad if is_leaf else None for v, is_leaf in zip(self.values, leaf, strict=True)]

    def _make_input(self, name: str, spec: TensorSpec, requires_grad: bool, is_leaf: bool, offset: int = 0) -> Tensor:
        node = self.graph.placeholder(name, spec=spec)
        leaf = self.tracer.input(node, requires_grad=requires_grad, offset=offset)
        with autograd.enable_grad():  # an input has its history also where the program starts without recording
            value = leaf if is_leaf or not requires_grad else _Entry.apply(leaf, self.tracer)
        self.nodes.append(node)
        self.leaves.append(leaf)
        self.values.append(value)
        return value

    def _make_grads(self) -> None:
        position = {id(example): k for k, example in enumerate(self.examples)}
        for k, example in enumerate(self.examples):
            if not isinstance(example, Tensor) or not example.is_leaf or example.grad is None:
                continue
            if k in self.replaced:
                continue
            grad = example.grad
            if id(grad) in position:
                self.values[k].grad = self.values[position[id(grad)]]
                continue
            self.grad_inputs.append(k)
            self.values[k].grad = self._make_input(f"{self.nodes[k].name}_grad", grad.spec, False, True)

    def _input_infos(self, written: list[bool], positions: dict[int, int]) -> list[InputInfo]:
        infos = []
        for k, leaf in enumerate(self.leaves):
            if not isinstance(leaf, Tensor):
                infos.append(InputInfo(None))
                continue
            is_leaf = self.values[k] is leaf
            infos.append(InputInfo(leaf.spec, leaf.requires_grad, is_leaf, written[k], positions.get(k)))
        return infos

    # -- outputs ---------------------------------------------------------------------------------

    def _result(self, node: Node) -> int:
        if node not in self.result_index:
            self.result_index[node] = len(self.results)
            self.results.append(node)
        return self.result_index[node]

    def _grad_updates(self) -> list[GradUpdate]:
        updates = []
        for k, first in enumerate(self.first_grads):
            value = self.values[k]
            if not isinstance(value, Tensor) or not value.is_leaf:
                continue
            if value.grad is first and k not in self.replaced:
                continue
            if value.grad is not None:  # a result of its own, though two gradients may have one value
                self.results.append(self.tracer.value(value.grad))
            updates.append(GradUpdate(k, None if value.grad is None else len(self.results) - 1))
        return updates

    # -- writes ----------------------------------------------------------------------------------

    def _written(self, index: int) -> bool:
        value = self.values[index]
        return isinstance(value, Tensor) and self.tracer.mutated(value)

    def _has_history(self, index: int) -> bool:
        return self.values[index].requires_grad and not self.values[index].is_leaf

    def _write_back(self, written: list[bool]) -> None:
        for node, value, is_written in zip(self.nodes, self.values, written, strict=True):
            if is_written:
                final = self.tracer.value(value)
                if final is not node:
                    self.graph.call_function("copy_to", (node, final), effect="write")
