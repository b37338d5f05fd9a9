"""The gradients of a captured program as a program of their own, to be differentiated again.

It replays the captured nodes and then differentiates with a history: what the program hides from gradients
(``detach``, ``no_grad``) stays hidden in higher derivatives. Inputs that the program writes are written in copies.
"""

from __future__ import annotations

from lamina_fx import Graph, Node
from lamina_fx.expect import expect
from lamina_prims import operator

from .joint import JointGraph
from .partition import ancestors, extract
from .replay import touches_gradients

__all__ = ["gradient_graph"]


def gradient_graph(captured: Graph, joint: JointGraph) -> Graph:
    """A graph of the inputs of ``captured`` and the tangents of ``joint`` that returns the gradients of ``joint``."""
    expect("gradient_graph", captured, Graph, "a Graph")
    expect("gradient_graph", joint, JointGraph, "a JointGraph (trace_joint gives one)")
    program = None if touches_gradients(captured) else _gradient_program(captured, joint)
    return program or _differentiated_joint(joint)


def _gradient_program(captured: Graph, joint: JointGraph) -> Graph | None:
    """None where a differentiated value is no node of the captured graph."""
    outputs = [info for info in joint.outputs if info.tangent is not None]
    if any(info.node is None for info in outputs):
        return None
    graph = Graph()
    graph.attributes = dict(captured.attributes)
    mapping: dict[Node, Node] = {n: graph.placeholder(n.target, spec=n.spec) for n in captured.placeholders}
    inputs = list(mapping.values())
    tangents = [graph.placeholder(n.name, spec=n.spec) for n in joint.tangents]
    for k in sorted(joint.overwritten):
        spec = operator("clone").infer((inputs[k].spec,), {})
        mapping[captured.placeholders[k]] = graph.call_function("clone", (inputs[k],), spec=spec)
    for node in captured.nodes:
        if node.op not in ("placeholder", "output"):
            mapping[node] = graph.node_copy(node, mapping.__getitem__)
    final = {"input": inputs, "rebased": [mapping[node] for node in captured.placeholders]}
    roots = {info.tangent: mapping[info.node] for info in outputs if info.node is not None}
    rebased = [step.rebased for step in joint.backward_steps if step.rebased is not None]
    results: list[Node] = []
    for step in joint.backward_steps:
        wanted = [final[kind][k] for kind, k, _ in step.gradients]
        stops = [final["rebased"][k] for k in rebased if k != step.rebased]
        arguments = ([roots[t] for t in step.tangents], wanted, [tangents[t] for t in step.tangents], stops)
        specs = tuple(node.spec for node in wanted)
        options = {"create_graph": True}
        found = graph.call_function("autograd.grad_until", arguments, options, spec=specs, effect="grad")
        results += [graph.call_function("getitem", (found, k), spec=spec) for k, spec in enumerate(specs)]
    graph.output(tuple(results))
    return graph


def _differentiated_joint(joint: JointGraph) -> Graph:
    """The part of the joint graph that computes the gradients."""
    gradients = [r for r in joint.results[joint.forward_count :] if isinstance(r, Node)]
    inputs = [*joint.graph.placeholders[: len(joint.inputs)], *joint.tangents]
    return extract(joint, inputs, ancestors(gradients), joint.results[joint.forward_count :])
