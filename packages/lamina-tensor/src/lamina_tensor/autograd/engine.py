"""The engine: runs the backward graph from its roots, latest node first, without recursion.

A node runs once all gradients that reach it are there: how many come is counted before. The same engine runs over
real, fake and traced tensors; over traced ones it writes the gradient's graph.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina_prims import operator
from lamina_prims.modes import MODES

from .._C import TensorBase, set_grad_enabled, wrap
from ..creator import creating_tensors
from ..storage import is_host
from .accumulate import accumulate_gradient, check_gradient
from .hooks import run_hooks
from .node import Node, edge_of

__all__ = ["STEPS", "backward", "grad", "grad_until"]


class _Steps(threading.local):
    """Who is told of each node before it runs: a trace, which notes the line that the node derives from."""

    entering: Callable[[Node], None] | None = None


STEPS = _Steps()

_NO_GRAD = "element {} of tensors does not require grad and does not have a grad_fn"


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of ``tensors`` into the ``.grad`` of the leaves (or of ``inputs`` only).

    Args:
        tensors: a tensor or several; each with one element unless its gradient is given.
        grad_tensors: gradients of ``tensors`` (None: ones).
        retain_graph: keep what the graph saved, so that it can run again. Default: ``create_graph``.
        create_graph: record the backward pass itself, for higher derivatives.
        inputs: the leaves to accumulate into.

    Raises:
        RuntimeError: a tensor does not require a gradient, has several elements and no gradient is given, or the
            graph was freed by an earlier backward.
    """
    roots = _roots(_listed(tensors), _listed(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    targets = None
    if inputs is not None:
        targets = [edge_of(t) for t in _listed(inputs)]
        if not targets:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    _Run(keep, create_graph, targets, accumulate=True).execute(roots)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of ``outputs`` with respect to ``inputs``; nothing is accumulated.

    Raises:
        RuntimeError: an input is not part of the graph (unless ``allow_unused``: None, or ``materialize_grads``:
            zeros), does not require a gradient, or as ``backward``.
    """
    if not only_inputs or is_grads_batched:
        raise ValueError("autograd.grad: only only_inputs=True and is_grads_batched=False are supported")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True")
    unused = materialize_grads if allow_unused is None else allow_unused
    wanted = _listed(inputs)
    roots = _roots(_listed(outputs), _listed(grad_outputs))
    for tensor in wanted:
        if not tensor._requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    run = _Run(create_graph if retain_graph is None else retain_graph, create_graph, [edge_of(t) for t in wanted])
    run.execute(roots)
    results = []
    for tensor in wanted:
        found = run.captured.get(_key(edge_of(tensor)))
        if found is None and not unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                "if this is the desired behavior."
            )
        results.append(operator("zeros_like")(tensor) if found is None and materialize_grads else found)
    return tuple(results)


def grad_until(outputs: Any, inputs: Any, grad_outputs: Any, stops: Any, create_graph: bool = False) -> list[Any]:
    """Gradients of ``outputs`` with respect to ``inputs`` (None: none) as if each of ``stops``, tensors with a history,
    had none: what reaches one goes no further.
    """
    wanted = [edge_of(t) for t in inputs]
    run = _Run(True, create_graph, wanted)
    run.stops = {_key(edge_of(t)) for t in stops}
    run.execute(_roots(list(outputs), list(grad_outputs)))
    return [run.captured.get(_key(edge)) for edge in wanted]


def _listed(tensors: Any) -> list[Any]:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, TensorBase) else list(tensors)


def _roots(tensors: list[Any], grads: list[Any]) -> list[tuple[Any, Any]]:
    if grads and len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots = []
    for index, tensor in enumerate(tensors):
        if not tensor._requires_grad:
            raise RuntimeError(_NO_GRAD.format(index))
        given = grads[index] if grads else None
        if given is None:
            if tensor.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            given = _one(tensor)
        else:
            check_gradient(tensor, given, index)
        roots.append((edge_of(tensor), given))
    return roots


def _one(tensor: Any) -> Any:
    if is_host(tensor) and not MODES.stack:
        return wrap(np.ones(tensor._sizes, tensor._array.dtype))
    with creating_tensors():
        return operator("ones_like")(tensor)


def _key(edge: Any) -> Any:
    return (id(edge[0]), edge[1]) if type(edge) is tuple else id(edge)


class _Run:
    """One run of the engine."""

    def __init__(
        self, keep_graph: bool, create_graph: bool, targets: Sequence[Any] | None, accumulate: bool = False
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.accumulate = accumulate
        self.targets = None if targets is None else {_key(e) for e in targets}
        self.target_nodes = set() if targets is None else {id(e[0] if type(e) is tuple else e) for e in targets}
        self.stops: set[Any] = set()
        self.captured: dict[Any, Any] = {}
        self.pending: dict[Any, int] = {}
        self.grads: dict[Any, Any] = {}
        self.ready: list[tuple[int, Node]] = []

    def execute(self, roots: list[tuple[Any, Any]]) -> None:
        """Run from these (edge, gradient) pairs."""
        needed = self._count([edge for edge, _ in roots])
        before = set_grad_enabled(self.create_graph)
        try:
            with creating_tensors():
                for edge, gradient in roots:
                    self._add(edge, gradient)
                for edge, _ in roots:
                    self._arrive(edge)
                while self.ready:
                    _, node = heapq.heappop(self.ready)
                    self._step(node, needed)
        finally:
            set_grad_enabled(before)

    def _count(self, roots: list[Any]) -> set[int] | None:
        """Count how many gradients each node waits for; which nodes lead to the targets (None: all)."""
        pending = self.pending
        order: list[Node] = []
        stack: list[Node] = []
        seen: set[int] = set()
        for edge in roots:
            head = edge[0] if type(edge) is tuple else edge
            pending[head] = pending.get(head, 0) + 1
            if type(edge) is tuple and id(head) not in seen:
                seen.add(id(head))
                stack.append(head)
        while stack:
            node = stack.pop()
            order.append(node)
            for edge in node.edges:
                if edge is None:
                    continue
                head = edge[0] if type(edge) is tuple else edge
                pending[head] = pending.get(head, 0) + 1
                if type(edge) is tuple and id(head) not in seen:
                    seen.add(id(head))
                    stack.append(head)
        if self.targets is None:
            return None
        order.sort(key=lambda n: n.sequence)
        return self._leading(order)

    def _leading(self, order: list[Node]) -> set[int]:
        """Nodes with a path to a target. ``order``: each node behind those that its edges lead to."""
        leads: set[int] = set()
        for node in order:
            for edge in node.edges:
                head = edge[0] if type(edge) is tuple else edge
                if head is not None and (id(head) in leads or id(head) in self.target_nodes):
                    leads.add(id(node))
                    break
        return leads

    def _add(self, edge: Any, gradient: Any) -> None:
        """Note a gradient for where an edge leads."""
        head, index = edge if type(edge) is tuple else (edge, 0)
        held = self.grads.get(head)
        if held is None:
            held = self.grads[head] = {}
        have = held.get(index)
        held[index] = gradient if have is None else operator("add")(have, gradient)

    def _arrive(self, edge: Any) -> None:
        """One of the gradients that the edge's head waits for is there, or is known to be none."""
        head = edge[0] if type(edge) is tuple else edge
        left = self.pending[head] - 1
        self.pending[head] = left
        if left:
            return
        if type(edge) is tuple:
            heapq.heappush(self.ready, (-head.sequence, head))
        else:
            self._leaf(head)

    def _leaf(self, leaf: Any) -> None:
        held = self.grads.pop(leaf, None)
        if held is None:
            return
        gradient = held.pop(0)
        del held
        if leaf._hooks is not None and leaf._hooks[0]:
            gradient = run_hooks(leaf._hooks[0], gradient)
        if self.targets is not None:
            if id(leaf) not in self.targets:
                return
            if not self.accumulate:
                self.captured[id(leaf)] = gradient
                return
        box = [gradient]
        del gradient
        accumulate_gradient(leaf, box)

    def _step(self, node: Node, needed: set[int] | None) -> None:
        held = self.grads.pop(node, None)
        edges = node.edges
        if held is None:
            for edge in edges:
                if edge is not None:
                    self._arrive(edge)
            return
        if node.hooks is not None or node.retained is not None or self.targets is not None:
            self._observe(node, held)
        if needed is not None and id(node) not in needed:
            return
        if self.stops:
            held = {index: gradient for index, gradient in held.items() if (id(node), index) not in self.stops}
            if not held:
                for edge in edges:
                    if edge is not None:
                        self._arrive(edge)
                return
        grads = [held.get(i) for i in range(max(held) + 1)]
        del held
        results = self._apply(node, grads)
        if not self.keep_graph:
            node.release()
        if len(results) < len(edges):
            raise RuntimeError(f"{node.name()} returned {len(results)} gradients, expected {len(edges)}")
        results = list(results)
        del grads  # whoever accumulates must see how many hold the gradient
        for index, edge in enumerate(edges):
            if edge is not None:
                if results[index] is not None:
                    self._add(edge, results[index])
                    results[index] = None
                self._arrive(edge)

    def _apply(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        if STEPS.entering is not None:
            STEPS.entering(node)
        if node.pre_hooks:
            for hook in tuple(node.pre_hooks.values()):
                replaced = hook(tuple(grads))
                if replaced is not None:
                    grads = list(replaced)
        results = node.apply(grads)
        if node.post_hooks:
            for hook in tuple(node.post_hooks.values()):
                replaced = hook(tuple(results), tuple(grads))
                if replaced is not None:
                    results = replaced
        return results

    def _observe(self, node: Node, held: dict[int, Any]) -> None:
        """Hooks, ``retain_grad`` and captures see the gradients of a node's outputs."""
        for index, hooks in (node.hooks or {}).items():
            if index in held:
                held[index] = run_hooks(hooks, held[index])
        for index, references in (node.retained or {}).items():
            for reference in references:
                tensor = reference()
                if tensor is not None and index in held:
                    new = held[index]
                    tensor._grad = new if tensor._grad is None else operator("add")(tensor._grad, new)
        if self.targets is not None:
            for index, gradient in held.items():
                if (id(node), index) in self.targets:
                    self.captured[(id(node), index)] = gradient
