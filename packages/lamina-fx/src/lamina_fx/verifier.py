"""Checks that a graph is well formed.

What a verified graph promises: node names are unique identifiers; every argument is defined in the same graph before
its use; ``users`` mirrors the arguments; placeholders come first; there is one output, the last node; attributes that
``get_attr`` reads exist; with a resolver, every ``call_function`` names an operator and has the spec that the operator
infers.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .expect import expect, wrong_kind
from .graph import Graph
from .node import KINDS, Node, iter_nodes, map_arguments

__all__ = ["VerificationError", "verify"]

BUILT_IN = frozenset(("getitem", "getattr"))
"""Targets of ``call_function`` that no resolver is asked for."""


class VerificationError(RuntimeError):
    """A graph is malformed. ``problems`` lists what is wrong, in the order of the nodes."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        shown = problems[:10] + ([f"... and {len(problems) - 10} more"] if len(problems) > 10 else [])
        super().__init__("the graph is malformed:\n" + "\n".join(f"  - {p}" for p in shown))


def verify(graph: Graph, resolver: Callable[[str], Any] | None = None) -> None:
    """Check ``graph`` and its subgraphs.

    Args:
        graph: what to check.
        resolver: gives the operator of an id; its ``infer`` recomputes the specs.

    Raises:
        VerificationError: lists everything that is wrong, naming nodes and the user's lines.
        TypeError: ``graph`` is no Graph, or ``resolver`` cannot be called.
    """
    expect("verify", graph, Graph, "a Graph")
    if resolver is not None and not callable(resolver):
        raise wrong_kind("verify", resolver, "a resolver that can be called")
    problems = list(_problems(graph, resolver))
    if problems:
        raise VerificationError(problems)


def _problems(graph: Graph, resolver: Callable[[str], Any] | None) -> Iterator[str]:
    seen: set[Node] = set()
    names: set[str] = set()
    body = False
    users: dict[Node, dict[Node, None]] = {}
    last: Node | None = None
    for node in graph.nodes:
        where = f"node {node.name!r}{_line(node)}"
        if last is not None and last.op == "output":
            yield f"{where}: stands behind the output"
        yield from (f"{where}: {p}" for p in _own_problems(node, graph, names))
        if node.op == "placeholder":
            if body:
                yield f"{where}: a placeholder behind other nodes"
        elif node.op != "get_attr":
            body = True
        for used in iter_nodes((node.args, node.kwargs)):
            if used.graph is not graph:
                yield f"{where}: uses {used.name!r}, a node of another graph"
            elif used not in seen:
                yield f"{where}: uses {used.name!r} before it is defined" + (" (erased)" if used.op == "erased" else "")
            users.setdefault(used, {})[node] = None
        for inner in _subgraphs((node.args, node.kwargs)):
            yield from (f"{where}, subgraph: {p}" for p in _problems(inner, resolver))
        if resolver is not None and node.op == "call_function" and node.target not in BUILT_IN:
            yield from (f"{where}: {p}" for p in _spec_problems(node, resolver))
        seen.add(node)
        last = node
    if last is None or last.op != "output":
        yield "the last node is no output" if last is not None else "the graph is empty"
    for node in graph.nodes:
        if node.users.keys() != users.get(node, {}).keys():
            yield f"node {node.name!r}: users are {list(node.users)}, but {list(users.get(node, {}))} use it"
    for name, value in graph.attributes.items():
        for inner in _subgraphs(value):
            yield from (f"attribute {name!r}: {p}" for p in _problems(inner, resolver))


def _own_problems(node: Node, graph: Graph, names: set[str]) -> Iterator[str]:
    if node.op not in KINDS:
        yield f"unknown kind {node.op!r}"
    if node.graph is not graph:
        yield "belongs to another graph"
    if not node.name.isidentifier():
        yield "its name is no identifier"
    if node.name in names:
        yield "a second node of this name"
    names.add(node.name)
    target: Any = node.target  # whatever the annotation promises
    if not isinstance(target, str):
        yield f"its target must be a string, not {type(target).__name__}"
    if node.next.prev is not node or node.prev.next is not node:
        yield "the links to its neighbours are broken"
    if node.op == "output" and (len(node.args) != 1 or node.kwargs or node.users):
        yield "an output has one argument and no users"
    if node.op in ("call_method", "call_module") and node.op == "call_method" and not node.args:
        yield "a method call needs the object as its first argument"
    if node.op == "get_attr" and node.target not in graph.attributes and not graph.has_owner:
        yield f"no attribute {node.target!r}"


def _spec_problems(node: Node, resolver: Callable[[str], Any]) -> Iterator[str]:
    try:
        operator = resolver(node.target)
    except KeyError as error:
        yield f"{error.args[0] if error.args else error}"
        return
    infer = getattr(operator, "infer", None)
    if infer is None or node.spec is None or _unknown_input(node):
        return
    try:
        args, kwargs = map_arguments((node.args, node.kwargs), lambda n: n.spec)
        spec = infer(args, kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, KeyError) as error:
        yield f"{node.target} rejects its arguments: {error}"
        return
    if spec != node.spec:
        yield f"has the spec {node.spec}, but {node.target} gives {spec}"
    if operator.effect != node.effect:
        yield f"has the effect {node.effect}, but {node.target} has {operator.effect}"


def _unknown_input(node: Node) -> bool:
    return any(n.spec is None for n in iter_nodes((node.args, node.kwargs)))


def _subgraphs(value: Any) -> Iterator[Graph]:
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _subgraphs(item)
    elif isinstance(value, dict):
        yield from _subgraphs(list(value.values()))


def _line(node: Node) -> str:
    source = node.meta.get("source")
    return "" if source is None else f" ({source[0]}:{source[1]})"
