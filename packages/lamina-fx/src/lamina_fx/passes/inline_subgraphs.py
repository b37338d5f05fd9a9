"""Put the bodies of called subgraphs in the place of the calls: the opposite of ``split_graph``.

>>> from lamina_fx import parse
>>> from lamina_fx.passes import split_graph
>>> g = parse("graph { %x = placeholder  %a = neg(%x)  %c = add(%a, %x)  return %c }")
>>> inline_subgraphs(split_graph(g, lambda node: node.name)) == g
True
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..node import Node, map_arguments

__all__ = ["inline_subgraphs"]


def inline_subgraphs(graph: Graph) -> Graph:
    """Replace each ``call_module`` of a graph among the attributes by that graph's nodes, as deep as they nest."""
    for node in graph.nodes:
        if node.op == "call_module" and isinstance(graph.attributes.get(node.target), Graph):
            _inline(graph, node, inline_subgraphs(graph.attributes[node.target].copy()))
    called = {n.target for n in graph.nodes if n.op in ("call_module", "get_attr")}
    for name in [n for n, v in graph.attributes.items() if isinstance(v, Graph) and n not in called]:
        del graph.attributes[name]
    return graph


def _inline(graph: Graph, call: Node, body: Graph) -> None:
    placeholders = body.placeholders
    if len(placeholders) != len(call.args):
        raise ValueError(
            f"{call.name}: the subgraph {call.target!r} has {len(placeholders)} inputs, got {len(call.args)}"
        )
    values: dict[Node, Any] = dict(zip(placeholders, call.args, strict=True))
    items = [u for u in call.users if u.target == "getitem" and u.op == "call_function"]
    for item in items:
        graph.release_name(item)
    with graph.inserting_before(call):
        for node in body.nodes:
            if node.op not in ("placeholder", "output"):
                values[node] = graph.node_copy(node, values.__getitem__)
                if node.op == "get_attr" and node.target in body.attributes:
                    graph.attributes.setdefault(node.target, body.attributes[node.target])
    result = map_arguments(body.output_node.args[0], values.__getitem__)
    if isinstance(result, tuple):
        for item in items:
            _replace(item, result[item.args[1]])
            graph.erase_node(item)
    if call.users:
        _replace(call, result)
    graph.erase_node(call)


def _replace(node: Node, value: Any) -> None:
    for user in list(node.users):
        args, kwargs = map_arguments((user.args, user.kwargs), lambda n: value if n is node else n)
        user.set_arguments(args, kwargs)
