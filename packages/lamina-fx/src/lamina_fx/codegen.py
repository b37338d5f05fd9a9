"""A graph as readable Python that runs.

>>> from lamina_fx import parse
>>> g = parse('graph { %x: float32[2] = placeholder  %add: float32[2] = add(%x, 1)  return (%add, %x) }')
>>> print(python_code(g).source)
def forward(self, x):  # float32[2]
    add = ops.add(x, 1)  # float32[2]
    return (add, x)

``ops`` gives the callable of an operator id, ``self`` has the graph's attributes.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import itertools
import keyword
import linecache
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .dtype import DType
from .expect import expect
from .graph import Graph
from .interpreter import Resolver, last_uses
from .node import Node
from .spec import ScalarSpec, Spec, TensorSpec
from .symbolic import Expr, Symbol, SymInt, to_python
from .text.printer import format_spec

__all__ = ["Operators", "PythonCode", "compile_python", "python_code"]

_PLAIN = (int, str, bool, type(None), type(...))
_RESERVED = frozenset(("self", "ops", "min", "max", "dtype", "_slice", "_getattr", *keyword.kwlist))
_counter = itertools.count()


class PythonCode(NamedTuple):
    """Source of one function, and the constants that it names."""

    source: str
    constants: dict[str, Any]


class Operators:
    """``ops.add`` or ``ops["add.alpha"]``: the callable of an id; asked for once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def __getattr__(self, id: str) -> Callable[..., Any]:
        if id[:2] == "__":
            raise AttributeError(id)
        try:
            found = self._resolver(id)
        except KeyError as error:
            raise AttributeError(error.args[0] if error.args else id) from None
        setattr(self, id, found)
        return found

    def __getitem__(self, id: str) -> Callable[..., Any]:
        return getattr(self, id)


class _DTypes:
    def __getattr__(self, name: str) -> DType:
        from .dtype import dtype_of  # a name of this module would be one of these

        return dtype_of(name)


def python_code(graph: Graph, *, name: str = "forward", free: bool = False) -> PythonCode:
    """The Python of a graph.

    Args:
        graph: what to write.
        name: of the function.
        free: delete values after their last use.
    """
    expect("python_code", graph, Graph, "a Graph")
    writer = _Writer(graph, free)
    lines = list(writer.lines(name))
    return PythonCode("\n".join(lines), writer.constants)


def compile_python(
    graph: Graph, resolver: Resolver, *, name: str = "forward", free: bool = True
) -> tuple[Callable[..., Any], PythonCode]:
    """The function of a graph, and its source; tracebacks show the source's lines."""
    code = python_code(graph, name=name, free=free)
    file = f"<lamina_fx graph {next(_counter)}>"
    text = code.source + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"ops": Operators(resolver), "dtype": _DTypes(), "_slice": slice, "_getattr": getattr}
    scope.update(code.constants)
    exec(compile(text, file, "exec"), scope)
    return scope[name], code


