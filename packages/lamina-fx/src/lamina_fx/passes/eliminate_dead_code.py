"""Remove nodes whose value nothing uses.

>>> from lamina_fx import parse
>>> print(eliminate_dead_code(parse('''graph {
...   %x = placeholder
...   %unused = neg(%x)
...   %also = add(%unused, 1)
...   %p = print(%x) !print
...   return %x
... }''')))
graph {
  %x = placeholder
  %p = print(%x) !print
  return %x
}
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Graph
from ..node import Node

__all__ = ["eliminate_dead_code"]


def eliminate_dead_code(graph: Graph, *, keep: Callable[[Node], bool] = lambda node: False) -> Graph:
    """Erase unused nodes, and what only they use; attributes that nothing reads any more go too.

    Kept: placeholders, the output, nodes with an effect, calls of methods and modules (their effect is not known),
    nodes that ``keep`` is true for.
    """
    read = {n.target for n in graph.nodes if n.op == "get_attr"}
    for node in reversed(graph.nodes):
        removable = node.op == "get_attr" or (node.op == "call_function" and node.effect is None)
        if removable and not node.users and not keep(node):
            graph.erase_node(node)
    left = {n.target for n in graph.nodes if n.op in ("get_attr", "call_module")}
    for name in read - left:
        graph.attributes.pop(name, None)
    return graph
