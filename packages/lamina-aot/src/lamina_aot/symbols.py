"""Where the values of symbolic sizes come from when a compiled graph is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lamina_fx import Graph, Node, ScalarSpec, Spec, TensorSpec
from lamina_fx.symbolic import SymInt

__all__ = ["SizeReader", "free_symbols", "size_reader"]


@dataclass(frozen=True, slots=True)
class SizeReader:
    """Reads symbols off inputs: ``places`` maps a symbol to (input index, dimension), or (index, None) for a number."""

    places: dict[Any, tuple[int, int | None]]

    def __call__(self, inputs: Sequence[Any], size: Any) -> Any:
        """The integer value of a size that may be symbolic."""
        expr = getattr(size, "expr", None)
        if expr is None:
            return size
        return expr.evaluate({symbol: self.value(inputs, symbol) for symbol in expr.free_symbols})

    def everywhere(self, inputs: Sequence[Any], value: Any) -> Any:
        """Nested arguments with integers for the symbolic sizes in them."""
        if isinstance(value, tuple | list):
            return type(value)(self.everywhere(inputs, item) for item in value)
        if isinstance(value, dict):
            return {name: self.everywhere(inputs, item) for name, item in value.items()}
        return self(inputs, value)

    def value(self, inputs: Sequence[Any], symbol: Any) -> int:
        """The value of one symbol."""
        index, dim = self.places[symbol]
        return inputs[index] if dim is None else inputs[index].shape[dim]


def size_reader(graph: Graph) -> SizeReader:
    """The reader for a graph's placeholders: each symbol at its first plain appearance."""
    places: dict[Any, tuple[int, int | None]] = {}
    for index, node in enumerate(graph.placeholders):
        for dim, expr in _plain(node.spec):
            places.setdefault(expr, (index, dim))
    return SizeReader(places)


def _plain(spec: Spec) -> Iterator[tuple[int | None, Any]]:
    """(dimension, symbol) where a size is a symbol and nothing else."""
    if isinstance(spec, TensorSpec):
        for dim, size in enumerate(spec.shape):
            expr = getattr(size, "expr", None)
            if expr is not None and tuple(expr.free_symbols) == (expr,):
                yield dim, expr
    elif isinstance(spec, ScalarSpec):
        expr = getattr(spec.value, "expr", None)
        if expr is not None and tuple(expr.free_symbols) == (expr,):
            yield None, expr


def free_symbols(nodes: Iterable[Node]) -> dict[Any, Any]:
    """The symbols in the specs and arguments of these nodes, each with a size (SymInt) that holds it alone."""
    found: dict[Any, Any] = {}
    for node in nodes:
        for value in _values((node.args, node.kwargs, node.spec)):
            expr = getattr(value, "expr", None)
            if expr is not None:
                for symbol in sorted(expr.free_symbols, key=str):
                    found.setdefault(symbol, SymInt(symbol, value.env))
    return found


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, dict):
        yield from _values(tuple(value.values()))
    elif isinstance(value, TensorSpec):
        yield from value.shape
        yield from value.strides
    elif isinstance(value, ScalarSpec):
        yield value.value
    elif not isinstance(value, Node):
        yield value