class _Writer:
    def __init__(self, graph: Graph, free: bool) -> None:
        self.graph = graph
        self.constants: dict[str, Any] = {}
        self.dead = last_uses(graph) if free else {}
        self.names: dict[Node, str] = {}
        taken = set(_RESERVED)
        for node in graph.nodes:
            chosen = node.name
            while chosen in taken:
                chosen += "_"
            taken.add(chosen)
            self.names[node] = chosen
        self.taken = taken
        self.sizes: dict[Expr, str] = {}

    def lines(self, name: str) -> Iterator[str]:
        yield from self.header(name)
        yield from self.size_lines()
        source = None
        body = False
        for node in self.graph.nodes:
            if node.op == "placeholder":
                continue
            body = True
            here = node.meta.get("source")
            if here is not None and here != source:
                source = here
                yield f"    # {_user_line(*here)}"
            yield "    " + self.statement(node)
        if not body:
            yield "    pass"

    def header(self, name: str) -> Iterator[str]:
        inputs = self.graph.placeholders
        parts: list[str] = []
        for p in inputs:
            if not p.args and parts and "=" in parts[-1] and "*" not in parts:
                parts.append("*")  # without a default behind one with: by keyword only
            parts.append(self.names[p] + (f"={self.value(p.args[0])}" if p.args else ""))
        line = f"def {name}({', '.join(['self', *parts])}):"
        known = [p for p in inputs if p.spec is not None]
        if len(inputs) == 1 and known:
            line += f"  # {format_spec(inputs[0].spec)}"
        yield line
        if len(inputs) > 1:
            yield from [f"    # {self.names[p]}: {format_spec(p.spec)}" for p in known]

    def size_lines(self) -> Iterator[str]:
        """Read the symbols that the arguments of calls need from the inputs' shapes."""
        needed = {s for node in self.graph.nodes for s in _symbols((node.args, node.kwargs))}
        for node in self.graph.placeholders:
            name = self.names[node]
            spec = node.spec
            if isinstance(spec, TensorSpec):
                found = [(size, f"{name}.shape[{i}]") for i, size in enumerate(spec.shape)]
            else:
                found = [(spec.value, name)] if isinstance(spec, ScalarSpec) else []
            for size, text in found:
                symbol = size.expr if isinstance(size, SymInt) else None
                if isinstance(symbol, Symbol) and symbol in needed and symbol not in self.sizes:
                    chosen = symbol.name
                    while chosen in self.taken:
                        chosen += "_"
                    self.taken.add(chosen)
                    self.sizes[symbol] = chosen
                    yield f"    {chosen} = {text}"

    def statement(self, node: Node) -> str:
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        text = f"{self.names[node]} = {self.expression(node)}"
        dead = [self.names[n] for n in self.dead.get(node, ()) if n is not node]
        if dead:
            text += f"; del {', '.join(dead)}"
        return text + self.comment(node.spec, node)

    def comment(self, spec: Spec, node: Node) -> str:
        parts = [] if spec is None else [format_spec(spec)]
        if node.effect is not None:
            parts.append(f"effect: {node.effect}")
        if node.regions:
            parts.append(f"in {', '.join(node.regions)}")
        return f"  # {'; '.join(parts)}" if parts else ""

    def expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return self.attribute(node.target)
        if node.op == "call_module":
            return f"{self.attribute(node.target)}({self.arguments(node.args, node)})"
        if node.op == "call_method":
            return f"{self.value(node.args[0])}.{node.target}({self.arguments(node.args[1:], node)})"
        if node.target == "getitem" and len(node.args) == 2:
            return f"{self.value(node.args[0])}[{self.value(node.args[1])}]"
        if node.target == "getattr" and len(node.args) == 2:
            return f"{self.value(node.args[0])}.{node.args[1]}"
        plain = node.target.isidentifier() and not keyword.iskeyword(node.target) and node.target[:2] != "__"
        function = f"ops.{node.target}" if plain else f"ops[{node.target!r}]"
        return f"{function}({self.arguments(node.args, node)})"

    def attribute(self, path: str) -> str:
        if all(part.isidentifier() and not keyword.iskeyword(part) for part in path.split(".")):
            return f"self.{path}"
        return f"self.attribute({path!r})"

    def arguments(self, args: tuple[Any, ...], node: Node) -> str:
        parts = [self.value(a) for a in args]
        parts += [f"{key}={self.value(v)}" for key, v in node.kwargs.items()]
        return ", ".join(parts)

    def value(self, value: Any) -> str:
        kind = type(value)
        if kind is Node:
            return self.names[value]
        if kind in _PLAIN:
            return "..." if value is ... else repr(value)
        if kind is float and repr(value) not in ("inf", "-inf", "nan"):
            return repr(value)
        if kind is tuple:
            items = ", ".join([self.value(v) for v in value])
            return f"({items},)" if len(value) == 1 else f"({items})"
        if kind is list:
            return f"[{', '.join([self.value(v) for v in value])}]"
        if kind is dict:
            return "{" + ", ".join([f"{self.value(k)}: {self.value(v)}" for k, v in value.items()]) + "}"
        if kind is slice:
            return f"_slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if kind is DType:
            return f"dtype.{value.name}"
        if kind is SymInt and value.expr.free_symbols <= self.sizes.keys():
            return to_python(value.expr, self.sizes)  # type: ignore[arg-type]
        return self.constant(value)

    def constant(self, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"_{type(value).__name__.lower()}{len(self.constants)}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.constants[name] = value
        return name


def _symbols(value: Any) -> Iterator[Symbol]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _symbols(item)
    elif isinstance(value, dict):
        yield from _symbols(list(value.values()))
    elif isinstance(value, slice):
        yield from _symbols((value.start, value.stop, value.step))
    elif isinstance(value, SymInt):
        yield from value.expr.free_symbols


def _user_line(file: str, line: int, function: str) -> str:
    text = linecache.getline(file, line).strip()
    return f"{file}:{line} in {function}" + (f": {text}" if text else "")
