"""Proxies: values that write a node for each operation done on them.

An operator called on a proxy adds a ``call_function`` node to the proxy's graph. When the operator knows
the result's spec, the proxy shows it (``shape``, ``dtype``), so code that asks for sizes can be traced.

>>> from lamina_fx import Graph, GraphBuilder
>>> g = Graph()
>>> b = GraphBuilder(g)
>>> x = b.proxy(g.placeholder("x"))
>>> _ = g.output((x + 1).node)
>>> [n.name for n in g.nodes]
['x', 'add', 'output']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .device import Device
from .dtype import DType
from .graph import Graph
from .node import Argument, Node
from .spec import Size, Spec, TensorSpec

__all__ = ["GraphBuilder", "OperatorLike", "Proxy"]


class OperatorLike(Protocol):
    """What the graph layer needs to know of an operator."""

    id: str
    effect: str | None

    def infer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
        """Spec of the result; tensor arguments are given as their specs.

        Raises the error that the user should see when the arguments do not fit.
        """
        ...


class GraphBuilder:
    """Writes nodes for operators called on proxies.

    ``source()`` gives the ``meta`` of new nodes, for instance ``{"source": (file, line, function)}``.
    """

    def __init__(self, graph: Graph, source: Callable[[], dict[str, Any]] | None = None) -> None:
        self.graph = graph
        self.source = source

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def call(self, operator: OperatorLike, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call of ``operator``; returns a proxy, or a tuple of proxies for several outputs."""
        spec = operator.infer(_map(args, _spec_of), _map(kwargs, _spec_of))
        node = self.graph.call_function(
            operator.id, _map(args, _node_of), _map(kwargs, _node_of), spec=spec, effect=operator.effect
        )
        if self.source is not None:
            node.meta.update(self.source())
        return self._results(node, spec)

    def _results(self, node: Node, spec: Spec) -> Any:
        if not isinstance(spec, tuple):
            return Proxy(node, self)
        parts = []
        for index, part in enumerate(spec):
            item = self.graph.call_function("getitem", (node, index), spec=part)
            parts.append(self._results(item, part))
        return tuple(parts)


class Proxy:
    """Stands for the value of a node."""

    __slots__ = ("builder", "node")

    def __init__(self, node: Node, builder: GraphBuilder) -> None:
        self.node = node
        self.builder = builder

    def __lamina_operator__(self, operator: OperatorLike, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by an operator that finds this proxy among its arguments."""
        return self.builder.call(operator, args, kwargs)

    @property
    def spec(self) -> TensorSpec:
        """The tensor's spec.

        Raises:
            AttributeError: nothing is known of this value, or it is no tensor.
        """
        if not isinstance(self.node.spec, TensorSpec):
            raise AttributeError(f"the value of node {self.node.name!r} has no tensor spec (it is {self.node.spec})")
        return self.node.spec

    @property
    def shape(self) -> tuple[Size, ...]:
        """Sizes."""
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.spec.dtype

    @property
    def device(self) -> Device:
        """Device."""
        return self.spec.device

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.spec.shape)

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth of {self.node.name!r} is not known while tracing; use where(), or cond() for whole branches"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"cannot iterate over {self.node.name!r} while tracing: its length is not known")

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"


def _map(value: Argument, fn: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple([_map(v, fn) for v in value])
    if kind is list:
        return [_map(v, fn) for v in value]
    if kind is dict:
        return {key: _map(v, fn) for key, v in value.items()}
    if kind is slice:
        return slice(_map(value.start, fn), _map(value.stop, fn), _map(value.step, fn))
    return fn(value)


def _node_of(value: Any) -> Any:
    return value.node if isinstance(value, Proxy) else value


def _spec_of(value: Any) -> Any:
    return value.node.spec if isinstance(value, Proxy) else value
