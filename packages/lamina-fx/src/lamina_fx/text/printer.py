"""Writes a graph as text; the grammar is in the package's docstring."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from ..device import CPU, Device
from ..dtype import DType
from ..expect import expect
from ..graph import Graph
from ..node import Node
from ..spec import ScalarSpec, Spec, TensorSpec, contiguous_strides, same_sizes
from .constant import array_constant

__all__ = ["UnprintableError", "format_spec", "format_symbol", "format_value", "is_plain", "print_graph"]

DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*\Z")
REGION = re.compile(r"[A-Za-z_][\w.]*(?::[\w.]+)*\Z")
PREFIX = {"call_method": "method ", "call_module": "module "}


class UnprintableError(TypeError):
    """A value has no text form."""


def print_graph(graph: Graph, *, strict: bool = True, sources: bool = True) -> str:
    """The text of a graph.

    Args:
        graph: what to print; subgraphs are printed inside.
        strict: raise when something has no text form; otherwise write ``<...>`` for it, which does not parse.
        sources: write the user's lines and other meta data.

    Raises:
        UnprintableError: names the node and the value (only when ``strict``).
    """
    expect("print_graph", graph, Graph, "a Graph")
    return "\n".join(_Printer(strict, sources).graph(graph, "", None))


class _Printer:
    def __init__(self, strict: bool, sources: bool) -> None:
        self.strict = strict
        self.sources = sources
        self.specs: dict[int, tuple[Spec, str]] = {}
        self.attributes: dict[str, str] = {}
        self.places: dict[tuple[str, int, str], str] = {}
        self.indent = ""

    # -- structure -----------------------------------------------------------------------------------

    def graph(self, graph: Graph, indent: str, declared: set[Any] | None) -> Iterator[str]:
        yield f"{indent if declared is None else ''}graph {{"
        inner = indent + "  "
        body = list(self.body(graph, inner))
        if declared is None:
            yield from [f"{inner}{line}" for line in symbol_lines(graph)]
        yield from body
        yield indent + "}"

    def body(self, graph: Graph, indent: str) -> Iterator[str]:
        saved, self.indent = self.indent, indent
        for name, value in graph.attributes.items():
            yield f"{indent}attribute {_word(name)} = {self.checked(value, f'attribute {name!r}')}"
        for node in graph.nodes:
            try:
                yield indent + self.node(node)
            except UnprintableError as error:
                raise UnprintableError(f"node {node.name!r}: {error}") from None
        self.indent = saved

    def checked(self, value: Any, what: str) -> str:
        try:
            return self.value(value)
        except UnprintableError as error:
            raise UnprintableError(f"{what}: {error}") from None

    def node(self, node: Node) -> str:
        op = node.op
        tail = self.tail(node)
        if op == "output" and node.name == "output" and not tail and node.spec is None and not node.kwargs:
            return f"return {self.value(node.args[0])}"
        head = f"%{node.name} = " if node.spec is None else f"%{node.name}: {self.spec(node.spec)} = "
        if op == "call_function":
            target = node.target
            if not target.isidentifier() or target in RESERVED:
                target = _word(target)
            return f"{head}{target}({self.arguments(node)}){tail}"
        if op == "placeholder":
            named = "" if node.target == node.name else " " + _word(node.target)
            default = f"({self.value(node.args[0])})" if node.args else ""
            return f"{head}placeholder{named}{default}{tail}"
        if op == "get_attr":
            return f"{head}get {_word(node.target)}{tail}"
        if op == "output":
            return f"{head}output({self.arguments(node)}){tail}"
        return f"{head}{PREFIX[op]}{_word(node.target)}({self.arguments(node)}){tail}"

    def arguments(self, node: Node) -> str:
        parts = [f"%{a.name}" if type(a) is Node else self.value(a) for a in node.args]
        if node.kwargs:
            parts += [f"{key}={self.value(a)}" for key, a in node.kwargs.items()]
        return ", ".join(parts)

    def tail(self, node: Node) -> str:
        text = ""
        if node.effect is not None:
            text += f" !{_word(node.effect)}"
        if node.regions:
            text += " in {" + ", ".join([r if REGION.match(r) else json.dumps(r) for r in node.regions]) + "}"
        if node.meta and self.sources:
            text += self.meta(node.meta)
        return text

    def meta(self, meta: dict[str, Any]) -> str:
        source, text = meta.get("source"), ""
        if source is not None:
            place = tuple(source)
            text = self.places.get(place, "")
            if not text:
                file, line, function = place
                text = self.places[place] = f" at {json.dumps(file)}:{line} {_word(function)}"
        if len(meta) == (source is not None):
            return text
        rest = {k: v for k, v in meta.items() if k != "source" and is_plain(v)}
        return f"{text} meta {self.value(rest)}" if rest else text

    # -- values ----------------------------------------------------------------------------------------

    def spec(self, spec: Spec) -> str:
        known = self.specs.get(id(spec))
        if known is None or known[0] is not spec:
            known = self.specs[id(spec)] = (spec, format_spec(spec))
        return known[1]

    def value(self, value: Any) -> str:
        kind = type(value)
        if kind is Node:
            return f"%{value.name}"
        if kind is int or kind is bool or value is None:
            return repr(value)
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(self, value)
        if isinstance(value, tuple):
            return _write_tuple(self, value)
        if isinstance(value, Graph):
            return "\n".join(self.graph(value, self.indent, set()))
        text = format_symbol(value)
        if text is not None:
            return text
        constant = array_constant(value)
        if constant is not None:
            data = base64.b64encode(constant.data).decode()
            return f'array({constant.dtype}, {list(constant.shape)}, "{data}")'
        if not self.strict:
            return f"<{value!r}>"
        raise UnprintableError(
            f"a value of type {kind.__name__} has no text form: {value!r}; make it an attribute or a constant"
        )


def _write_tuple(printer: _Printer, value: tuple[Any, ...]) -> str:
    items = ", ".join([printer.value(v) for v in value])
    return f"({items},)" if len(value) == 1 else f"({items})"


def _write_float(printer: _Printer, value: float) -> str:
    return repr(value)


_WRITERS: dict[type, Any] = {
    float: _write_float,
    str: lambda p, v: json.dumps(v),
    tuple: _write_tuple,
    list: lambda p, v: "[" + ", ".join([p.value(x) for x in v]) + "]",
    dict: lambda p, v: "{" + ", ".join([f"{p.value(k)}: {p.value(x)}" for k, x in v.items()]) + "}",
    slice: lambda p, v: f"slice({p.value(v.start)}, {p.value(v.stop)}, {p.value(v.step)})",
    complex: lambda p, v: f"complex({v.real!r}, {v.imag!r})",
    type(...): lambda p, v: "...",
    DType: lambda p, v: v.name,
    Device: lambda p, v: f'device("{v}")',
    TensorSpec: lambda p, v: f"spec({format_spec(v)})",
    ScalarSpec: lambda p, v: f"spec({format_spec(v)})",
    Graph: lambda p, v: "\n".join(p.graph(v, p.indent, set())),
}


def format_value(value: Any, strict: bool = True) -> str:
    """The text of one argument."""
    return _Printer(strict, True).value(value)


def format_spec(spec: Spec) -> str:
    """The text of a spec; ``?`` for None."""
    if isinstance(spec, TensorSpec):
        text = f"{spec.dtype.name}[{', '.join([str(s) for s in spec.shape])}]"
        if not same_sizes(spec.strides, contiguous_strides(spec.shape)):
            text += f"@({', '.join([str(s) for s in spec.strides])})"
        return text if spec.device == CPU else f"{text} {spec.device}"
    if isinstance(spec, ScalarSpec):
        name = spec.kind.__name__
        return name if spec.value is None else f"{name}({format_value(spec.value)})"
    if spec is None:
        return "?"
    parts = ", ".join([format_spec(s) for s in spec])
    return f"({parts},)" if len(spec) == 1 else f"({parts})"


def format_symbol(value: Any) -> str | None:
    """The text of a symbolic size or an expression; None for anything else."""
    module = type(value).__module__
    if not module.startswith("lamina_fx.symbolic"):
        return None
    name = type(value).__name__
    if name in ("SymInt", "SymBool"):
        return f"sym({value.expr})"
    return f"expr({value})" if hasattr(value, "free_symbols") else None


# -- symbols ---------------------------------------------------------------------------------------------


def symbol_lines(graph: Graph) -> list[str]:
    """Declarations of the symbols that occur in a graph and its subgraphs."""
    lines = []
    for symbol, env in collect_symbols(graph).values():
        low = "" if symbol.lower is None else symbol.lower
        high = "" if symbol.upper is None else f" {symbol.upper}"
        line = f"symbol {symbol.name} in [{low},{high}]"
        if symbol.divisor > 1:
            line += f" step {symbol.divisor}"
        if env is not None and symbol in env.hints:
            line += f" hint {env.hints[symbol]}"
        if env is not None and env.sources.get(symbol):
            line += f" source {json.dumps(env.sources[symbol])}"
        lines.append(line)
    return lines


def collect_symbols(graph: Graph) -> dict[str, tuple[Any, Any]]:
    """Name -> (symbol, its ShapeEnv or None), in order of first occurrence."""
    found: dict[str, tuple[Any, Any]] = {}
    seen: set[int] = set()

    def visit(value: Any) -> None:
        kind = type(value)
        if kind is int or kind is str or kind is Node or kind is float or value is None or kind is bool:
            return
        if kind is TensorSpec:
            if id(value) in seen:
                return
            seen.add(id(value))
            for size in (*value.shape, *value.strides):
                if type(size) is not int:
                    visit(size)
        elif isinstance(value, (tuple, list)):
            for item in value:
                visit(item)
        elif kind is dict:
            visit(list(value.items()))
        elif kind is slice:
            visit((value.start, value.stop, value.step))
        elif isinstance(value, ScalarSpec):
            visit(value.value)
        elif isinstance(value, Graph):
            walk(value)
        elif kind.__module__.startswith("lamina_fx.symbolic"):
            _note(value, found)

    def walk(graph: Graph) -> None:
        visit(list(graph.attributes.values()))
        for node in graph.nodes:
            visit(node.spec)
            visit(node.args)
            if node.kwargs:
                visit(node.kwargs)

    walk(graph)
    return found


def _note(value: Any, found: dict[str, tuple[Any, Any]]) -> None:
    expr, env = getattr(value, "expr", value), getattr(value, "env", None)
    for symbol in sorted(getattr(expr, "free_symbols", ()), key=lambda s: s.key):
        upper = symbol.upper
        if upper is not None and type(upper) is not int:
            _note(upper, found)
        known = found.setdefault(symbol.name, (symbol, env))
        if known[0] is not symbol:
            raise UnprintableError(f"two symbols are called {symbol.name!r}, with different bounds")


RESERVED = frozenset(
    ["at", "attribute", "get", "graph", "in", "meta", "method", "module", "output", "placeholder", "return", "symbol"]
)
"""Words of the grammar; as a target they are written as strings."""


def _word(text: str) -> str:
    return text if DOTTED.match(text) and text not in RESERVED else json.dumps(text)


_PLAIN: tuple[type, ...] = (int, float, str, bool, type(None))


def is_plain(value: Any) -> bool:
    """True for what the text form keeps of meta data: numbers, strings and containers of them."""
    if isinstance(value, (tuple, list)):
        return type(value) in (tuple, list) and all(is_plain(v) for v in value)
    if type(value) is dict:
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    return type(value) in _PLAIN
