"""From a captured graph to something callable: trace, partition, compile the halves.

compiled = compile_captured(graph, example_inputs, compile_graph)
results = compiled(*inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lamina_fx import Graph
from lamina_fx.expect import expect, wrong_kind

from .checkpoint import recompute_checkpoints
from .partition import inputs_of_backward, partition
from .recompute import recompute_cheap
from .runtime import CompiledGraph, CompileGraph, Executable
from .second import gradient_graph
from .symbols import size_reader
from .trace import trace_joint

__all__ = ["compile_captured"]

Observer = Callable[[str, Graph], None]


def compile_captured(
    captured: Graph,
    inputs: Sequence[Any],
    compile_graph: CompileGraph,
    *,
    memory_budget: float = 1.0,
    name: str = "graph",
    observe: Observer = lambda stage, graph: None,
) -> CompiledGraph:
    """Compile a captured graph for inputs like these.

    ``compile_graph(graph, name)`` compiles a functional core-level graph. ``observe(stage, graph)`` is shown the
    joint graph and the halves. The backward half is compiled at the first backward.

    Raises:
        What the captured program raises on such inputs (shape and dtype errors, at the user's line).
    """
    expect("compile_captured", captured, Graph, "a Graph")
    if not callable(compile_graph):
        raise wrong_kind("compile_captured", compile_graph, "a function compile_graph(graph, name)")
    joint = trace_joint(captured, inputs)
    saved = inputs_of_backward(joint)
    recompute_checkpoints(joint)
    recompute_cheap(joint)
    observe("joint", joint.graph)
    halves = partition(joint, memory_budget) if joint.has_backward else None
    forward_graph = halves.forward if halves is not None else joint.graph
    if halves is not None:
        observe("forward", halves.forward)
        observe("backward", halves.backward)

    def compile_backward() -> Executable:
        assert halves is not None
        return compile_graph(halves.backward, f"{name}_backward")

    def compile_second(arguments: Sequence[Any]) -> Executable:
        graph = gradient_graph(captured, joint)
        return compile_captured(graph, arguments, compile_graph, memory_budget=memory_budget, name=f"{name}_grad")

    return CompiledGraph(
        joint,
        halves,
        compile_graph(forward_graph, name),
        compile_backward,
        compile_second,
        size_reader(joint.graph),
        saved,
    )
