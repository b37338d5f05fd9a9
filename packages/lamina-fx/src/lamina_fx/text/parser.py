"""Reads the text form of a graph; the grammar is in the package's docstring."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from ..device import CPU, Device
from ..dtype import DTYPES
from ..graph import Graph
from ..node import Node
from ..spec import ScalarSpec, Size, Spec, TensorSpec
from ..symbolic import Expr, ShapeEnv, Symbol, SymInt, parse_expr
from ..symbolic.symint import SymBool
from .constant import ArrayConstant

__all__ = ["ParseError", "parse"]

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_TOKEN = re.compile(
    r"(?:\s+|#[^\n]*)*(?:(%\w+)|([A-Za-z_]\w*(?:\.\w+)*)|(-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf\b|nan\b))|"
    r'("(?:[^"\\]|\\.)*")|(\.\.\.|[-(){}\[\],:=!@?]))'
)
_NODE = re.compile(r"(?:\s+|#[^\n]*)*%(\w+)(?:: ([^\n=]+?))? = ")
_CALL = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\(")
_NODE_ARGUMENT = re.compile(r"%(\w+)(, |\))")
_REGION = re.compile(r'\s*([A-Za-z_][\w.]*(?::[\w.]+)*|"(?:[^"\\]|\\.)*")\s*(,|\})')
_NAME, _WORD, _NUMBER, _STRING, _PUNCTUATION = 1, 2, 3, 4, 5

_DTYPES = {d.name: d for d in DTYPES}
_KINDS = {"bool": bool, "int": int, "float": float, "complex": complex}
_CONSTANTS: dict[str, Any] = {
    "True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan"), **_DTYPES,
}  # fmt: skip


class ParseError(ValueError):
    """The text is no graph; the message has line, column and the text there."""


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
    parser.expect_word("graph")
    graph = parser.graph()
    if parser.next()[0]:
        raise parser.error("expected the end")
    return graph


class _Parser:
    def __init__(self, text: str, env: ShapeEnv, array: Callable[[ArrayConstant], Any] | None) -> None:
        self.text = text
        self.env = env
        self.array = array
        self.position = 0
        self.start = 0
        self.symbols: dict[str, Symbol] = {s.name: s for s in env.sources}
        self.specs: dict[str, Spec] = {}
        self.nodes: dict[str, Node] = {}

    # -- tokens --------------------------------------------------------------------------------------

    def next(self) -> tuple[int, str]:
        """The next token as (kind, text); (0, "") at the end."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            space = _SPACE.match(self.text, self.position)
            self.start = space.end() if space else self.position
            if self.start < len(self.text):
                raise self.error("cannot read")
            return 0, ""
        kind = match.lastindex or 0
        self.start = match.start(kind)
        self.position = match.end()
        return kind, match[kind]

    def peek(self) -> str:
        saved = self.position
        _, text = self.next()
        self.position = saved
        return text

    def take(self, token: str) -> bool:
        """Skip ``token`` if it comes next."""
        saved = self.position
        if self.next()[1] == token:
            return True
        self.position = saved
        return False

    def expect(self, token: str) -> None:
        if self.next()[1] != token:
            raise self.error(f"expected {token!r}")

    expect_word = expect

    def error(self, message: str) -> ParseError:
        line = self.text.count("\n", 0, self.start) + 1
        column = self.start - self.text.rfind("\n", 0, self.start)
        rest = self.text[self.start : self.start + 30].partition("\n")[0]
        return ParseError(f"line {line}, column {column}: {message} at {rest!r}")

    def word(self) -> str:
        kind, text = self.next()
        if kind == _WORD:
            return text
        if kind == _STRING:
            return json.loads(text)
        raise self.error("expected a name")

    def integer(self) -> int:
        kind, text = self.next()
        if kind != _NUMBER or not text.lstrip("-").isdigit():
            raise self.error("expected an integer")
        return int(text)

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
            if token == "}" and kind == _PUNCTUATION:
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
        if kind == _STRING:
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
        return token not in ("in", "at", "meta", "!", "return", "}") and (token[:1].isalpha() or token[:1] in '_"')

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
            if token == ")" and kind == _PUNCTUATION:
                return tuple(args), kwargs
            if kind == _WORD and text.startswith("=", self.position):
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
                node.meta["source"] = (file, self.integer(), self.function())
            elif token == "meta":
                node.meta.update(self.value())
            else:
                self.position = saved
                return

    def function(self) -> str:
        return self.word()

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
        if kind == _NAME:
            node = self.nodes.get(token[1:])
            if node is None:
                raise self.error(f"no node {token[1:]!r} before")
            return node
        if kind == _NUMBER:
            digits = token[1:] if token[0] == "-" else token
            return int(token) if digits.isdigit() else float(token)
        if kind == _STRING:
            return json.loads(token)
        if kind == _WORD:
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

    def until(self, close: str) -> str:
        """The text up to the ``close`` that matches, which is skipped."""
        depth = 0
        for index in range(self.position, len(self.text)):
            char = self.text[index]
            if char == close and depth == 0:
                found = self.text[self.position : index].strip()
                self.position = index + 1
                return found
            depth += (char in "([") - (char in ")]")
        self.start = self.position
        raise self.error(f"no {close!r} follows")

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
            known = self.specs[text] = _SpecReader(self, text).read()
        return known


