"""Many graphs as one, so that a backend compiles them together.

>>> import numpy as np
>>> from lamina_prims import ops
>>> from lamina_testing.operators import graph_of_call
>>> graphs = [graph_of_call(op, (np.ones(2),), {})[0] for op in (ops.exp, ops.sin)]
>>> joined = join(graphs)
>>> [node.op for node in joined.nodes]
['placeholder', 'placeholder', 'call_function', 'call_function', 'output']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import Graph
from lamina_fx.graph import Node

__all__ = ["join", "result_nodes"]


def join(graphs: Sequence[Graph]) -> Graph:
    """One graph that computes what all of these do, with their inputs and outputs in a row."""
    joined = Graph()
    outputs: list[Any] = []
    known: dict[Node, Node] = {}
    for graph in graphs:
        for node in graph.nodes:
            if node.op == "placeholder":
                known[node] = joined.node_copy(node, known.__getitem__)
    for number, graph in enumerate(graphs):
        for node in graph.nodes:
            if node.op == "output":
                outputs += [known[n] for n in result_nodes(graph)]
            elif node.op == "get_attr":
                name = f"g{number}_{node.target}"
                joined.attributes[name] = graph.attributes[node.target]
                known[node] = joined.get_attr(name, spec=node.spec)
            elif node.op != "placeholder":
                known[node] = joined.node_copy(node, known.__getitem__)
    joined.output(tuple(outputs))
    return joined


def result_nodes(graph: Graph) -> list[Node]:
    """The nodes that a graph returns, in a row."""
    return _flat(graph.output_node.args[0])


def _flat(value: Any) -> list[Node]:
    if isinstance(value, (tuple, list)):
        return [node for part in value for node in _flat(part)]
    return [value] if isinstance(value, Node) else []
