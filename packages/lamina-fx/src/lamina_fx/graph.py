"""The graph: a doubly linked list of nodes that reads from top to bottom.

>>> g = Graph()
>>> x = g.placeholder("x")
>>> y = g.call_function("add", (x, 1))
>>> _ = g.output(y)
>>> [n.name for n in g.nodes]
['x', 'add', 'output']
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

# pyright: reportPrivateUsage=false
# (graph and node are one data structure)

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from .node import KINDS, Argument, Node, map_arguments, map_leaves
from .node_list import NodeList
from .spec import Spec

__all__ = ["Graph"]


class Graph:
    """A program over tensors. Nodes stand in execution order; names are unique.

    ``regions`` is stamped on each new node (see ``Node.regions``).
    """

    def __init__(self) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names: dict[str, int] = {}
        self._count = 0
        self._insert_before = self._root
        self.regions: tuple[str, ...] = ()
        self.attributes: dict[str, Any] = {}
        """What ``get_attr`` nodes read (constants, subgraphs), by name."""
        self.has_owner = False
        """True when ``get_attr`` and ``call_module`` paths may also be attributes of a module outside."""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeList:
        """The nodes in order; supports len(), reversed() and removal while iterating."""
        return NodeList(self)

    def find_nodes(self, *, op: str | None = None, target: str | None = None) -> list[Node]:
        """The nodes of this kind and target (each may be left out), in order."""
        return [n for n in self.nodes if op in (None, n.op) and target in (None, n.target)]

    @property
    def placeholders(self) -> list[Node]:
        """The inputs, in order."""
        return [node for node in self.nodes if node.op == "placeholder"]

    @property
    def output_node(self) -> Node:
        """The output node.

        Raises:
            ValueError: the graph has none yet.
        """
        last = self._root._prev
        if last.op == "output":
            return last
        for node in reversed(self.nodes):
            if node.op == "output":
                return node
        raise ValueError("the graph has no output node")

    # -- building --------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: str,
        args: tuple[Argument, ...] = (),
        kwargs: dict[str, Argument] | None = None,
        *,
        name: str | None = None,
        spec: Spec = None,
        effect: str | None = None,
    ) -> Node:
        """Insert a node at the insertion point (the end, unless inside ``inserting_before``).

        Raises:
            ValueError: ``op`` is not one of the six kinds.
        """
        if op not in KINDS:
            raise ValueError(f"unknown node kind {op!r}; kinds: {', '.join(KINDS)}")
        node = Node(self, self._unique_name(name or target), op, target, args, kwargs or {})
        node.spec = spec
        node.effect = effect
        node.regions = self.regions
        after, before = self._insert_before._prev, self._insert_before
        node._prev, node._next = after, before
        after._next = before._prev = node
        self._count += 1
        return node

    def placeholder(self, name: str, *, spec: Spec = None, default: Any = None) -> Node:
        """An input of the graph."""
        return self.create_node("placeholder", name, () if default is None else (default,), spec=spec)

    def get_attr(self, name: str, *, spec: Spec = None) -> Node:
        """Read ``self.attributes[name]`` (or the owning module's attribute of that path)."""
        return self.create_node("get_attr", name, spec=spec)

    def call_function(
        self,
        target: str,
        args: tuple[Argument, ...] = (),
        kwargs: dict[str, Argument] | None = None,
        *,
        spec: Spec = None,
        effect: str | None = None,
        name: str | None = None,
    ) -> Node:
        """Call the operator of this id."""
        return self.create_node("call_function", target, args, kwargs, spec=spec, effect=effect, name=name)

    def call_method(
        self, name: str, args: tuple[Argument, ...] = (), kwargs: dict[str, Argument] | None = None
    ) -> Node:
        """Call a method of ``args[0]``."""
        return self.create_node("call_method", name, args, kwargs)

    def call_module(
        self, path: str, args: tuple[Argument, ...] = (), kwargs: dict[str, Argument] | None = None
    ) -> Node:
        """Call the owning module's submodule at this path."""
        return self.create_node("call_module", path, args, kwargs)

    def output(self, result: Argument) -> Node:
        """Return ``result`` (nested nodes and constants) from the graph."""
        return self.create_node("output", "output", (result,))

    def erase_node(self, node: Node) -> None:
        """Remove a node that nothing uses; its name is free again.

        Raises:
            RuntimeError: the node still has users; the message names them.
        """
        if node.users:
            raise RuntimeError(f"cannot erase {node.name}: used by {', '.join(u.name for u in node.users)}")
        node.set_arguments((), {})
        node._prev._next, node._next._prev = node._next, node._prev
        if self._insert_before is node:
            self._insert_before = node._next
        self._count -= 1
        self.release_name(node)
        node.op = "erased"

    @contextmanager
    def inserting_before(self, node: Node) -> Generator[None, None, None]:
        """New nodes go in front of ``node`` while the block runs."""
        saved, self._insert_before = self._insert_before, node
        try:
            yield
        finally:
            self._insert_before = saved

    @contextmanager
    def inserting_after(self, node: Node) -> Generator[None, None, None]:
        """New nodes go behind ``node``, in the order they are made, while the block runs."""
        with self.inserting_before(node._next):
            yield

    def node_copy(self, node: Node, fn: Callable[[Node], Argument]) -> Node:
        """Copy a node of another graph to here; ``fn`` gives the counterpart of each of its inputs."""
        copy = self.create_node(
            node.op,
            node.target,
            map_arguments(node.args, fn),
            map_arguments(node.kwargs, fn),
            name=node.name,
            spec=node.spec,
            effect=node.effect,
        )
        copy.regions = node.regions
        copy.meta = dict(node.meta)
        return copy

    def copy(self) -> Graph:
        """An equal graph with nodes of its own, down to the subgraphs. Other constants are shared.

        Nodes that ``meta`` names become the copy's.
        """
        other = Graph()
        other.attributes = map_leaves(self.attributes, _own_graph)
        other.has_owner = self.has_owner
        mapping: dict[Node, Node] = {}
        for node in self.nodes:
            mapping[node] = copy = other.node_copy(node, mapping.__getitem__)
            if _holds_graph(copy.args) or (copy.kwargs and _holds_graph(copy.kwargs)):
                args, kwargs = map_leaves((copy.args, copy.kwargs), _own_graph)
                copy.set_arguments(args, kwargs)
        for copy in mapping.values():
            for key, value in copy.meta.items():
                if type(value) is Node:
                    copy.meta[key] = mapping.get(value, value)
        return other

    def reorder(self, nodes: Sequence[Node]) -> None:
        """Put the nodes into this order.

        Raises:
            ValueError: these are not exactly the nodes of the graph.
        """
        if len(nodes) != self._count or set(nodes) != set(self.nodes):
            raise ValueError("reorder needs each node of the graph once")
        before = self._root
        for node in (*nodes, self._root):
            before._next, node._prev = node, before
            before = node

    def rename(self, node: Node, name: str) -> None:
        """Call ``node`` by this name, or by this name with a number when it is taken."""
        self.release_name(node)
        node.name = self._unique_name(name)

    def release_name(self, node: Node) -> None:
        """Let another node take the name of this one, which must be erased or renamed then."""
        self._names.pop(node.name, None)

    def forget_names(self) -> None:
        """Let all names be taken anew; every node must be renamed then."""
        self._names.clear()

    # -- as a whole ------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Same nodes, names, specs, effects, regions, sources and attributes (see ``structure.graphs_equal``)."""
        if self is other:
            return True
        return structure.graphs_equal(self, other) if isinstance(other, Graph) else NotImplemented

    __hash__ = object.__hash__  # a graph changes, so tables look it up by identity

    def __copy__(self) -> Graph:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Graph:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = {node: _Reference(index) for index, node in enumerate(self.nodes)}
        records = []
        for n in self.nodes:
            args, kwargs = map_arguments((n.args, n.kwargs), numbers.__getitem__)
            records.append((n.name, n.op, n.target, args, kwargs, n.spec, n.effect, n.regions, n.meta))
        return _restore, (records, self.attributes, self.has_owner)

    def __str__(self) -> str:
        return printer.print_graph(self, strict=False)

    def __repr__(self) -> str:
        return f"<Graph of {self._count} nodes>"

    def lint(self, resolver: Any = None) -> None:
        """Check structure, order, names, users and (with a resolver) specs; see ``verify``."""
        verifier.verify(self, resolver)

    # -- names -----------------------------------------------------------------------------------

    def _unique_name(self, hint: str) -> str:
        base = hint if hint.isidentifier() else _identifier(hint)
        if keyword.iskeyword(base):
            base += "_"
        count = self._names.get(base)
        if count is None:
            self._names[base] = 1
            return base
        while (name := f"{base}_{count}") in self._names:
            count += 1
        self._names[base] = count + 1
        self._names[name] = 1
        return name


def _own_graph(value: Any) -> Any:
    return value.copy() if isinstance(value, Graph) else value


def _holds_graph(arguments: Argument) -> bool:
    for value in arguments.values() if isinstance(arguments, dict) else arguments:
        kind = type(value)
        if kind is Graph or ((kind is tuple or kind is list or kind is dict) and _holds_graph(value)):
            return True
    return False


class _Reference(int):
    """The number of a node, in a pickled graph."""


def _restore(records: list[Any], attributes: dict[str, Any], has_owner: bool) -> Graph:
    graph = Graph()
    graph.attributes, graph.has_owner = attributes, has_owner
    nodes: list[Node] = []
    for name, op, target, args, kwargs, spec, effect, regions, meta in records:
        args, kwargs = map_leaves((args, kwargs), lambda v: nodes[v] if type(v) is _Reference else v)
        node = graph.create_node(op, target, args, kwargs, name=name, spec=spec, effect=effect)
        node.regions, node.meta = regions, meta
        nodes.append(node)
    return graph


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text).strip("_") or "node"
    return f"_{name}" if name[0].isdigit() else name


# These read graphs, so they import this module.
from . import structure, verifier  # noqa: E402
from .text import printer  # noqa: E402
