"""Time to schedule grows in step with the graph: transformer layers, 1,000 to 8,000 nodes."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
from tracing import trace

from lamina_inductor.schedule.program import build_program
from lamina_prims import ops

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


def scheduling(count: int) -> tuple[int, float, int]:
    """(nodes, best seconds of three, kernels) for so many layers."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype(np.float32) for _ in range(count) for shape in LAYER]
    graph, _ = trace(layers, rng.normal(size=(2, 16, WIDTH)).astype(np.float32), *weights)
    times = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        program = build_program(graph)
        times.append(time.process_time() - start)
    return len(graph.nodes), min(times), len(program.kernels)


def test_time_is_linear_and_kernels_do_not_multiply() -> None:
    scheduling(1)
    few, short, kernels = scheduling(14)
    many, long, more_kernels = scheduling(110)
    assert few > 900 and many > 7500
    assert kernels == more_kernels
    growth = (long / many) / (short / few)
    assert growth < 2.0, f"{short / few * 1e6:.0f} us a node at {few} nodes, {long / many * 1e6:.0f} us at {many}"
