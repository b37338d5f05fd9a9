"""Reads the text form of a graph; the grammar is in the package's docstring."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from ..device import Device
from ..dtype import DTYPES
from ..graph import Graph
from ..node import Node
from ..spec import Size, Spec
from ..symbolic import Expr, ShapeEnv, Symbol, SymInt, parse_expr
from ..symbolic.symint import SymBool
from .constant import ArrayConstant
from .printer import RESERVED
from .spec_reader import read_spec
from .tokens import NAME, NUMBER, PUNCTUATION, STRING, WORD, ParseError, Tokens

__all__ = ["ParseError", "parse"]

_NODE = re.compile(r"(?:\s+|#[^\n]*)*%(\w+)(?:: ([^\n=]+?))? = ")
_CALL = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\(")
_NODE_ARGUMENT = re.compile(r"%(\w+)(, |\))")
_SOURCE = re.compile(r' at ("(?:[^"\\]|\\.)*"):(\d+) ([A-Za-z_]\w*(?:\.\w+)*|"(?:[^"\\]|\\.)*")')
_REGION = re.compile(r'\s*([A-Za-z_][\w.]*(?::[\w.]+)*|"(?:[^"\\]|\\.)*")\s*(,|\})')

_DTYPES = {d.name: d for d in DTYPES}
_CONSTANTS: dict[str, Any] = {
    "True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan"), **_DTYPES,
}  # fmt: skip


def parse(
    text: str,
    *,
    shape_env: ShapeEnv | None = None,
    array: Callable[[ArrayConstant], Any] | None = None,
) -> Graph:
    """The graph that ``text`` describes.

    Args:
        text: what ``print_graph`` writes.
        shape_env: environment of the symbolic sizes; a symbol that it has keeps its meaning, others are added.
            A new environment by default.
        array: makes an array of an ``ArrayConstant``, such as one of NumPy; by default it stays as it is.

    Raises:
        ParseError: names line and column.
    """
    parser = _Parser(text, ShapeEnv() if shape_env is None else shape_env, array)
    parser.expect("graph")
    graph = parser.graph()
    if parser.next()[0]:
        raise parser.error("expected the end")
    return graph


class _Parser(Tokens):
    """A position in a text, and what has been read so far."""

    def __init__(self, text: str, env: ShapeEnv, array: Callable[[ArrayConstant], Any] | None) -> None:
        super().__init__(text)
        self.env = env
        self.array = array
        self.symbols: dict[str, Symbol] = {s.name: s for s in env.sources}
        self.specs: dict[str, Spec] = {}
        self.nodes: dict[str, Node] = {}

    # -- structure -----------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """Everything behind the word ``graph``."""
        self.expect("{")
        outer, self.nodes = self.nodes, {}
        graph = Graph()
        while True:
            match = _NODE.match(self.text, self.position)
            if match is not None:
                self.start = match.start(1)
                self.position = match.end()
                self.node(graph, match[1], match[2])
                continue
            kind, token = self.next()
            if token == "}" and kind == PUNCTUATION:
                break
            if token == "return":
                graph.output(self.value())
            elif token == "attribute":
                name = self.word()
                self.expect("=")
                graph.attributes[name] = self.value()
            elif token == "symbol":
                self.symbol()
            else:
                raise self.error("expected a node, 'return', 'attribute', 'symbol' or '}'")
        self.nodes = outer
        return graph

    def symbol(self) -> None:
        name = self.word()
        self.expect("in")
        self.expect("[")
        low = None if self.peek() == "," else self.integer()
        self.expect(",")
        text = self.until("]")
        high = None if not text else self.expression(text)
        step = self.integer() if self.take("step") else 1
        hint = self.integer() if self.take("hint") else None
        source = self.word() if self.take("source") else ""
        symbol = Symbol(name, low, high, step)
        known = self.symbols.setdefault(name, symbol)
        if known is symbol:
            self.env.declare(symbol, hint, source)

    def node(self, graph: Graph, name: str, spec: str | None) -> None:
        text = self.text
        match = _CALL.match(text, self.position)
        if name in self.nodes:
            raise self.error(f"a second node {name!r}")
        op, target, args, kwargs = "call_function", "", (), {}
        if match is not None and (word := match[1]) not in ("placeholder", "output"):
            self.position = match.end()
            target = word
            args, kwargs = self.arguments()
        else:
            op, target, args, kwargs = self.other_kind(name)
        node = graph.create_node(op, target, args, kwargs, name=name)
        if spec is not None:
            node.spec = self.spec(spec)
        if node.name != name:
            raise self.error(f"the node name {name!r} is no identifier or taken")
        self.nodes[name] = node
        if not text.startswith("\n", self.position):
            self.tail(node)

    def other_kind(self, name: str) -> tuple[str, str, tuple[Any, ...], dict[str, Any]]:
        kind, word = self.next()
        if kind == STRING:
            self.expect("(")
            return "call_function", json.loads(word), *self.arguments()
        if word == "placeholder":
            target = self.word() if self.text.startswith(" ", self.position) and self.at_word() else name
            if self.text.startswith("(", self.position):
                self.expect("(")
                return "placeholder", target, *self.arguments()
            return "placeholder", target, (), {}
        if word == "get":
            return "get_attr", self.word(), (), {}
        if word == "output":
            self.expect("(")
            return "output", "output", *self.arguments()
        if word in ("method", "module"):
            target = self.word()
            self.expect("(")
            return f"call_{word}", target, *self.arguments()
        raise self.error("expected an operator call, 'placeholder', 'get', 'method', 'module' or 'output'")

    def at_word(self) -> bool:
        """Is a target next, rather than what may follow a node?"""
        token = self.peek()
        return token not in RESERVED and (token[:1].isalpha() or token[:1] in '_"')

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Everything behind ``(``."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        text, nodes = self.text, self.nodes
        while True:
            match = _NODE_ARGUMENT.match(text, self.position)
            if match is not None and not kwargs:  # the usual case, in one step
                self.start = self.position
                node = nodes.get(match[1])
                if node is None:
                    raise self.error(f"no node {match[1]!r} before")
                args.append(node)
                self.position = match.end()
                if match[2] == ")":
                    return tuple(args), kwargs
                continue
            kind, token = self.next()
            if token == ")" and kind == PUNCTUATION:
                return tuple(args), kwargs
            if kind == WORD and text.startswith("=", self.position):
                self.position += 1
                kwargs[token] = self.value()
            elif kwargs:
                raise self.error("a positional argument behind a keyword argument")
            else:
                args.append(self.value_of(kind, token))
            if not self.take(","):
                self.expect(")")
                return tuple(args), kwargs

    def tail(self, node: Node) -> None:
        match = _SOURCE.match(self.text, self.position)
        if match is not None:  # the usual tail, in one step
            file, function = match[1], match[3]
            name = json.loads(function) if function[0] == '"' else function
            node.meta["source"] = (json.loads(file), int(match[2]), name)
            self.position = match.end()
            if self.text.startswith("\n", self.position):
                return
        while True:
            saved = self.position
            _, token = self.next()
            if token == "!":
                node.effect = self.word()
            elif token == "in":
                node.regions = self.regions()
            elif token == "at":
                file = self.word()
                self.expect(":")
                node.meta["source"] = (file, self.integer(), self.word())
            elif token == "meta":
                node.meta.update(self.value())
            else:
                self.position = saved
                return

    def regions(self) -> tuple[str, ...]:
        self.expect("{")
        found: list[str] = []
        while True:
            match = _REGION.match(self.text, self.position)
            if match is None:
                raise self.error("expected a region")
            found.append(json.loads(match[1]) if match[1][0] == '"' else match[1])
            self.position = match.end()
            if match[2] == "}":
                return tuple(found)

    # -- values ----------------------------------------------------------------------------------------

    def value(self) -> Any:
        return self.value_of(*self.next())

    def value_of(self, kind: int, token: str) -> Any:
        if kind == NAME:
            node = self.nodes.get(token[1:])
            if node is None:
                raise self.error(f"no node {token[1:]!r} before")
            return node
        if kind == NUMBER:
            digits = token[1:] if token[0] == "-" else token
            return int(token) if digits.isdigit() else float(token)
        if kind == STRING:
            return json.loads(token)
        if kind == WORD:
            reader = _READERS.get(token)
            if reader is not None and (token == "graph" or self.take("(")):
                return reader(self)
            if token in _CONSTANTS:
                return _CONSTANTS[token]
        elif token == "(":
            return self.items(")")
        elif token == "[":
            return list(self.items("]"))
        elif token == "{":
            return self.dictionary()
        elif token == "...":
            return ...
        raise self.error("expected a value")

    def items(self, close: str) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self.take(close):
            found.append(self.value())
            if not self.take(","):
                self.expect(close)
                break
        return tuple(found)

    def dictionary(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while not self.take("}"):
            key = self.value()
            self.expect(":")
            found[key] = self.value()
            if not self.take(","):
                self.expect("}")
                break
        return found

    def expression(self, text: str) -> Expr:
        try:
            return parse_expr(text, self.symbols)
        except (ValueError, KeyError) as error:
            raise self.error(f"bad size {text!r} ({error})") from None

    def size(self, text: str) -> Size:
        if text.isdigit():
            return int(text)
        expr = self.expression(text)
        return int(expr) if expr.is_constant else SymInt(expr, self.env)  # type: ignore[call-overload]

    def spec(self, text: str) -> Spec:
        known = self.specs.get(text)
        if known is None:
            known = self.specs[text] = read_spec(self, text)
        return known


def _read_slice(p: _Parser) -> slice:
    items = p.items(")")
    if len(items) != 3:
        raise p.error("slice takes three values")
    return slice(*items)


def _read_array(p: _Parser) -> Any:
    dtype, shape, data = p.items(")")
    constant = ArrayConstant(dtype, shape, base64.b64decode(data))
    return constant if p.array is None else p.array(constant)


def _read_sym(p: _Parser) -> Any:
    expr = p.expression(p.until(")"))
    from ..symbolic import BooleanExpr

    return SymBool(expr, p.env) if isinstance(expr, BooleanExpr) else SymInt(expr, p.env)


_READERS: dict[str, Callable[[_Parser], Any]] = {
    "graph": lambda p: p.graph(),
    "slice": _read_slice,
    "complex": lambda p: complex(*p.items(")")),
    "device": lambda p: Device(*p.items(")")),
    "sym": _read_sym,
    "expr": lambda p: p.expression(p.until(")")),
    "spec": lambda p: p.spec(p.until(")")),
    "array": _read_array,
}
