"""Maximum flow by Dinic's algorithm, and the minimum cut that it proves.

Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation" (1970).
An own version because networkx takes seconds on the graphs of a whole model (see docs/adr).

>>> net = Network(4)
>>> for u, v, c in [(0, 1, 3), (0, 2, 2), (1, 3, 2), (2, 3, 4)]:
...     net.add(u, v, c)
>>> net.maximum_flow(0, 3), sorted(net.source_side(0))
(4, [0, 1])
"""

from __future__ import annotations

__all__ = ["INFINITE", "Network"]

INFINITE = 1 << 60
"""A capacity that no cut pays."""


class Network:
    """A directed network over vertices 0 .. count-1 with integer capacities."""

    def __init__(self, count: int) -> None:
        self._head: list[list[int]] = [[] for _ in range(count)]
        self._to: list[int] = []
        self._capacity: list[int] = []

    def add(self, source: int, target: int, capacity: int) -> None:
        """Add an edge. Parallel edges add up."""
        self._head[source].append(len(self._to))
        self._to.append(target)
        self._capacity.append(capacity)
        self._head[target].append(len(self._to))
        self._to.append(source)
        self._capacity.append(0)

    def maximum_flow(self, source: int, sink: int) -> int:
        """Push as much as possible from ``source`` to ``sink``; returns the amount (>= INFINITE: no finite cut)."""
        total = 0
        while total < INFINITE:
            level = self._levels(source, sink)
            if level is None:
                return total
            following = [0] * len(self._head)
            while amount := self._augment(source, sink, level, following):
                total += amount
        return total

    def source_side(self, source: int) -> set[int]:
        """After ``maximum_flow``: the vertices on the source's side of a minimum cut."""
        seen = {source}
        stack = [source]
        while stack:
            for edge in self._head[stack.pop()]:
                target = self._to[edge]
                if self._capacity[edge] > 0 and target not in seen:
                    seen.add(target)
                    stack.append(target)
        return seen

    def _levels(self, source: int, sink: int) -> list[int] | None:
        level = [-1] * len(self._head)
        level[source] = 0
        queue = [source]
        for vertex in queue:
            for edge in self._head[vertex]:
                target = self._to[edge]
                if self._capacity[edge] > 0 and level[target] < 0:
                    level[target] = level[vertex] + 1
                    queue.append(target)
        return level if level[sink] >= 0 else None

    def _augment(self, source: int, sink: int, level: list[int], following: list[int]) -> int:
        """One path along rising levels, found without recursion (graphs are thousands of vertices deep)."""
        path: list[int] = []
        vertex = source
        while vertex != sink:
            edges = self._head[vertex]
            while following[vertex] < len(edges):
                edge = edges[following[vertex]]
                target = self._to[edge]
                if self._capacity[edge] > 0 and level[target] == level[vertex] + 1:
                    path.append(edge)
                    vertex = target
                    break
                following[vertex] += 1
            else:
                if vertex == source:
                    return 0
                level[vertex] = -1
                edge = path.pop()
                vertex = self._to[edge ^ 1]
        amount = min(self._capacity[edge] for edge in path)
        for edge in path:
            self._capacity[edge] -= amount
            self._capacity[edge ^ 1] += amount
        return amount
