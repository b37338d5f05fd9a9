"""When two graphs are the same: equality with names, and a hash without them.

>>> from lamina_fx import Graph
>>> def build(name):
...     g = Graph()
...     x = g.placeholder(name)
...     _ = g.output(g.call_function("add", (x, 1)))
...     return g
>>> build("x") == build("x"), build("x") == build("y"), content_hash(build("x")) == content_hash(build("y"))
(True, False, True)
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import hashlib
from typing import Any

from .expect import expect
from .graph import Graph
from .node import Node, map_arguments
from .spec import ScalarSpec, Spec, TensorSpec
from .symbolic import Expr, Symbol, SymBool, SymInt
from .text.constant import array_constant
from .text.printer import format_spec, format_value

__all__ = ["content_hash", "difference", "graphs_equal"]


def graphs_equal(a: Graph, b: Graph, *, names: bool = True) -> bool:
    """Are the graphs the same, node by node?

    Kinds, targets, arguments, specs, effects, regions, attributes, subgraphs and (with ``names``) node names and the
    user's source lines must agree. Other meta data does not count.
    """
    expect("graphs_equal", a, Graph, "a Graph")
    expect("graphs_equal", b, Graph, "a Graph")
    return difference(a, b, names=names) is None


def difference(a: Graph, b: Graph, *, names: bool = True) -> str | None:
    """The first thing in which two graphs differ, in words; None when they are equal."""
    counterpart: dict[Node, Node] = {}
    if len(a.nodes) != len(b.nodes):
        return f"{len(a.nodes)} nodes and {len(b.nodes)}"
    for left, right in zip(a.nodes, b.nodes, strict=True):
        for field in ("op", "target", "effect", "regions", "spec"):
            if getattr(left, field) != getattr(right, field):
                return f"{left.name}: {field} {getattr(left, field)!r} and {getattr(right, field)!r}"
        if names and (left.name != right.name or left.meta.get("source") != right.meta.get("source")):
            return f"names or sources of {left.name!r} and {right.name!r}"
        if not _same((left.args, left.kwargs), (right.args, right.kwargs), counterpart, names):
            return f"{left.name}: arguments {left.args}, {left.kwargs} and {right.args}, {right.kwargs}"
        counterpart[left] = right
    if a.attributes.keys() != b.attributes.keys():
        return f"attributes {sorted(a.attributes)} and {sorted(b.attributes)}"
    for name, value in a.attributes.items():
        if not _same(value, b.attributes[name], counterpart, names):
            return f"attribute {name!r}"
    return None


def _same(a: Any, b: Any, counterpart: dict[Node, Node], names: bool) -> bool:
    if type(a) is Node:
        return counterpart.get(a) is b
    if isinstance(a, (tuple, list)):
        return (
            isinstance(b, (tuple, list))
            and isinstance(a, tuple) == isinstance(b, tuple)
            and len(a) == len(b)
            and all(_same(x, y, counterpart, names) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, dict):
        return (
            isinstance(b, dict) and list(a) == list(b) and all(_same(v, b[k], counterpart, names) for k, v in a.items())
        )
    if isinstance(a, slice):
        parts = ((getattr(a, f), getattr(b, f, None)) for f in ("start", "stop", "step"))
        return isinstance(b, slice) and all(_same(x, y, counterpart, names) for x, y in parts)
    if isinstance(a, Graph):
        return isinstance(b, Graph) and graphs_equal(a, b, names=names)
    return same_constant(a, b)


def same_constant(a: Any, b: Any) -> bool:
    """Are two arguments that are no containers the same: same type and value, nan equal to nan, 0.0 not to -0.0?"""
    if isinstance(a, (SymInt, SymBool)):
        return isinstance(b, (SymInt, SymBool)) and a.expr is b.expr
    if a is b:
        return True
    left, right = array_constant(a), array_constant(b)
    if left is not None or right is not None:
        return left == right
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)  # nan equals nan here, and 0.0 differs from -0.0
    return bool(a == b)


# -- content hash ------------------------------------------------------------------------------------------


def content_hash(graph: Graph) -> str:
    """A hexadecimal hash of what the graph computes, the same in every process.

    Node names, symbol names, attribute names, sources and other meta data do not count.

    Raises:
        UnprintableError: an argument or attribute has no text form.
    """
    expect("content_hash", graph, Graph, "a Graph")
    hasher = hashlib.sha256()
    for line in _Canonical({}).lines(graph):
        hasher.update(line.encode())
        hasher.update(b"\n")
    return hasher.hexdigest()


class _Canonical:
    """Writes nodes as numbers in order and symbols as numbers in order of first occurrence."""

    def __init__(self, symbols: dict[Expr, Expr]) -> None:
        self.symbols = symbols
        self.numbers: dict[Node, int] = {}
        self.attributes: dict[str, int] = {}

    def lines(self, graph: Graph) -> list[str]:
        found: list[str] = []
        for index, node in enumerate(graph.nodes):
            target = node.target
            if node.op == "placeholder":
                target = ""
            elif node.op == "get_attr" and node.target in graph.attributes:
                target = str(self.attributes.setdefault(target, len(self.attributes)))
            args = self.value((node.args, node.kwargs))
            found.append(f"{node.op} {target} {args} {self.spec(node.spec)} {node.effect} {node.regions}")
            self.numbers[node] = index
        found += [f"attribute {i} {self.value(graph.attributes[name])}" for name, i in self.attributes.items()]
        return found

    def value(self, value: Any) -> str:
        return format_value(self.replace(value))

    def replace(self, value: Any) -> Any:
        """``value`` with nodes, symbols and graphs replaced by what does not depend on names."""
        value = map_arguments(value, lambda n: f"%{self.numbers[n]}")
        return self.leaves(value)

    def leaves(self, value: Any) -> Any:
        kind = type(value)
        if kind is int or kind is str or value is None or kind is float or kind is bool:
            return value
        if isinstance(value, (tuple, list)):
            return (
                type(value)([self.leaves(v) for v in value])
                if kind in (tuple, list)
                else tuple(map(self.leaves, value))
            )
        if kind is dict:
            return {k: self.leaves(v) for k, v in value.items()}
        if kind is slice:
            return slice(self.leaves(value.start), self.leaves(value.stop), self.leaves(value.step))
        if isinstance(value, (SymInt, SymBool, Expr)):
            return self.expr(value if isinstance(value, Expr) else value.expr)
        if isinstance(value, Graph):
            return _Canonical(self.symbols).lines(value)
        return value

    def expr(self, expr: Expr) -> Expr:
        for symbol in sorted(expr.free_symbols, key=lambda s: s.key):
            if symbol not in self.symbols:
                upper = self.expr(symbol.upper) if isinstance(symbol.upper, Expr) else symbol.upper
                self.symbols[symbol] = Symbol(f"c{len(self.symbols)}", symbol.lower, upper, symbol.divisor)
        return expr.substitute(self.symbols)

    def spec(self, spec: Spec) -> str:
        if isinstance(spec, TensorSpec) and any(type(s) is not int for s in (*spec.shape, *spec.strides)):
            shape, strides = (
                tuple([s if type(s) is int else self.expr(s.expr) for s in part])  # type: ignore[union-attr]
                for part in (spec.shape, spec.strides)
            )
            return f"{spec.dtype}{shape}{strides}{spec.device}"
        if isinstance(spec, tuple):
            return f"({', '.join([self.spec(s) for s in spec])})"
        if isinstance(spec, ScalarSpec) and spec.value is not None:
            return f"{spec.kind.__name__}={self.value(spec.value)}"
        if isinstance(spec, TensorSpec):
            return f"{spec.dtype}{spec.shape}{spec.strides}{spec.device}"
        return format_spec(spec)
