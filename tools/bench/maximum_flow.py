"""Compare the partitioner's maximum flow with networkx on networks shaped like a transformer's joint graph.

python tools/bench/maximum_flow.py   (networkx must be installed)
"""

from __future__ import annotations

import random
import time

import networkx
from networkx.algorithms.flow import preflow_push, shortest_augmenting_path

from lamina_aot.maxflow import INFINITE, Network


def edges(count: int) -> list[tuple[int, int, int]]:
    """Vertices 2k -> 2k+1 carry a node's bytes; data edges go to the next few nodes; every fifth feeds the sink."""
    rng = random.Random(count)
    found = []
    for k in range(count):
        found.append((2 + 2 * k, 3 + 2 * k, rng.randrange(1, 1 << 20)))
        if k % 17 == 0:
            found.append((0, 2 + 2 * k, INFINITE))
        found += [(3 + 2 * k, 2 + 2 * j, INFINITE) for j in range(k + 1, min(count, k + 3))]
        if k % 5 == 0:
            found.append((3 + 2 * k, 1, INFINITE))
    return found


def main() -> None:
    for count in (300, 1200, 5000):
        given = edges(count)
        start = time.perf_counter()
        net = Network(2 + 2 * count)
        for edge in given:
            net.add(*edge)
        value = net.maximum_flow(0, 1)
        own = time.perf_counter() - start
        graph = networkx.DiGraph()
        for u, v, c in given:
            graph.add_edge(u, v, capacity=c)
        line = f"{count} nodes: own {own * 1e3:.0f} ms"
        for function in (preflow_push, shortest_augmenting_path) if count <= 1200 else (preflow_push,):
            start = time.perf_counter()
            other = networkx.minimum_cut_value(graph, 0, 1, flow_func=function)
            line += f", networkx {function.__name__} {(time.perf_counter() - start) * 1e3:.0f} ms"
            assert other == value or value >= INFINITE
        print(line)


if __name__ == "__main__":
    main()
