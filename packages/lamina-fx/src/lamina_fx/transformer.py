"""Write a graph anew, node by node.

>>> from lamina_fx import Transformer, parse, print_graph
>>> class Negate(Transformer):
...     def call_function(self, node, args, kwargs):
...         result = super().call_function(node, args, kwargs)
...         return -result if node.target == "add" else result
>>> g = parse("graph { %x = placeholder  %add = add(%x, 1)  return %add }")
>>> print(print_graph(Negate(g).transform()))
graph {
  %x = placeholder
  %add = add(%x, 1)
  %neg = neg(%add)
  return %neg
}
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from typing import Any

from .builder import GraphBuilder, OperatorResolver
from .expect import expect
from .graph import Graph
from .interpreter import Interpreter
from .node import Node, map_arguments
from .proxy import Proxy, to_node

__all__ = ["Transformer"]


class Transformer(Interpreter):
    """An interpreter whose values are proxies of a new graph.

    Override a kind method and return another proxy to change a node. With a ``resolver``, operators infer the specs of
    what is written with Python's operators; copied nodes keep spec, effect, regions and meta data.
    """

    def __init__(self, graph: Graph, resolver: OperatorResolver | None = None) -> None:
        expect("Transformer", graph, Graph, "a Graph")
        super().__init__(graph, resolver)  # type: ignore[arg-type]
        self.new_graph = Graph()
        self.new_graph.attributes = dict(graph.attributes)
        self.new_graph.has_owner = graph.has_owner
        self.builder = GraphBuilder(self.new_graph, lambda: self._meta, resolver=resolver)
        self._meta: dict[str, Any] = {}

    def transform(self) -> Graph:
        """The new graph."""
        for node in self.graph.nodes:
            self._meta = node.meta
            self.new_graph.regions = node.regions
            self.env[node] = self._run_noted(node)
        self.env = {}
        return self.new_graph

    def copy(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The node with other arguments."""
        new = self.new_graph.create_node(
            node.op,
            node.target,
            map_proxies(args),
            map_proxies(kwargs),
            name=node.name,
            spec=node.spec,
            effect=node.effect,
        )
        new.meta = dict(node.meta)
        return Proxy(new, self.builder)

    def placeholder(self, node: Node, args: Any, kwargs: Any) -> Any:
        """A placeholder of the same name."""
        return self.copy(node, args, kwargs)

    def get_attr(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The same attribute."""
        return self.copy(node, args, kwargs)

    def call_function(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The same call."""
        return self.copy(node, args, kwargs)

    def call_method(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The same call."""
        return self.copy(node, args, kwargs)

    def call_module(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The same call."""
        return self.copy(node, args, kwargs)

    def output(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The output."""
        return self.copy(node, args, kwargs)


def map_proxies(value: Any) -> Any:
    """Nested arguments with each proxy replaced by its node."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([map_proxies(v) for v in value])
    if kind is dict:
        return {k: map_proxies(v) for k, v in value.items()}
    if kind is slice:
        return slice(map_proxies(value.start), map_proxies(value.stop), map_proxies(value.step))
    return map_arguments(value, lambda n: n) if kind is Node else to_node(value)
