"""Captured programs for the tests, written as text, and what runs their compiled halves: the operators themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lamina_tensor
from lamina_aot import Executable
from lamina_fx import Graph, Interpreter, TensorSpec, float32
from lamina_prims import operator


def graph_of(build: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    """``build(graph, *placeholders)`` writes nodes and returns the results."""
    graph = Graph()
    inputs = [graph.placeholder(f"a{k}", spec=TensorSpec(shape, float32)) for k, shape in enumerate(shapes)]
    graph.output(tuple(build(graph, *inputs)))
    return graph


def run_by_operators(graph: Graph, name: str) -> Executable:
    """An executable that runs the graph's operators on tensors."""

    def execute(*inputs: Any) -> Sequence[Any]:
        with lamina_tensor.no_grad():
            return Interpreter(graph, operator).run(*inputs)

    return execute


class Recorder:
    """Keeps the graphs it is shown."""

    def __init__(self) -> None:
        self.graphs: dict[str, Graph] = {}

    def __call__(self, stage: str, graph: Graph) -> None:
        self.graphs[stage] = graph
