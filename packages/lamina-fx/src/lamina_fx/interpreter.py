"""Run a graph node by node.

An operator id is turned into a callable by a resolver, so the graph layer knows no operator itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .graph import Graph
from .node import Node, map_arguments

__all__ = ["Interpreter", "Resolver"]

Resolver = Callable[[str], Callable[..., Any]]
"""From an operator id to what is called for it."""


class Interpreter:
    """Runs ``graph``; override ``run_node`` or one of the six kind methods to do something else.

    Values are dropped after their last use.
    """

    def __init__(self, graph: Graph, resolver: Resolver) -> None:
        self.graph = graph
        self.resolver = resolver
        self.env: dict[Node, Any] = {}

    def run(self, *inputs: Any) -> Any:
        """Run with these values for the placeholders, in order; returns the graph's result.

        Raises:
            TypeError: not as many inputs as placeholders.
        """
        wanted = len(self.graph.placeholders)
        if len(inputs) != wanted:
            raise TypeError(f"the graph takes {wanted} inputs, got {len(inputs)}")
        self.inputs = iter(inputs)
        self.env = {}
        last_use = _last_uses(self.graph)
        for node in self.graph.nodes:
            value = self.run_node(node)
            if node.op == "output":
                self.env = {}
                return value
            self.env[node] = value
            for dead in last_use.get(node, ()):
                del self.env[dead]
        return None

    def run_node(self, node: Node) -> Any:
        """Compute one node from ``self.env``."""
        args = map_arguments(node.args, self.env.__getitem__)
        kwargs = map_arguments(node.kwargs, self.env.__getitem__)
        return getattr(self, node.op)(node, args, kwargs)

    def placeholder(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The next input."""
        return next(self.inputs)

    def get_attr(self, node: Node, args: Any, kwargs: Any) -> Any:
        """An attribute of the graph."""
        return self.graph.attributes[node.target]

    def call_function(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call the operator."""
        if node.target == "getitem":
            return args[0][args[1]]
        return self.resolver(node.target)(*args, **kwargs)

    def call_method(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], node.target)(*args[1:], **kwargs)

    def call_module(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call a module among the graph's attributes."""
        return self.graph.attributes[node.target](*args, **kwargs)

    def output(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The result."""
        return args[0]


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    seen: set[Node] = set()
    last: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for used in (*node.all_input_nodes, node):
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last
