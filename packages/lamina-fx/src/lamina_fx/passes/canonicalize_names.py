"""Give nodes names that depend on their place only.

>>> from lamina_fx import parse
>>> print(canonicalize_names(parse("graph { %a7 = placeholder  %foo = neg(%a7)  %bar = neg(%foo)  return %bar }")))
graph {
  %input = placeholder a7
  %neg = neg(%input)
  %neg_1 = neg(%neg)
  return %neg_1
}
"""

from __future__ import annotations

from ..graph import Graph

__all__ = ["canonicalize_names"]

_BASES = {"placeholder": "input", "output": "output"}


def canonicalize_names(graph: Graph) -> Graph:
    """Name each node after its operator and a number; graphs that compute the same then print the same."""
    graph.forget_names()
    for node in graph.nodes:
        graph.rename(node, _BASES.get(node.op, node.target))
    return graph