class _SpecReader:
    """Reads one spec; equal texts give one object."""

    def __init__(self, parser: _Parser, text: str) -> None:
        self.parser = parser
        self.text = text.strip()
        self.position = 0

    def read(self) -> Spec:
        spec = self.spec()
        if self.text[self.position :].strip():
            raise self.error()
        return spec

    def error(self) -> ParseError:
        return self.parser.error(f"bad spec {self.text!r} at {self.text[self.position :]!r}")

    def spec(self) -> Spec:
        text = self.text
        if text.startswith("?", self.position):
            self.position += 1
            return None
        if text.startswith("(", self.position):
            self.position += 1
            return self.several()
        match = _SPEC_HEAD.match(text, self.position)
        if match is None:
            raise self.error()
        word = match[1]
        self.position = match.end()
        if word in _DTYPES and text.startswith("[", self.position):
            return self.tensor(word)
        if word not in _KINDS:
            raise self.error()
        if not text.startswith("(", self.position):
            return ScalarSpec(_KINDS[word])
        inner = self.group("(", ")")
        saved = self.parser.text, self.parser.position
        self.parser.text, self.parser.position = inner, 0
        value = self.parser.value()
        self.parser.text, self.parser.position = saved
        return ScalarSpec(_KINDS[word], value)

    def several(self) -> Spec:
        found: list[Spec] = []
        while not self.text.startswith(")", self.position):
            found.append(self.spec())
            while self.text.startswith((",", " "), self.position):
                self.position += 1
            if self.position >= len(self.text):
                raise self.error()
        self.position += 1
        return tuple(found)

    def tensor(self, dtype: str) -> TensorSpec:
        shape = self.sizes(self.group("[", "]"))
        strides = None
        if self.text.startswith("@(", self.position):
            self.position += 1
            strides = self.sizes(self.group("(", ")"))
            if len(strides) != len(shape):
                raise self.error()
        device = CPU
        match = _SPEC_DEVICE.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            device = Device(match[1])
        return TensorSpec(shape, _DTYPES[dtype], strides, device)

    def group(self, opening: str, close: str) -> str:
        depth = 0
        for index in range(self.position, len(self.text)):
            depth += (self.text[index] == opening) - (self.text[index] == close)
            if depth == 0:
                found = self.text[self.position + 1 : index]
                self.position = index + 1
                return found
        raise self.error()

    def sizes(self, text: str) -> tuple[Size, ...]:
        parts, depth, start = [], 0, 0
        for index, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                parts.append(text[start:index])
                start = index + 1
        if text[start:].strip():
            parts.append(text[start:])
        return tuple([self.parser.size(p.strip()) for p in parts])


_SPEC_HEAD = re.compile(r"(\w+)")
_SPEC_DEVICE = re.compile(r" ((?:cpu|cuda|meta)(?::\d+)?)")


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
