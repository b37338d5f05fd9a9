"""Rewrite a graph to a lower level: expand composites, bring primitives to strict form.

>>> from lamina_fx import Graph, TensorSpec, float32, int64
>>> graph = Graph()
>>> x = graph.placeholder("x", spec=TensorSpec((2, 3), float32))
>>> n = graph.placeholder("n", spec=TensorSpec((3,), int64))
>>> _ = graph.output(graph.call_function("add", (x, n), spec=TensorSpec((2, 3), float32)))
>>> [node.target for node in decompose(graph, level="prims").nodes if node.op == "call_function"]
['convert_element_type', 'broadcast_in_dim', 'add']

- ``level="core"`` keeps primitives as they are and every composite with a derivative of its own;
- ``level="prims"`` leaves strict primitives and the operators in ``keep``.

What is made for a node has its ``regions`` and ``meta`` (so ``meta["source"]`` too); ``meta["from"]`` is the
chain of composites it came from, outermost first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx import Graph, GraphBuilder, Node, Proxy, TensorSpec, map_arguments
from lamina_fx.expect import expect

from .dims import surely_same
from .modes import MODES, Mode
from .operator import Operator
from .registry import operator as operator_of
from .strides import dense_order, same_layout

__all__ = ["decompose"]

_READS_MEMORY = frozenset(("as_strided", "as_strided.storage"))
"""Their numbers are places in the memory of the first argument."""


def decompose(graph: Graph, *, level: str = "prims", keep: frozenset[str] = frozenset()) -> Graph:
    """A new graph that computes the same with operators of ``level`` and those in ``keep``.

    Raises:
        ValueError: ``level`` is neither "core" nor "prims".
        KeyError: a node calls an operator that does not exist.
    """
    if level not in ("core", "prims"):
        raise ValueError(f"level must be 'core' or 'prims', not {level!r}")
    expect("decompose", graph, Graph, "a Graph")
    expect("decompose", keep, (frozenset, set, tuple, list), "a set of operator ids as keep")
    new = Graph()
    new.attributes = dict(graph.attributes)
    builder = _Builder(new, strict=level == "prims", keep=keep)
    values: dict[Node, Any] = {}
    MODES.push(builder.mode)
    try:
        for node in graph.nodes:
            values[node] = builder.translate(node, values)
    finally:
        MODES.pop()
    _remove_dead(new)
    return new


class _Intercept(Mode):
    """Sends every operator call in a composite's body to the builder."""

    stays = True

    def __init__(self, builder: _Builder) -> None:
        self.handle = builder.call  # type: ignore[method-assign]


