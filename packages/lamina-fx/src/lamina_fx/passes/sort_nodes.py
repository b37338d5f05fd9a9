"""Put nodes into an order in which each stands behind what it uses.

>>> from lamina_fx import Graph
>>> g = Graph()
>>> x = g.placeholder("x")
>>> with g.inserting_before(x):
...     late = g.call_function("neg", (x,))
>>> _ = g.output(late)
>>> [n.name for n in sort_nodes(g).nodes]
['x', 'neg', 'output']
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..graph import Graph
from ..node import Node

__all__ = ["sort_nodes"]


def sort_nodes(graph: Graph) -> Graph:
    """Order the nodes by dependence, otherwise as they stand: placeholders first, effects in their order.

    Raises:
        ValueError: nodes depend on each other in a circle; names them.
    """
    order: list[Node] = []
    done: set[Node] = set()
    before: dict[Node, Node] = {}
    effects = [n for n in graph.nodes if n.effect is not None]
    for earlier, later in itertools.pairwise(effects):
        before[later] = earlier
    for start in [*graph.placeholders, *[n for n in graph.nodes if n.op not in ("placeholder", "output")]]:
        if start not in done:
            _visit(start, order, done, before)
    graph.reorder([*order, *[n for n in graph.nodes if n.op == "output"]])
    return graph


def _visit(start: Node, order: list[Node], done: set[Node], before: dict[Node, Node]) -> None:
    """Append to ``order`` what ``start`` needs, then ``start``."""

    def needs(node: Node) -> Iterator[Node]:
        earlier = before.get(node)
        return iter(node.all_input_nodes if earlier is None else [*node.all_input_nodes, earlier])

    open_ = {start}
    stack = [(start, needs(start))]
    while stack:
        node, inputs = stack[-1]
        below = next((n for n in inputs if n not in done), None)
        if below is not None:
            if below in open_:
                names = ", ".join(n.name for n, _ in stack)
                raise ValueError(f"the nodes {names} depend on each other in a circle")
            open_.add(below)
            stack.append((below, needs(below)))
            continue
        stack.pop()
        open_.discard(node)
        done.add(node)
        order.append(node)
