"""Writes nodes for operators called on proxies.

>>> from lamina_fx import Graph
>>> b = GraphBuilder(Graph())
>>> x = b.input("x")
>>> _ = b.graph.output((2 * -x).node)
>>> [n.target for n in b.graph.nodes]
['x', 'neg', 'mul', 'output']
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

# pyright: reportPrivateUsage=false
# (it writes at places that the graph alone knows)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .dtype import DType, dtype_of
from .graph import Graph
from .node import Argument, Node, map_arguments
from .proxy import Proxy, to_node
from .spec import Spec, TensorSpec

__all__ = ["GraphBuilder", "OperatorLike", "OperatorResolver"]


_PLAIN = frozenset((int, float, bool, str, type(None), Node, DType))


class OperatorLike(Protocol):
    """What the graph layer needs to know of an operator."""

    id: str
    effect: str | None

    def infer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
        """Spec of the result; tensor arguments are given as their specs.

        Raises the error that the user should see when the arguments do not fit.
        """
        ...


class OperatorResolver(Protocol):
    """From an operator id to the operator.

    It may also have ``method(name)``: the operator (or a tuple of overloads, or nothing) that is called by
    ``tensor.name(...)``, with ``"__add__"`` for ``+`` and so on; and ``resolve("Tensor." + name, args, kwargs)``, which
    picks among overloads.
    """

    def __call__(self, id: str, /) -> OperatorLike:
        """The operator of this id; raises KeyError when there is none."""
        ...


class GraphBuilder:
    """Writes nodes for operators called on proxies.

    ``source()`` gives the ``meta`` of new nodes, for instance ``{"source": (file, line, function)}``.
    With a ``resolver``, ``x + 1`` calls the operator that it gives, so results have specs; without one, bare
    nodes are written.
    """

    def __init__(
        self,
        graph: Graph,
        source: Callable[[], dict[str, Any]] | None = None,
        *,
        resolver: OperatorResolver | None = None,
    ) -> None:
        self.graph = graph
        self.source = source
        self.resolver = resolver
        self.known: dict[int, str] = {}
        """Attribute paths of arrays that are parameters of what is traced, by ``id``."""
        self._constants: dict[int, tuple[Any, Node]] = {}

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def input(self, name: str, spec: Spec = None) -> Any:
        """A new placeholder's proxy."""
        return self.results(self.graph.placeholder(name, spec=spec), spec)

    def call(self, operator: OperatorLike, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of ``operator``; returns a proxy, or a tuple of proxies for several outputs."""
        args = self.argument(args)
        kwargs = self.argument(kwargs) if kwargs else {}
        find = _spec if self.resolver is not None else self._known_spec
        spec = operator.infer(map_arguments(args, find), map_arguments(kwargs, find) if kwargs else {})
        node = self.graph.call_function(operator.id, args, kwargs, spec=spec, effect=operator.effect)
        if self.source is not None:
            node.meta.update(self.source())
        return self.results(node, spec)

    def _known_spec(self, node: Node) -> Spec:
        """The spec of an argument, where nodes may have none.

        Raises:
            TypeError: it has none; says how it gets one.
        """
        if node.spec is None and node.op != "get_attr" and node.effect is None:
            raise TypeError(
                f"nothing is known of the value of node {node.name!r} ({node.target}): this GraphBuilder has no "
                "resolver, so Python's operators write bare nodes; give it one, such as "
                "GraphBuilder(graph, resolver=lamina_prims.operator)"
            )
        return node.spec

    def call_id(self, id: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call the operator of this id through the resolver; without one, a bare node."""
        if self.resolver is not None:
            return self.call(self.resolver(id), args, kwargs or {})
        return self.create("call_function", id, args, kwargs)

    def create(
        self, op: str, target: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, spec: Spec = None
    ) -> Proxy:
        """Add a node of any kind; proxies among the arguments become their nodes."""
        args = self.argument(args)
        node = self.graph.create_node(op, target, args, self.argument(kwargs) if kwargs else None, spec=spec)
        if self.source is not None:
            node.meta.update(self.source())
        return Proxy(node, self)

    def method(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OperatorLike | None:
        """The operator that ``args[0].name(*args[1:])`` means, or None when the resolver knows none."""
        find = getattr(self.resolver, "method", None)
        found = None if find is None else find(name)
        if not isinstance(found, (tuple, list)):
            return found
        if len(found) > 1 and hasattr(self.resolver, "resolve"):
            return self.resolver.resolve(f"Tensor.{name}", args, kwargs)  # type: ignore[union-attr]
        return found[0] if found else None

    def has_method(self, name: str) -> bool:
        """True when the resolver knows a method of this name."""
        find = getattr(self.resolver, "method", None)
        return find is not None and bool(find(name))

    def argument(self, value: Any) -> Argument:
        """What stands for ``value`` among a node's arguments.

        Proxies become their nodes, inside containers too. A real array becomes a constant: an attribute of the graph
        and a ``get_attr`` node, one for each array.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, Proxy):
            return value.node
        if kind is tuple:
            return tuple([self.argument(v) for v in value])
        if kind is list:
            return [self.argument(v) for v in value]
        if kind is dict:
            return {key: self.argument(v) for key, v in value.items()}
        if kind is slice:
            return slice(self.argument(value.start), self.argument(value.stop), self.argument(value.step))
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return kind(*[self.argument(v) for v in value])
        return self.constant(value) if _is_array(value) else to_node(value)

    def constant(self, value: Any) -> Node:
        """The node that reads a real array."""
        known = self._constants.get(id(value))
        if known is not None:
            return known[1]
        graph = self.graph
        name = self.known.get(id(value))
        if name is None:
            name = f"constant{len(graph.attributes)}"
            graph.attributes[name] = value
        first = next((n for n in graph.nodes if n.op not in ("placeholder", "get_attr")), None)
        with graph.inserting_before(graph._root if first is None else first):  # it may be read from anywhere
            node = graph.get_attr(name, spec=_array_spec(value))
        self._constants[id(value)] = (value, node)
        return node

    def results(self, node: Node, spec: Spec) -> Any:
        """The proxy of ``node``; with several outputs, a tuple of the proxies of its items."""
        if not isinstance(spec, tuple):
            return Proxy(node, self)
        parts = []
        for index, part in enumerate(spec):
            item = self.graph.call_function("getitem", (node, index), spec=part)
            item.meta.update(node.meta)
            parts.append(self.results(item, part))
        return tuple(parts)


def _spec(node: Node) -> Spec:
    return node.spec


def _is_array(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "shape") and hasattr(kind, "dtype") and kind is not TensorSpec


def _array_spec(value: Any) -> Spec:
    """Spec of a real array: its own, or from dtype and shape (row-major)."""
    spec = getattr(value, "spec", None)
    return spec if isinstance(spec, TensorSpec) else TensorSpec(value.shape, dtype_of(str(value.dtype)))
