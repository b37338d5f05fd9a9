"""The nodes of a graph as a sequence that may change while it is walked."""

# pyright: reportPrivateUsage=false
# (graph, node and list are one data structure)

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .node import Node

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["NodeList"]


class NodeList:
    """A live view of a graph's nodes."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._next
        while node is not root:
            following = node._next
            if node.op != "erased":
                yield node
            node = following if node.op == "erased" else node._next

    def __reversed__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._prev
        while node is not root:
            before = node._prev
            if node.op != "erased":
                yield node
            node = before if node.op == "erased" else node._prev
