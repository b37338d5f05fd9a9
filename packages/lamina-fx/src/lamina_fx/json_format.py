"""Graphs as JSON, for tools in other languages.

>>> from lamina_fx import parse
>>> g = parse("graph { %x: float32[2] = placeholder  %add: float32[2] = add(%x, 1)  return %add }")
>>> from_json(to_json(g)) == g
True

Promise. ``version`` counts incompatible changes. A reader takes the current version and the one before, and ignores
keys that it does not know, so a writer may add keys without a new version. ``SCHEMA`` is the JSON schema of what is
written.
Nodes, values and specs are objects with one key that says their kind; numbers, strings, booleans, null and lists
stand for themselves.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from .device import Device
from .dtype import DType, dtype_of
from .expect import expect
from .graph import Graph
from .json_schema import SCHEMA
from .node import KINDS, Node
from .spec import ScalarSpec, Spec, TensorSpec
from .symbolic import BooleanExpr, Expr, ShapeEnv, Symbol, SymBool, SymInt, parse_expr
from .text.constant import ArrayConstant, array_constant
from .text.printer import UnprintableError, collect_symbols, is_plain

__all__ = ["SCHEMA", "VERSION", "GraphFormatError", "from_json", "from_object", "to_json", "to_object"]

VERSION = 0
_OLDEST = 0
_SCALARS = {"bool": bool, "int": int, "float": float, "complex": complex}


class GraphFormatError(ValueError):
    """The JSON is no graph of a version that can be read."""


def to_json(graph: Graph, *, indent: int | None = None) -> str:
    """The graph as JSON text.

    Raises:
        UnprintableError: an argument or attribute has no JSON form.
    """
    expect("to_json", graph, Graph, "a Graph")
    return json.dumps(to_object(graph), indent=indent, allow_nan=False)


def from_json(
    text: str, *, shape_env: ShapeEnv | None = None, array: Callable[[ArrayConstant], Any] | None = None
) -> Graph:
    """The graph of a JSON text; options as for ``parse``.

    Raises:
        GraphFormatError: no JSON, no graph, or an unknown version.
    """
    expect("from_json", text, (str, bytes, bytearray), "JSON text")
    try:
        return from_object(json.loads(text), shape_env=shape_env, array=array)
    except json.JSONDecodeError as error:
        raise GraphFormatError(f"not JSON: {error}") from error


def to_object(graph: Graph) -> dict[str, Any]:
    """The graph as dicts and lists that ``json`` can write."""
    symbols = []
    for symbol, env in collect_symbols(graph).values():
        entry: dict[str, Any] = {"name": symbol.name, "lower": symbol.lower, "divisor": symbol.divisor}
        entry["upper"] = str(symbol.upper) if isinstance(symbol.upper, Expr) else symbol.upper
        if env is not None:
            entry |= {"hint": env.hints.get(symbol), "source": env.sources.get(symbol, "")}
        symbols.append(entry)
    return {"format": "lamina.graph", "version": VERSION, "symbols": symbols, **_body(graph)}


def _body(graph: Graph) -> dict[str, Any]:
    return {
        "attributes": {name: _encode(value) for name, value in graph.attributes.items()},
        "nodes": [_node(n) for n in graph.nodes],
    }


def _node(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "op": node.op, "target": node.target}
    try:
        entry["args"] = [_encode(a) for a in node.args]
        if node.kwargs:
            entry["kwargs"] = {k: _encode(v) for k, v in node.kwargs.items()}
    except UnprintableError as error:
        raise UnprintableError(f"node {node.name!r}: {error}") from None
    if node.spec is not None:
        entry["spec"] = _spec(node.spec)
    if node.effect is not None:
        entry["effect"] = node.effect
    if node.regions:
        entry["regions"] = list(node.regions)
    meta = dict(node.meta)
    source = meta.pop("source", None)
    if source is not None:
        entry["source"] = list(source)
    rest = {k: _encode(v) for k, v in meta.items() if is_plain(v)}
    if rest:
        entry["meta"] = rest
    return entry


def _spec(spec: Spec) -> Any:
    if isinstance(spec, TensorSpec):
        shape, strides = ([s if type(s) is int else str(s) for s in part] for part in (spec.shape, spec.strides))
        return {"tensor": {"dtype": spec.dtype.name, "shape": shape, "strides": strides, "device": str(spec.device)}}
    if isinstance(spec, ScalarSpec):
        return {"scalar": spec.kind.__name__} | ({} if spec.value is None else {"value": _encode(spec.value)})
    return None if spec is None else {"tuple": [_spec(s) for s in spec]}


def _encode(value: Any) -> Any:
    kind = type(value)
    if kind in (int, str, bool, type(None)):
        return value
    if kind is Node:
        return {"node": value.name}
    if kind is float:
        return value if value - value == 0 else {"float": repr(value)}
    if kind is list:
        return [_encode(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(v) for v in value]}
    if kind is dict:
        return {"dict": [[_encode(k), _encode(v)] for k, v in value.items()]}
    if kind is slice:
        return {"slice": [_encode(v) for v in (value.start, value.stop, value.step)]}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if kind is DType:
        return {"dtype": value.name}
    if kind is Device:
        return {"device": str(value)}
    if isinstance(value, (TensorSpec, ScalarSpec)):
        return {"spec": _spec(value)}
    if isinstance(value, (SymInt, SymBool)):
        return {"sym": str(value.expr)}
    if isinstance(value, Expr):
        return {"expr": str(value)}
    if isinstance(value, Graph):
        return {"graph": _body(value)}
    if value is ...:
        return {"ellipsis": True}
    constant = array_constant(value)
    if constant is None:
        raise UnprintableError(f"a value of type {kind.__name__} has no JSON form: {value!r}")
    data = base64.b64encode(constant.data).decode()
    return {"array": {"dtype": constant.dtype.name, "shape": list(constant.shape), "data": data}}


def from_object(
    data: Any, *, shape_env: ShapeEnv | None = None, array: Callable[[ArrayConstant], Any] | None = None
) -> Graph:
    """The graph of what ``to_object`` gives.

    Raises:
        GraphFormatError: no graph, or an unknown version.
    """
    if not isinstance(data, dict) or data.get("format") != "lamina.graph":
        raise GraphFormatError("this is no Lamina graph: it has no 'format': 'lamina.graph'")
    version = data.get("version")
    if not isinstance(version, int) or not _OLDEST <= version <= VERSION:
        raise GraphFormatError(f"graph version {version} cannot be read; this release reads {_OLDEST} to {VERSION}")
    reader = _Reader(ShapeEnv() if shape_env is None else shape_env, array)
    try:
        for entry in data.get("symbols", ()):
            reader.symbol(entry)
        return reader.graph(data)
    except GraphFormatError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise GraphFormatError(f"malformed graph: {error!r}") from error


class _Reader:
    def __init__(self, env: ShapeEnv, array: Callable[[ArrayConstant], Any] | None) -> None:
        self.env = env
        self.array = array
        self.symbols: dict[str, Symbol] = {s.name: s for s in env.sources}
        self.nodes: dict[str, Node] = {}

    def symbol(self, entry: dict[str, Any]) -> None:
        upper = entry.get("upper")
        if isinstance(upper, str):
            upper = parse_expr(upper, self.symbols)
        symbol = Symbol(entry["name"], entry.get("lower"), upper, entry.get("divisor", 1))
        if self.symbols.setdefault(symbol.name, symbol) is symbol:
            self.env.declare(symbol, entry.get("hint"), entry.get("source", ""))

    def graph(self, data: dict[str, Any]) -> Graph:
        outer, self.nodes = self.nodes, {}
        graph = Graph()
        graph.attributes = {name: self.value(v) for name, v in data.get("attributes", {}).items()}
        for entry in data["nodes"]:
            if entry["op"] not in KINDS:
                raise GraphFormatError(f"node {entry['name']!r} has the unknown kind {entry['op']!r}")
            args = tuple([self.value(a) for a in entry.get("args", ())])
            kwargs = {k: self.value(v) for k, v in entry.get("kwargs", {}).items()}
            node = graph.create_node(entry["op"], entry["target"], args, kwargs, name=entry["name"])
            if node.name != entry["name"]:
                raise GraphFormatError(f"the node name {entry['name']!r} is no identifier or taken")
            node.spec = self.spec(entry.get("spec"))
            node.effect = entry.get("effect")
            node.regions = tuple(entry.get("regions", ()))
            node.meta = {k: self.value(v) for k, v in entry.get("meta", {}).items()}
            if "source" in entry:
                node.meta["source"] = tuple(entry["source"])
            self.nodes[node.name] = node
        self.nodes = outer
        return graph

    def size(self, size: Any) -> Any:
        if type(size) is int:
            return size
        expr = parse_expr(size, self.symbols)
        return expr.value if expr.is_constant else SymInt(expr, self.env)  # type: ignore[attr-defined]

    def spec(self, data: Any) -> Spec:
        if data is None:
            return None
        if "tensor" in data:
            t = data["tensor"]
            shape, strides = (tuple([self.size(s) for s in t[k]]) for k in ("shape", "strides"))
            return TensorSpec(shape, dtype_of(t["dtype"]), strides, Device(t.get("device", "cpu")))
        if "scalar" in data:
            return ScalarSpec(_SCALARS[data["scalar"]], self.value(data["value"]) if "value" in data else None)
        return tuple([self.spec(s) for s in data["tuple"]])

    def value(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self.value(v) for v in data]
        if not isinstance(data, dict):
            return data
        ((kind, inner),) = ((k, v) for k, v in data.items() if k in _DECODERS)
        return _DECODERS[kind](self, inner)

    def sym(self, text: str) -> SymInt | SymBool:
        expr = parse_expr(text, self.symbols)
        return SymBool(expr, self.env) if isinstance(expr, BooleanExpr) else SymInt(expr, self.env)

    def constant(self, data: dict[str, Any]) -> Any:
        constant = ArrayConstant(dtype_of(data["dtype"]), data["shape"], base64.b64decode(data["data"]))
        return constant if self.array is None else self.array(constant)


_DECODERS: dict[str, Callable[[_Reader, Any], Any]] = {
    "node": lambda r, v: r.nodes[v],
    "tuple": lambda r, v: tuple([r.value(x) for x in v]),
    "dict": lambda r, v: {r.value(k): r.value(x) for k, x in v},
    "slice": lambda r, v: slice(*[r.value(x) for x in v]),
    "float": lambda r, v: float(v),
    "complex": lambda r, v: complex(float(v[0]), float(v[1])),
    "dtype": lambda r, v: dtype_of(v),
    "device": lambda r, v: Device(v),
    "sym": lambda r, v: r.sym(v),
    "expr": lambda r, v: parse_expr(v, r.symbols),
    "spec": lambda r, v: r.spec(v),
    "array": lambda r, v: r.constant(v),
    "graph": lambda r, v: r.graph(v),
    "ellipsis": lambda r, v: ...,
}
