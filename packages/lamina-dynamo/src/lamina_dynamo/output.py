"""The graph that is being captured, and what it becomes: a ``CapturedGraph``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lamina_fx import Graph, Node, Spec
from lamina_fx.symbolic import ShapeEnv, Symbol

from .guard import GuardSet
from .source import Source
from .variables import HostInput

__all__ = ["CaptureContext", "CapturedGraph", "GraphInput", "OutputGraph"]


@dataclass(slots=True)
class GraphInput:
    """An input: its placeholder, where its value is (a source, or a computation of the host), and an example."""

    node: Node
    origin: Source | HostInput
    spec: Spec
    example: Any


@dataclass(frozen=True)
class CapturedGraph:
    """A captured graph with its calling convention.

    ``inputs[i]`` says where the value of placeholder i is; ``outputs`` are the nodes in the result tuple.
    ``symbols`` says where the value of each symbolic size is; sizes that are symbolic stand in arguments and
    specs as ``SymInt``.
    """

    graph: Graph
    inputs: list[Source | HostInput]
    input_specs: list[Spec]
    outputs: list[Node]
    guards: GuardSet
    symbols: dict[Symbol, Source] = field(default_factory=dict)


@dataclass(frozen=True)
class CaptureContext:
    """What a backend is told beside the graph: the sizes' environment, the front end, the modes at entry, the
    user's function.
    """

    captured: CapturedGraph
    shape_env: ShapeEnv
    frontend: Any
    modes: dict[str, Any]
    function: str

    def __str__(self) -> str:
        """A name for what is compiled: the user's function."""
        return _identifier(self.function)


Backend = Callable[[Graph, list[Any], CaptureContext], Callable[..., tuple[Any, ...]]]
"""``compile_graph(graph, example_inputs, context) -> callable(*inputs) -> tuple of outputs``."""


class OutputGraph:
    """The graph under construction. Inputs are made when a value is first wrapped; those without users go at the
    end.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.inputs: list[GraphInput] = []
        self._last_input: Node | None = None
        self.operators = 0

    def add_input(self, origin: Source | HostInput, name: str, spec: Spec, example: Any) -> Node:
        """A placeholder; placeholders stand before all other nodes."""
        name = _identifier(name)
        graph = self.graph
        if self._last_input is not None:
            with graph.inserting_after(self._last_input):
                node = graph.placeholder(name, spec=spec)
        else:
            node = graph.placeholder(name, spec=spec)
        node.regions = ()
        self._last_input = node
        self.inputs.append(GraphInput(node, origin, spec, example))
        return node

    def call(
        self, id: str, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec, effect: str | None,
        regions: tuple[str, ...], line: tuple[str, int, str],
    ) -> Node:  # fmt: skip
        """A node that calls an operator."""
        self.operators += 1
        node = self.graph.call_function(id, args, kwargs, spec=spec, effect=effect)
        node.regions = regions
        node.meta["source"] = line
        return node

    def drop_dead(self, keep: list[Node]) -> None:
        """Remove nodes without users or effect, then inputs without users (but never a kept one)."""
        kept = set(keep)
        for node in list(reversed(self.graph.nodes)):
            if node.users or node in kept or node.effect is not None or node.op == "placeholder":
                continue
            self.graph.erase_node(node)
        for entry in list(self.inputs):
            if not entry.node.users and entry.node not in kept:
                self.graph.erase_node(entry.node)
                self.inputs.remove(entry)

    def finish(self, outputs: list[Node]) -> Graph:
        """Prune, write the output node, return the graph."""
        self.drop_dead(outputs)
        self.graph.output(tuple(outputs))
        return self.graph

    @property
    def is_empty(self) -> bool:
        """True when nothing would be computed."""
        return all(node.op == "placeholder" for node in self.graph.nodes)


def _identifier(text: str) -> str:
    """``L['self'].weight`` as ``self_weight``."""
    text = re.sub(r"^[LGC]\['(\w+)'\]", r"\1", text)
    name = re.sub(r"\W+", "_", text).strip("_") or "x"
    return f"_{name}" if name[0].isdigit() else name
