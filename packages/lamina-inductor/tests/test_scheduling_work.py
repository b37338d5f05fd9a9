"""The work of scheduling grows in step with the graph: transformer layers, 1,000 to 8,000 nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from tracing import trace

from lamina_inductor.schedule.program import build_program
from lamina_prims import ops
from lamina_testing.work import count_calls

WIDTH = 32
LAYER = ((WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))


def layers(x: Any, *weights: Any) -> Any:
    for k in range(0, len(weights), len(LAYER)):
        gain, bias, qkv, out, up, down = weights[k : k + len(LAYER)]
        joint = ops.matmul(ops.layer_norm(x, (WIDTH,), gain, bias), qkv)
        q, k_, v = (_heads(ops.slice(joint, 2, i * WIDTH, (i + 1) * WIDTH)) for i in range(3))
        weight = ops.softmax(ops.mul(ops.matmul(q, ops.permute(k_, (0, 1, 3, 2))), 0.3), -1)
        merged = ops.reshape(ops.permute(ops.matmul(weight, v), (0, 2, 1, 3)), tuple(x.shape))
        x = ops.add(x, ops.matmul(merged, out))
        hidden = ops.gelu(ops.matmul(ops.layer_norm(x, (WIDTH,), gain, bias), up))
        x = ops.add(x, ops.matmul(hidden, down))
    return x


def _heads(x: Any) -> Any:
    return ops.permute(ops.reshape(x, (x.shape[0], x.shape[1], 4, WIDTH // 4)), (0, 2, 1, 3))


def scheduling(count: int) -> tuple[int, int, int]:
    """(nodes, calls made while scheduling, kernels) for so many layers."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype(np.float32) for _ in range(count) for shape in LAYER]
    graph, _ = trace(layers, rng.normal(size=(2, 16, WIDTH)).astype(np.float32), *weights)
    kernels = len(build_program(graph).kernels)  # and whatever a first run keeps for the next
    return len(graph.nodes), count_calls(lambda: build_program(graph)), kernels


def test_work_is_linear_and_kernels_do_not_multiply() -> None:
    few, small, kernels = scheduling(14)
    many, large, more_kernels = scheduling(110)
    assert few > 900 and many > 7500
    assert kernels == more_kernels
    growth = (large / many) / (small / few)
    assert growth < 1.5, f"{small / few:.0f} calls a node at {few} nodes, {large / many:.0f} at {many}"
