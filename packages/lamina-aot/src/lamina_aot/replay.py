"""Run a captured (imperative) graph on tensors, node by node, doing what the user's code did.

In-place operators, ``.grad`` access and ``backward`` are calls on the tensors themselves; all others are operators.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import lamina_tensor
from lamina_fx import Graph, Interpreter, Node
from lamina_prims import operators
from lamina_tensor.amp import state_set
from lamina_tensor.autograd.engine import grad_until

__all__ = ["Replay", "replaced_gradients", "resolve", "touches_gradients"]


def _backward(loss: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False) -> None:
    loss.backward(gradient, retain_graph=retain_graph, create_graph=create_graph)


def _grad_set(tensor: Any, value: Any) -> None:
    tensor.grad = value


def _autograd_grad(outputs: Any, inputs: Any, *rest: Any, **options: Any) -> Any:
    return lamina_tensor.autograd.grad(outputs, inputs, *rest, **options)


def _grad_until(*args: Any, **options: Any) -> Any:
    return tuple(grad_until(*args, **options))


_ACTIONS: dict[str, Callable[..., Any]] = {
    "autograd.backward": _backward,
    "autograd.grad": _autograd_grad,
    "autograd.grad_until": _grad_until,
    "autograd.function": lambda reference, *args: reference().apply(*args),
    "grad_get": lambda tensor: tensor.grad,
    "grad_set": _grad_set,
    "grad_hook": lambda tensor, kind, reference: getattr(tensor, kind)(reference()),
    "grad_unhook": lambda handle: handle.remove(),
    "retain_grad": lambda tensor: tensor.retain_grad(),
    "requires_grad_": lambda tensor, flag=True: tensor.requires_grad_(flag),
    "detach": lambda tensor: tensor.detach(),
    "data_get": lambda tensor: tensor.data,
}


def resolve(target: str) -> Callable[..., Any]:
    """What a captured graph's operator id calls: an action, an operator, or a tensor's in-place method."""
    action = _ACTIONS.get(target)
    if action is not None:
        return action
    operator = operators().get(target)
    if operator is not None:
        return operator
    if target.endswith("_") or target == "setitem":
        name = "__setitem__" if target == "setitem" else target
        return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)
    raise KeyError(f"the captured graph calls {target!r}, which is neither an operator nor an in-place method")


def _is_composite(node: Node) -> bool:
    """Does a captured call (in place, or not) have a body, whose parts may have to name it in errors?"""
    found = operators().get(node.target.removesuffix("_")) if node.op == "call_function" else None
    return found is not None and not found.is_primitive


def touches_gradients(captured: Graph) -> bool:
    """Whether the program reads or changes ``.grad`` of anything."""
    return any(node.target in _TOUCHING for node in captured.nodes)


def replaced_gradients(captured: Graph) -> frozenset[int]:
    """Inputs, by position, whose ``.grad`` the program assigns before anything reads it."""
    position = {node: k for k, node in enumerate(captured.placeholders)}
    replaced: set[int] = set()
    read = {position[n.meta["grad_of"]] for n in captured.placeholders if n.meta.get("grad_of") in position}
    for node in captured.nodes:
        if node.target in _BACKWARD:
            break
        if node.target == "grad_get":
            read.add(position.get(node.args[0], -1))
        elif node.target == "grad_set":
            replaced.add(position.get(node.args[0], -1))
    return frozenset(replaced - read - {-1})


_BACKWARD = frozenset(("autograd.backward", "autograd.grad", "autograd.grad_until"))
_TOUCHING = frozenset(("autograd.backward", "grad_get", "grad_set"))


class Replay(Interpreter):
    """Interpreter of captured graphs over tensors whose new nodes go to ``graph``.

    Each node runs inside its regions (``no_grad``), and what it writes carries its source and regions.
    """

    def __init__(self, captured: Graph, graph: Graph, tracer: Any) -> None:
        super().__init__(captured, resolve)
        self.traced = graph
        self.tracer = tracer
        self._nodes: dict[int, tuple[Node, Any]] = {}

    def node_of(self, value: Any) -> Node | None:
        """The first node whose value is this very tensor."""
        found = self._nodes.get(id(value))
        return None if found is None else found[0]

    def run_node(self, node: Node) -> Any:
        """Run one node with its regions in force, and remember which tensor it made."""
        value = self._run_in_regions(node)
        if isinstance(value, lamina_tensor.Tensor):
            self._nodes.setdefault(id(value), (node, value))
        return value

    def _run_in_regions(self, node: Node) -> Any:
        source = node.meta.get("source")
        self.tracer.meta = {} if source is None else {"source": source}
        if _is_composite(node):
            self.tracer.meta["from"] = (node.target.removesuffix("_"),)
        backward = ("backward",) if node.target in _BACKWARD else ()
        if not node.regions:
            self.traced.regions = backward
            return super().run_node(node)
        with ExitStack() as stack:
            for region in node.regions:
                if region == "no_grad":
                    stack.enter_context(lamina_tensor.no_grad())
                elif region == "enable_grad":
                    stack.enter_context(lamina_tensor.enable_grad())
                elif region == "inference_mode":  # what is made here refuses to be saved for a backward
                    stack.enter_context(lamina_tensor.inference_mode())
                elif region.startswith("autocast:") and not backward:  # gradients run in the dtypes they have
                    stack.enter_context(state_set(region.partition(":")[2]))
            self.traced.regions = (*(r for r in node.regions if r.startswith("checkpoint")), *backward)
            return super().run_node(node)
