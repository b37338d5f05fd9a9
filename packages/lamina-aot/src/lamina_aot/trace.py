"""Trace a captured graph through the eager autograd engine into a joint graph.

The captured program runs on tensors whose storage is a value in a new graph, so its gradients are the eager
engine's by construction, and in-place writes and views become functional by the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamina_tensor
from lamina_fx import Graph, Node, TensorSpec
from lamina_tensor import Tensor

from .joint import GradUpdate, InputInfo, JointGraph, OutputInfo
from .replay import Replay

__all__ = ["trace_joint"]


def trace_joint(captured: Graph, inputs: Sequence[Any]) -> JointGraph:
    """Trace ``captured`` with inputs like these.

    ``inputs`` has one entry per placeholder: a tensor (real or fake; only its spec, ``requires_grad``, leaf state,
    and whether it shares memory with others are read) or a number. An input that is another's ``.grad`` is
    recognised by identity.
    """
    return _Trace(captured, inputs).run()


class _Trace:
    """State of one tracing."""

    def __init__(self, captured: Graph, inputs: Sequence[Any]) -> None:
        self.captured = captured
        self.examples = list(inputs)
        self.graph = Graph()
        self.infos: list[InputInfo] = []
        self.nodes: list[Node] = []
        self.values: list[Any] = []
        self.results: list[Node] = []
        self.result_index: dict[Node, int] = {}

    def run(self) -> JointGraph:
        with lamina_tensor.trace(self.graph) as self.tracer:
            self._make_inputs()
            replay = Replay(self.captured, self.graph, self.tracer)
            returned = replay.run(*self.values)
            self.graph.regions = ()
            self.tracer.source = None
            outputs = [self._output(value) for value in returned]
            updates = self._grad_updates()
            written = [self._written(k) for k in range(len(self.values))]
            outputs += [self._rebase(k) for k, w in enumerate(written) if w and self._has_history(k)]
            tangents, outputs, gradients, backward_nodes = self._differentiate(outputs)
            self._protect_written(written, backward_nodes)
            self._write_back(written)
        infos = self._input_infos(written, gradients)
        found = [g for g in gradients if g is not None]
        self.graph.output((*self.results, *found))
        return JointGraph(
            self.graph,
            tuple(infos),
            tuple(outputs),
            tuple(updates),
            len(self.results),
            tuple(tangents),
            frozenset(backward_nodes),
        )

    # -- inputs ----------------------------------------------------------------------------------

    def _make_inputs(self) -> None:
        by_id: dict[int, int] = {}
        for placeholder, example in zip(self.captured.placeholders, self.examples, strict=True):
            index = len(self.values)
            if not isinstance(example, Tensor):
                node = self.graph.placeholder(placeholder.target, spec=placeholder.spec)
                self.nodes.append(node)
                self.values.append(example)
                continue
            by_id[id(example)] = index
            spec = placeholder.spec if isinstance(placeholder.spec, TensorSpec) else example.spec
            node = self.graph.placeholder(placeholder.target, spec=spec)
            self.nodes.append(node)
            self.values.append(self.tracer.input(node, requires_grad=example.requires_grad, is_leaf=example.is_leaf))
        self.grad_of: dict[int, int] = {}
        for example, value in zip(self.examples, self.values, strict=True):
            grad = example.grad if isinstance(example, Tensor) and example.is_leaf else None
            if grad is not None and id(grad) in by_id:
                value.grad = self.values[by_id[id(grad)]]
        self.first_grads = [v.grad if isinstance(v, Tensor) and v.is_leaf else None for v in self.values]
        self.first_versions = [v._version if isinstance(v, Tensor) else 0 for v in self.values]

    def _input_infos(self, written: list[bool], gradients: list[Node | None]) -> list[InputInfo]:
        infos, count = [], 0
        position: dict[int, int] = {}
        for index, gradient in zip(self.differentiable, gradients, strict=True):
            if gradient is not None:
                position[index] = count
                count += 1
        for k, (example, value) in enumerate(zip(self.examples, self.values, strict=True)):
            if not isinstance(value, Tensor):
                infos.append(InputInfo(None))
                continue
            infos.append(
                InputInfo(
                    self.nodes[k].spec,
                    example.requires_grad,
                    example.is_leaf,
                    written[k],
                    position.get(k),  # type: ignore[arg-type]
                )
            )
        return infos

    # -- outputs ---------------------------------------------------------------------------------

    def _result(self, node: Node) -> int:
        if node not in self.result_index:
            self.result_index[node] = len(self.results)
            self.results.append(node)
        return self.result_index[node]

    def _output(self, value: Any) -> OutputInfo:
        if not isinstance(value, Tensor):
            return OutputInfo("constant", value=value)
        for index, given in enumerate(self.values):
            if given is value:
                return OutputInfo("input", index)
        for index, given in enumerate(self.values):
            if isinstance(given, Tensor) and given.storage is value.storage:
                return OutputInfo("view", index, spec=value.spec, offset=value.storage_offset())
        node = self.tracer.value(value)
        return OutputInfo("value", self._result(node), value=value, requires_grad=value.requires_grad)

    def _grad_updates(self) -> list[GradUpdate]:
        updates = []
        for k, value in enumerate(self.values):
            if not isinstance(value, Tensor) or not value.is_leaf or value.grad is self.first_grads[k]:
                continue
            grad = value.grad
            updates.append(GradUpdate(k, None if grad is None else self._result(self.tracer.value(grad))))
        return updates

    # -- writes ----------------------------------------------------------------------------------

    def _written(self, index: int) -> bool:
        value = self.values[index]
        return isinstance(value, Tensor) and self.tracer.mutated(value)

    def _has_history(self, index: int) -> bool:
        return (
            not self.values[index].is_leaf
            and self.values[index].requires_grad
            and self.values[index]._version != (self.first_versions[index])
        )

    def _rebase(self, index: int) -> OutputInfo:
        value = self.values[index]
        return OutputInfo("rebase", index, value=value, requires_grad=True)

    def _write_back(self, written: list[bool]) -> None:
        for node, value, is_written in zip(self.nodes, self.values, written, strict=True):
            if is_written and (value.is_leaf or not value.requires_grad):
                final = self.tracer.value(value)
                if final is not node:
                    self.graph.call_function("copy_to", (node, final), effect="write")

    def _protect_written(self, written: list[bool], backward_nodes: set[Node]) -> None:
        """The backward runs after the input has been overwritten: let it use a copy taken before."""
        for node, is_written in zip(self.nodes, written, strict=True):
            users = [user for user in node.users if user in backward_nodes]
            if not is_written or not users:
                continue
            with self.graph.inserting_after(node):
                copy = self.graph.call_function("clone", (node,), spec=node.spec)
            for user in users:
                user.replace_input_with(node, copy)

    # -- derivatives -----------------------------------------------------------------------------

    def _differentiate(
        self, outputs: list[OutputInfo]
    ) -> tuple[list[Node], list[OutputInfo], list[Node | None], set[Node]]:
        self.differentiable = [
            k for k, v in enumerate(self.values) if isinstance(v, Tensor) and self.examples[k].requires_grad
        ]
        roots = [o for o in outputs if o.requires_grad]
        done: list[OutputInfo] = []
        tangents: list[Node] = []
        seeds: list[Any] = []
        for info in outputs:
            value = info.value
            if info.kind == "rebase":
                index = self._result(self.tracer.value(value))
            else:
                index = info.index
            tangent = None
            if info.requires_grad:
                node = self.graph.placeholder(f"tangent_{len(tangents)}", spec=value.spec.replace(strides=None))
                tangent = len(tangents)
                tangents.append(node)
                seeds.append(self.tracer.input(node, requires_grad=False, is_leaf=True))
            kept = index if info.kind == "rebase" else info.value if info.kind == "constant" else None
            done.append(
                OutputInfo(
                    info.kind,
                    info.index if info.kind != "value" else index,
                    kept,
                    info.spec,
                    info.offset,
                    info.requires_grad,
                    tangent,
                )
            )
        if not roots or not self.differentiable:
            return [], [_without_tangent(o) for o in done], [], set()
        before = set(self.graph.nodes)
        found = lamina_tensor.autograd.grad(
            [o.value for o in roots], [self.values[k] for k in self.differentiable], seeds, allow_unused=True
        )
        gradients = [None if g is None else self.tracer.value(g) for g in found]
        return tangents, done, gradients, {n for n in self.graph.nodes if n not in before}


def _without_tangent(info: OutputInfo) -> OutputInfo:
    if info.tangent is None:
        return info
    return OutputInfo(info.kind, info.index, info.value, info.spec, info.offset, info.requires_grad, None)
