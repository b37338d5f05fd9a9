"""Backends that only run the captured graph: for tests, for finding out which layer is at fault, and where nothing
compiles.

``interpret`` runs the graph node by node on real arrays, which does what the user's code did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx import Graph, Interpreter, Node
from lamina_fx.symbolic import SymInt

from .output import CaptureContext

__all__ = ["CountingBackend", "SizedInterpreter", "interpret"]


class SizedInterpreter(Interpreter):
    """An interpreter for graphs with symbolic sizes: the sizes of the inputs say what each symbol is."""

    def __init__(self, graph: Graph, resolver: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(graph, resolver)
        self.sizes: dict[Any, int] = {}
        self.entering: Any = None
        """The front end's ``entering(regions)``: a context manager in which a node of these regions runs."""

    def placeholder(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The next input; its sizes are bound to the symbols of its spec."""
        value = super().placeholder(node, args, kwargs)
        for declared, size in zip(getattr(node.spec, "shape", ()), getattr(value, "shape", ()), strict=False):
            if isinstance(declared, SymInt):
                self.sizes[declared.original] = size
                self.sizes[declared.expr] = size
        return value

    def call_function(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call the operator."""
        args, kwargs = self._real(args), self._real(kwargs)
        if node.regions and self.entering is not None:
            with self.entering(node.regions):
                return super().call_function(node, args, kwargs)
        return super().call_function(node, args, kwargs)

    def _real(self, value: Any) -> Any:
        kind = type(value)
        if kind is SymInt:
            return value.expr.evaluate(self.sizes)
        if kind in (tuple, list):
            return kind(self._real(v) for v in value)
        if kind is dict:
            return {k: self._real(v) for k, v in value.items()}
        if kind is slice:
            return slice(self._real(value.start), self._real(value.stop), self._real(value.step))
        return value


def interpret(graph: Graph, inputs: list[Any], context: CaptureContext) -> Callable[..., tuple[Any, ...]]:
    """A backend that runs the graph node by node."""
    resolver = context.frontend.resolve
    symbols = context.captured.symbols

    def run(*values: Any) -> tuple[Any, ...]:
        runner = SizedInterpreter(graph, resolver)
        runner.entering = getattr(context.frontend, "entering", None)
        for position, origin in enumerate(context.captured.inputs):
            for symbol, source in symbols.items():
                if source == origin:
                    runner.sizes[symbol] = values[position]
        return runner.run(*values)

    return run


class CountingBackend:
    """A backend that runs the graph and keeps every graph it was given: ``len(backend.graphs)`` is the number
    compiled.
    """

    def __init__(self, inner: Callable[..., Any] = interpret) -> None:
        self.inner = inner
        self.graphs: list[Graph] = []

    def __call__(self, graph: Graph, inputs: list[Any], context: CaptureContext) -> Callable[..., tuple[Any, ...]]:
        """Count and compile."""
        self.graphs.append(graph)
        return self.inner(graph, inputs, context)
