"""A graph as a picture, in Graphviz' language.

>>> from lamina_fx import parse
>>> g = parse("graph { %x = placeholder  %neg = neg(%x)  return %neg }")
>>> print(to_dot(g))
digraph graph_0 {
  node [shape=box, style="rounded,filled", fontname="monospace", fillcolor="white"];
  x [label="x", fillcolor="#d8e8f8"];
  neg [label="neg"];
  x -> neg;
  output [label="output", fillcolor="#f8e0d0"];
  neg -> output;
}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .expect import expect
from .graph import Graph
from .node import Node, iter_nodes
from .text.printer import format_spec, format_value

__all__ = ["to_dot"]

_COLOURS = {"placeholder": "#d8e8f8", "get_attr": "#e8e8e8", "output": "#f8e0d0"}


def to_dot(graph: Graph, *, name: str = "graph_0") -> str:
    """Graphviz source: one box a node with its spec and constants; effects have a bold border; regions are clusters."""
    expect("to_dot", graph, Graph, "a Graph")
    lines = [f"digraph {name} {{"]
    lines.append('  node [shape=box, style="rounded,filled", fontname="monospace", fillcolor="white"];')
    for node in graph.nodes:
        lines.extend(_node_lines(node))
    lines.extend(_clusters(graph))
    lines.append("}")
    return "\n".join(lines)


def _node_lines(node: Node) -> Iterator[str]:
    options = [f"label={_quote(_label(node))}"]
    if node.op in _COLOURS:
        options.append(f'fillcolor="{_COLOURS[node.op]}"')
    if node.effect is not None:
        options.append("penwidth=3")
    yield f"  {node.name} [{', '.join(options)}];"
    for used in dict.fromkeys(iter_nodes((node.args, node.kwargs))):
        yield f"  {used.name} -> {node.name};"


def _label(node: Node) -> str:
    text = node.name if node.op in ("placeholder", "output") else node.target
    constants = [_short(a) for a in node.args if not any(True for _ in iter_nodes(a))]
    constants += [f"{k}={_short(v)}" for k, v in node.kwargs.items() if not any(True for _ in iter_nodes(v))]
    if constants and node.op.startswith("call"):
        text += f"({', '.join(constants)})"
    if node.effect is not None:
        text += f" !{node.effect}"
    return text if node.spec is None else f"{text}\n{format_spec(node.spec)}"


def _short(value: Any) -> str:
    text = "graph" if isinstance(value, Graph) else format_value(value, strict=False)
    return text if len(text) <= 40 else text[:37] + "..."


def _clusters(graph: Graph) -> Iterator[str]:
    members: dict[str, list[str]] = {}
    for node in graph.nodes:
        if node.regions:
            members.setdefault(" / ".join(node.regions), []).append(node.name)
    for index, (region, names) in enumerate(members.items()):
        yield f"  subgraph cluster_{index} {{ label={_quote(region)}; {'; '.join(names)}; }}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
