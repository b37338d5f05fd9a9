"""A small reverse mode: vector-Jacobian products of a core-level graph on NumPy arrays, by the operators' own rules.

It shares no code with the eager engine or the ahead-of-time layer, so that it can check both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_fx import Graph, Interpreter, Node, map_arguments
from lamina_prims import operator
from lamina_prims.arrays import spec_of

__all__ = ["vjp"]


class _Keeping(Interpreter):
    """Keeps every value."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, operator)
        self.values: dict[Node, Any] = {}

    def run_node(self, node: Node) -> Any:
        self.values[node] = super().run_node(node)
        return self.values[node]


def vjp(graph: Graph, inputs: Sequence[Any], wrap: Any) -> tuple[Any, list[Any]]:
    """(the graph's result, one gradient for each input; None where nothing flows).

    ``wrap(result)`` gives the cotangents: like the result, None where there is none.

    Raises:
        NotImplementedError: a node that the gradient passes has no derivative.
    """
    forward = _Keeping(graph)
    result = forward.run(*inputs)
    cotangents: dict[Node, Any] = {}
    _send(graph.output_node.args[0], wrap(result), cotangents, forward.values)
    for node in reversed(graph.nodes):
        given = cotangents.get(node)
        if given is None or node.op != "call_function":
            continue
        if node.target == "getitem":
            source, index = node.args
            parts = cotangents.setdefault(source, {})
            parts[index] = given if parts.get(index) is None else parts[index] + given
        else:
            _pull(node, given, cotangents, forward.values)
    return result, [cotangents.get(node) for node in graph.placeholders]


def _pull(node: Node, given: Any, cotangents: dict[Node, Any], values: dict[Node, Any]) -> None:
    op = operator(node.target)
    parameters = op.schema.parameters
    nodes = op.schema.bind(node.args, dict(node.kwargs))
    arguments = [map_arguments(n, values.__getitem__) for n in nodes]
    tensors = [i for i, p in enumerate(parameters) if p.tensor is not None]
    if op.vjp_rule is None:
        if any(_floating(arguments[i]) for i in tensors):
            raise NotImplementedError(f"{op.id} has no derivative")
        return
    known = {p.name: a for p, a in zip(parameters, arguments, strict=True)}
    known |= {f"{p.name}_spec": _specs(known[p.name]) for p in parameters if p.tensor is not None}
    out = values[node]
    ct = tuple(given.get(k) for k in range(len(out))) if isinstance(given, dict) else given
    known |= {"ct": ct, "out": out, "needs": tuple(_floating(arguments[i]) for i in tensors)}
    gradients = op.vjp_rule(*(known[name] for name in op.vjp_saves))
    assert len(gradients) == len(tensors), f"{op.id}: {len(gradients)} gradients for {len(tensors)} tensor parameters"
    for position, gradient in zip(tensors, gradients, strict=True):
        _send(nodes[position], gradient, cotangents, values)


def _send(target: Any, gradient: Any, cotangents: dict[Node, Any], values: dict[Node, Any]) -> None:
    """Add a gradient (nested like ``target``) to the cotangents of the nodes in ``target``."""
    if gradient is None or target is None:
        return
    if isinstance(target, (list, tuple)):
        for part, value in zip(target, gradient, strict=True):
            _send(part, value, cotangents, values)
        return
    if not isinstance(target, Node):
        return
    value = values[target]
    if isinstance(value, (list, tuple)):
        _send_parts(target, gradient, cotangents)
    elif _floating(value):
        gradient = _fit(np.asarray(gradient), value)
        have = cotangents.get(target)
        cotangents[target] = gradient if have is None else have + gradient


def _send_parts(target: Node, gradient: Any, cotangents: dict[Node, Any]) -> None:
    parts = cotangents.setdefault(target, {})
    for k, g in enumerate(gradient):
        if g is not None:
            parts[k] = g if parts.get(k) is None else parts[k] + g


def _fit(gradient: Any, value: Any) -> Any:
    """Sum over what was broadcast; the value's dtype."""
    while gradient.ndim > value.ndim:
        gradient = gradient.sum(0)
    for dim, size in enumerate(value.shape):
        if size == 1 and gradient.shape[dim] != 1:
            gradient = gradient.sum(dim, keepdims=True)
    assert gradient.shape == value.shape, f"a gradient of shape {gradient.shape} for a value of shape {value.shape}"
    if gradient.dtype.kind == "c" and value.dtype.kind != "c":
        gradient = gradient.real
    return gradient.astype(value.dtype, copy=False)


def _floating(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_floating(v) for v in value)
    return hasattr(value, "dtype") and value.dtype.kind not in "biuO"


def _specs(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_specs(v) for v in value]
    return spec_of(value) if hasattr(value, "dtype") else value
