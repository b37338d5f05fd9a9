"""What the cut keeps for the backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import graph_of

from lamina_aot import partition, trace_joint
from lamina_aot.maxflow import Network
from lamina_fx import Graph, Node
from lamina_tensor import from_numpy


def chain(g: Graph, x: Node, w: Node) -> Any:
    """A product, then a chain of pointwise steps whose values eager would all keep."""
    h = g.call_function("matmul", (x, w))
    for name in ("sigmoid", "tanh", "exp", "sin"):
        h = g.call_function(name, (h,))
    return (g.call_function("sum", (h,)),)


def joint_of(build: Any, *shapes: tuple[int, ...]) -> Any:
    inputs = [from_numpy(np.ones(s, np.float32)).requires_grad_() for s in shapes]
    return trace_joint(graph_of(build, *shapes), inputs)


def test_pointwise_values_are_recomputed_from_the_product() -> None:
    halves = partition(joint_of(chain, (64, 32), (32, 64)))
    kept = [node.target for node in halves.saved if node.op != "placeholder"]
    assert kept == ["matmul"]
    assert halves.saved_bytes == 64 * 64 * 4


def test_products_are_never_computed_twice() -> None:
    halves = partition(joint_of(chain, (64, 32), (32, 64)))
    forward_products = [n for n in halves.forward.nodes if n.target == "matmul"]
    assert len(forward_products) == 1
    calls = [n for n in halves.backward.nodes if n.op == "call_function"]
    products = [n for n in calls if n.target in ("matmul", "dot_general")]
    assert len(products) == 2  # one gradient each for x and w


def test_a_zero_budget_keeps_inputs_only() -> None:
    halves = partition(joint_of(chain, (64, 32), (32, 64)), budget=0.0)
    assert halves.saved_bytes == 0
    assert all(place == "input" for place, _ in halves.places)


def test_budget_is_monotonic() -> None:
    joint = joint_of(chain, (64, 32), (32, 64))
    sizes = [partition(joint, budget).saved_bytes for budget in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert sizes == sorted(sizes)


def test_checkpointed_values_are_not_kept() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        g.regions = ("checkpoint:0",)
        h = g.call_function("matmul", (x, w))
        h = g.call_function("exp", (h,))
        g.regions = ()
        return (g.call_function("sum", (g.call_function("mul", (h, h)),)),)

    halves = partition(joint_of(build, (64, 32), (32, 64)))
    kept = [node.target for node in halves.saved if node.op != "placeholder"]
    assert kept == ["exp"]  # what leaves the region is kept, as in eager: others start there
    assert [n for n in halves.backward.nodes if n.target == "matmul"]


def test_a_value_that_is_returned_anyway_is_kept_for_free() -> None:
    def build(g: Graph, x: Node, w: Node) -> Any:
        h = g.call_function("tanh", (g.call_function("matmul", (x, w)),))
        return h, g.call_function("sum", (h,))

    halves = partition(joint_of(build, (64, 32), (32, 64)))
    assert ("result", 0) in halves.places
    assert len(halves.forward.output_node.args[0]) == 2


def test_budget_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        partition(joint_of(chain, (4, 4), (4, 4)), budget=1.5)


def test_maximum_flow_against_brute_force() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        count = 6
        capacity = rng.integers(0, 8, (count, count)) * (rng.random((count, count)) < 0.5)
        np.fill_diagonal(capacity, 0)
        net = Network(count)
        for u in range(count):
            for v in range(count):
                if capacity[u, v]:
                    net.add(u, v, int(capacity[u, v]))
        cuts = []
        for mask in range(1 << (count - 2)):
            side = {0} | {k + 1 for k in range(count - 2) if mask >> k & 1}
            cuts.append(sum(capacity[u, v] for u in side for v in range(count) if v not in side))
        assert net.maximum_flow(0, count - 1) == min(cuts)
