"""Sums of gradients that are added up by index become one sum, which each of them is added to.

>>> from lamina_fx import parse
>>> print(chain_scatters(parse('''graph {
...   %i: int64[2] = placeholder
...   %a: float32[2] = placeholder
...   %b: float32[2] = placeholder
...   %zero: float32[9] = full((9,), 0.0)
...   %first: float32[9] = scatter_add(%zero, 0, %i, %a)
...   %second: float32[9] = scatter_add(%zero, 0, %i, %b)
...   %sum: float32[9] = add(%first, %second)
...   return %sum
... }''')))
graph {
  %i: int64[2] = placeholder
  %a: float32[2] = placeholder
  %b: float32[2] = placeholder
  %zero: float32[9] = full((9,), 0.0)
  %first: float32[9] = scatter_add(%zero, 0, %i, %a)
  %sum: float32[9] = scatter_add(%first, 0, %i, %b)
  return %sum
}

A tensor that is read by index several times (the corners of ``grid_sample``, an embedding of two inputs) has such
gradients: without this each is a tensor of its own, all of which live until they are added up.
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import Graph, Node
from lamina_fx.passes import eliminate_dead_code

__all__ = ["chain_scatters"]


def chain_scatters(graph: Graph) -> Graph:
    """Rewrite the graph of strict primitives; what is no longer used goes.

    Only sums that begin with zeros are: they have no negative zero, to which adding zero would make a difference.
    """
    changed = False
    for node in graph.nodes:
        if node.op == "call_function" and node.target == "add" and len(node.args) == 2 and not node.kwargs:
            left, right = node.args
            changed |= _chain(node, left, right) or _chain(node, right, left)
    return eliminate_dead_code(graph) if changed else graph


def _chain(node: Node, base: Any, last: Any) -> bool:
    """Let ``last``, which nothing else uses, add to ``base`` in place of ``node``."""
    if not (_adds_by_index(base) and _adds_by_index(last)) or base is last:
        return False
    if len(last.users) != 1 or node.spec != last.spec or base.spec != last.spec or not _is_zero(last.args[0]):
        return False
    start = base
    while _adds_by_index(start):
        start = start.args[0]
    if not _is_zero(start):
        return False
    with node.graph.inserting_before(node):
        new = node.graph.call_function(last.target, (base, *last.args[1:]), dict(last.kwargs), spec=node.spec)
    new.meta, new.regions = dict(last.meta), last.regions
    node.replace_all_uses_with(new)
    name = node.name
    node.graph.erase_node(node)
    node.graph.rename(new, name)
    return True


def _adds_by_index(value: Any) -> bool:
    if not isinstance(value, Node) or value.op != "call_function":
        return False
    if value.target == "index_put":
        return (value.kwargs.get("accumulate") or value.args[3:4] == (True,)) is True
    return value.target == "scatter_add"


def _is_zero(value: Any) -> bool:
    return (
        isinstance(value, Node)
        and value.op == "call_function"
        and value.target == "full"
        and isinstance(value.args[1], int | float)
        and value.args[1] == 0
        and math.copysign(1.0, value.args[1]) > 0
    )
