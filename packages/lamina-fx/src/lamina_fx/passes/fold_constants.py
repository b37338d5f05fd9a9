"""Compute ahead of time what depends on constants only.

>>> from lamina_fx import parse
>>> from lamina_fx.python_operators import python_operator
>>> print(fold_constants(parse('''graph {
...   attribute w = 20
...   %x = placeholder
...   %w = get w
...   %double = mul(%w, 2)
...   %y = add(%x, %double)
...   return %y
... }'''), python_operator))
graph {
  %x = placeholder
  %y = add(%x, 40)
  return %y
}
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..interpreter import Interpreter, Resolver
from ..node import Node, map_arguments
from .eliminate_dead_code import eliminate_dead_code

__all__ = ["fold_constants"]

_FAILURES = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What an operator may raise; the call then stays, and fails when the program runs."""


def fold_constants(graph: Graph, resolver: Resolver, *, max_bytes: int = 1 << 20) -> Graph:
    """Replace operator calls on constants by their values.

    Args:
        graph: changed in place.
        resolver: gives what computes an operator.
        max_bytes: a larger result stays a call.

    Numbers are put into the arguments of their users, other values become attributes. Calls without any input (such as
    ``full``) are computed only where something computed from them is folded.
    """
    interpreter = Interpreter(graph, resolver)
    values: dict[Node, Any] = {}
    folded: list[Node] = []
    for node in graph.nodes:
        if node.op == "get_attr" and node.target in graph.attributes:
            value = graph.attributes[node.target]
            if not isinstance(value, Graph):
                values[node] = value
        elif node.op == "call_function" and node.effect is None and _is_constant(node, values):
            try:
                args, kwargs = map_arguments((node.args, node.kwargs), values.__getitem__)
                value = interpreter.call_function(node, args, kwargs)
            except _FAILURES:
                continue
            if getattr(value, "nbytes", 0) <= max_bytes:
                values[node] = value
                if node.all_input_nodes:
                    folded.append(node)
    for node in folded:
        if any(user not in values for user in node.users) and not isinstance(values[node], tuple):
            _put(graph, node, values[node])
    return eliminate_dead_code(graph)


def _is_constant(node: Node, values: dict[Node, Any]) -> bool:
    if any(n not in values for n in node.all_input_nodes):
        return False
    plain = True

    def leaf(value: Any) -> None:
        nonlocal plain
        if isinstance(value, (tuple, list)):
            for item in value:
                leaf(item)
        elif isinstance(value, Graph) or hasattr(value, "expr"):
            plain = False  # a subgraph, or a size that is not known

    leaf((node.args, tuple(node.kwargs.values())))
    return plain


def _put(graph: Graph, node: Node, value: Any) -> None:
    if type(value) in (int, float, bool, complex):
        for user in list(node.users):
            args, kwargs = map_arguments((user.args, user.kwargs), lambda n: value if n is node else n)
            user.set_arguments(args, kwargs)
        return
    name = f"folded_{node.name}"
    while name in graph.attributes:
        name += "_"
    graph.attributes[name] = value
    with graph.inserting_before(node):
        new = graph.get_attr(name, spec=node.spec)
    new.meta = dict(node.meta)
    new.regions = node.regions
    node.replace_all_uses_with(new)
