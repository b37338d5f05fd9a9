"""Cut a graph into parts that are called one after the other.

>>> from lamina_fx import parse
>>> g = parse("graph { %x = placeholder  %a = neg(%x)  %b = exp(%a)  %c = add(%a, %b)  return %c }")
>>> print(split_graph(g, lambda node: node.name == "c"))
graph {
  attribute part_0 = graph {
    %x = placeholder
    %a = neg(%x)
    %b = exp(%a)
    return (%a, %b)
  }
  attribute part_1 = graph {
    %a = placeholder
    %b = placeholder
    %c = add(%a, %b)
    return %c
  }
  %x = placeholder
  %part_0 = module part_0(%x)
  %a = getitem(%part_0, 0)
  %b = getitem(%part_0, 1)
  %part_1 = module part_1(%a, %b)
  return %part_1
}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..graph import Graph
from ..node import Node, map_arguments

__all__ = ["split_graph"]


def split_graph(graph: Graph, part_of: Callable[[Node], Hashable]) -> Graph:
    """A new graph that calls the parts; they are its attributes ``part_0``, ``part_1``, ...

    Args:
        graph: stays as it is.
        part_of: nodes with equal results are in one part. Not asked for placeholders and the output; constants
            (``get_attr``) go where they are used.

    Raises:
        ValueError: two parts need each other, or nodes with effects would change their order.
    """
    parts: dict[Hashable, list[Node]] = {}
    home: dict[Node, Hashable] = {}
    for node in graph.nodes:
        if node.op not in ("placeholder", "output", "get_attr"):
            home[node] = part_of(node)
            parts.setdefault(home[node], []).append(node)
    return _Splitter(graph, parts, home).build(_ordered(graph, parts, home))


def _ordered(graph: Graph, parts: dict[Hashable, list[Node]], home: dict[Node, Hashable]) -> list[Hashable]:
    """The parts in an order in which each stands behind those that it needs."""
    needs: dict[Hashable, dict[Hashable, None]] = {part: {} for part in parts}
    last: Hashable = None
    for node, part in home.items():
        before = [home[n] for n in node.all_input_nodes if n in home]
        if node.effect is not None:
            before += [] if last is None else [last]
            last = part
        needs[part].update(dict.fromkeys(p for p in before if p != part))
    order: list[Hashable] = []
    while len(order) < len(parts):
        ready = next((p for p in parts if p not in order and all(n in order for n in needs[p])), None)
        if ready is None:
            circle = [str(p) for p in parts if p not in order]
            raise ValueError(f"the parts {', '.join(circle)} need each other; cut the graph elsewhere")
        order.append(ready)
    return order


class _Splitter:
    def __init__(self, graph: Graph, parts: dict[Hashable, list[Node]], home: dict[Node, Hashable]) -> None:
        self.graph = graph
        self.parts = parts
        self.home = home
        self.main = Graph()
        self.values: dict[Node, Node] = {}

    def build(self, order: list[Hashable]) -> Graph:
        for node in self.graph.placeholders:
            self.values[node] = self.main.node_copy(node, self.values.__getitem__)
        for index, part in enumerate(order):
            self.call(f"part_{index}", self.parts[part], part)
        output = self.graph.output_node
        self.main.node_copy(output, self.main_value)
        attributes = {n.target: self.graph.attributes[n.target] for n in self.main.nodes if n.op == "get_attr"}
        self.main.attributes.update(attributes)
        return self.main

    def main_value(self, node: Node) -> Node:
        if node not in self.values and node.op == "get_attr":
            self.values[node] = self.main.node_copy(node, self.values.__getitem__)
        return self.values[node]

    def call(self, name: str, nodes: list[Node], part: Hashable) -> None:
        inner, results = self.body(nodes, part)
        self.main.attributes[name] = inner
        inputs = tuple([self.values[p] for p in self.outside])
        call = self.main.call_module(name, inputs)
        effects = [n.effect for n in nodes if n.effect is not None]
        call.effect = effects[0] if effects else None
        if len(results) == 1:
            self.values[results[0]] = call
            call.spec = results[0].spec
            return
        if any(r.spec is not None for r in results):
            call.spec = tuple([r.spec for r in results])
        for index, result in enumerate(results):
            item = self.main.create_node("call_function", "getitem", (call, index), name=result.name, spec=result.spec)
            item.meta = dict(result.meta)
            self.values[result] = item

    def body(self, nodes: list[Node], part: Hashable) -> tuple[Graph, list[Node]]:
        """The graph of a part, and the nodes that others use of it. Sets ``outside`` to its inputs."""
        inner = Graph()
        inner.has_owner = self.graph.has_owner
        values: dict[Node, Node] = {}
        used = dict.fromkeys(n for node in nodes for n in node.all_input_nodes)
        self.outside = [n for n in used if (n.op != "get_attr" and self.home.get(n) != part) or n.op == "placeholder"]
        for node in self.outside:
            values[node] = inner.placeholder(node.name, spec=node.spec)
        for node in used:
            if node.op == "get_attr":
                values[node] = inner.node_copy(node, values.__getitem__)
                if node.target in self.graph.attributes:
                    inner.attributes[node.target] = self.graph.attributes[node.target]
        for node in nodes:
            values[node] = inner.node_copy(node, values.__getitem__)
        results = [n for n in nodes if any(self.home.get(u) != part for u in n.users)]
        inner.output(map_arguments(results[0] if len(results) == 1 else tuple(results), values.__getitem__))
        return inner, results