class _Builder(GraphBuilder):
    """Writes what operators called on its proxies become at the wanted level."""

    def __init__(self, graph: Graph, *, strict: bool, keep: frozenset[str]) -> None:
        super().__init__(graph, resolver=operator_of)
        self.strict = strict
        self.keep = keep
        self.mode = _Intercept(self)
        self.meta: dict[str, Any] = {}
        self.chain: tuple[str, ...] = ()

    # -- nodes of the old graph ------------------------------------------------------------------------

    def translate(self, node: Node, values: dict[Node, Any]) -> Any:
        """The counterpart of ``node``: a node of the new graph, or a tuple of them."""
        if node.op != "call_function":
            if node.op == "output":
                for result in node.all_input_nodes:
                    values[result] = self._laid_out(values[result], result)
            return self._copy(node, values)
        if node.target == "getitem":
            source = values[node.args[0]]
            return source[node.args[1]] if isinstance(source, tuple) else self._copy(node, values)
        op = operator_of(node.target)
        if op.id in _READS_MEMORY:
            base: Any = node.args[0]
            laid_out = self._laid_out(values[base], base)
            values = values if laid_out is values[base] else {**values, base: laid_out}
        if not self._expands(op) and self._is_strict(op, node):
            return self._copy(node, values)
        self.meta = node.meta
        self.chain = node.meta.get("from", ())
        self.graph.regions = node.regions
        args = map_arguments(node.args, lambda n: self._lift(values[n]))
        kwargs = map_arguments(node.kwargs, lambda n: self._lift(values[n])) if node.kwargs else {}
        if op.variadic is not None:
            args = op.schema.gather(args, op.variadic)
        return _lower(self.call(op, args, kwargs))

    def _laid_out(self, value: Any, result: Node) -> Any:
        """A value in the layout that it had: a body's strict form may give it another."""
        wanted, have = result.spec, value.spec if type(value) is Node else None
        if not (isinstance(wanted, TensorSpec) and isinstance(have, TensorSpec)) or same_layout(wanted, have):
            return value
        order = dense_order(wanted)
        if order is None:
            return value
        self.meta, self.chain, self.graph.regions = result.meta, result.meta.get("from", ()), result.regions
        turned = self.call(operator_of("permute"), (Proxy(value, self), order), {})
        made = self.call(operator_of("clone"), (turned,), {"memory_format": "contiguous_format"})
        back = tuple(order.index(d) for d in range(len(order)))
        return _lower(self.call(operator_of("permute"), (made, back), {}))

    def _copy(self, node: Node, values: dict[Node, Any]) -> Node:
        copy = self.graph.node_copy(node, values.__getitem__)
        if any(type(a) is Graph for a in (*node.args, *node.kwargs.values())):
            copy.args = _map(copy.args, self._subgraph)
            copy.kwargs = _map(copy.kwargs, self._subgraph)
        return copy

    def _subgraph(self, value: Any) -> Any:
        """A graph among the arguments (a branch, a loop's body) is decomposed as well."""
        if type(value) is not Graph:
            return value
        return decompose(value, level="prims" if self.strict else "core", keep=self.keep)

    def _lift(self, value: Any) -> Any:
        return tuple(self._lift(v) for v in value) if isinstance(value, tuple) else Proxy(value, self)

    def _expands(self, op: Operator) -> bool:
        if op.is_primitive or op.id in self.keep:
            return False
        return self.strict or op.vjp_rule is None

    def _is_strict(self, op: Operator, node: Node) -> bool:
        """Is the node's call in strict form for certain (or may it stay as it is)."""
        if not self.strict or op.id in self.keep:
            return True
        if op.elementwise is not None:
            return not node.kwargs and op.elementwise.is_strict(map_arguments(node.args, _spec_of_node))
        return op.normalize_rule is None

    # -- calls in bodies -------------------------------------------------------------------------------

    def call(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what ``operator`` called on proxies means at this level."""
        if self._expands(operator):
            return self._within(operator, args, kwargs)
        if self.strict and operator.id not in self.keep:
            rule = operator.elementwise
            if rule is not None:
                if kwargs:
                    args, kwargs = operator.schema.bind(args, kwargs), {}
                if not rule.is_strict(_split(args)[0]):
                    args = rule.strict_operands(*args)
            elif operator.normalize_rule is not None:
                result = operator.normalize_rule(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self._emit(operator, args, kwargs)

    def _within(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        saved = self.chain
        self.chain = (*saved, operator.id)
        try:
            return operator.function(*args, **kwargs)
        finally:
            self.chain = saved

    def _emit(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if operator.id == "broadcast_in_dim" and not kwargs:
            args = self._past_reshape(*args)
        specs, nodes = _split(args)
        spec = operator.infer(specs, _map(kwargs, _spec_of) if kwargs else {})
        named = _map(kwargs, _node_of) if kwargs else None
        node = self.graph.create_node("call_function", operator.id, nodes, named, spec=spec, effect=operator.effect)
        node.meta = {**self.meta, "from": self.chain} if self.chain else dict(self.meta)
        return Proxy(node, self) if type(spec) is not tuple else self.results(node, spec)

    def _past_reshape(self, value: Any, shape: Any, dims: Any) -> tuple[Any, Any, Any]:
        """A reshape that only puts sizes of 1 in (as keepdim does) is not needed in front of a broadcast."""
        node = value.node if type(value) is Proxy else None
        if node is None or node.op != "call_function" or node.target != "reshape":
            return value, shape, dims
        source = node.args[0]
        before: Any = source.spec
        after: Any = node.spec
        left = list(before.shape)
        kept = []
        for size, dim in zip(after.shape, dims, strict=True):
            if left and surely_same((size,), left[:1]):
                kept.append(dim)
                left.pop(0)
            elif type(size) is not int or size != 1:
                return value, shape, dims
        return (value, shape, dims) if left else (Proxy(source, self), shape, tuple(kept))


def _split(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments with specs, and with nodes, in place of proxies."""
    specs, nodes = [], []
    for value in args:
        kind = type(value)
        if kind is Proxy:
            specs.append(value.node.spec)
            nodes.append(value.node)
        elif kind is tuple or kind is list or kind is dict:
            specs.append(_map(value, _spec_of))
            nodes.append(_map(value, _node_of))
        else:
            specs.append(value)
            nodes.append(value)
    return tuple(specs), tuple(nodes)


def _map(value: Any, fn: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple([v if type(v) is int else _map(v, fn) for v in value])
    if kind is list:
        return [_map(v, fn) for v in value]
    if kind is dict:
        return {key: _map(v, fn) for key, v in value.items()}
    return fn(value)


def _spec_of(value: Any) -> Any:
    return value.node.spec if type(value) is Proxy else value


def _node_of(value: Any) -> Any:
    return value.node if type(value) is Proxy else value


def _spec_of_node(node: Node) -> Any:
    return node.spec


def _lower(value: Any) -> Any:
    """Nodes for proxies; constants stay."""
    return tuple(_lower(v) for v in value) if isinstance(value, (tuple, list)) else _node_of(value)


def _remove_dead(graph: Graph) -> None:
    """Drop nodes that nothing uses (results of multi-output operators, parts of bodies)."""
    for node in reversed(graph.nodes):
        if not node.users and node.effect is None and node.op in ("call_function", "get_attr"):
            graph.erase_node(node)
