"""Compute equal things once.

>>> from lamina_fx import parse
>>> print(eliminate_common_subexpressions(parse('''graph {
...   %x = placeholder
...   %a = exp(%x)
...   %b = exp(%x)
...   %c = add(%a, %b)
...   return %c
... }''')))
graph {
  %x = placeholder
  %a = exp(%x)
  %c = add(%a, %a)
  return %c
}
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..node import Node

__all__ = ["eliminate_common_subexpressions"]


class _NoKeyError(Exception):
    """An argument that cannot be compared."""


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Let one of several equal operator calls stand for all.

    Equal: same target, arguments, spec and regions. Calls with an effect are left alone; where something is written in
    between (effect ``"write"``), calls before and behind are different.
    """
    seen: dict[Any, Node] = {}
    writes = 0
    for node in graph.nodes:
        if node.effect is not None:
            writes += node.effect == "write"
            continue
        if node.op not in ("call_function", "get_attr"):
            continue
        try:
            key = (node.op, node.target, _key(node.args), _key(node.kwargs) if node.kwargs else None)
            found = seen.setdefault((*key, node.spec, node.regions, writes), node)
        except (_NoKeyError, TypeError):  # an argument without a hash
            continue
        if found is not node:
            node.replace_all_uses_with(found)
            graph.erase_node(node)
    return graph


def _key(value: Any) -> Any:
    """A hashable stand-in for nested arguments that is equal for equal ones; 1, 1.0 and True differ."""
    kind = type(value)
    if kind is Node or kind is str or value is None:
        return value
    if kind is int or kind is bool:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)  # tells 0.0 from -0.0, and nan is itself
    if kind is tuple or kind is list:
        return kind, tuple([_key(v) for v in value])
    if kind is dict:
        return kind, tuple([(_key(k), _key(v)) for k, v in value.items()])
    if kind is slice:
        return kind, _key(value.start), _key(value.stop), _key(value.step)
    if isinstance(value, Graph):
        raise _NoKeyError
    expr = getattr(value, "expr", None)
    return value if expr is None else (kind, expr)
