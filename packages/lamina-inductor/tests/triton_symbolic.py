"""Programs whose sizes are symbols, and sizes to run them with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from triton_corpus import adamw, layer_norm_backward

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_prims import decompose, ops

__all__ = ["CASES", "INDEX_BITS", "Case", "arrays_of"]

INDEX_BITS = (32, 64)


@dataclass(frozen=True)
class Case:
    """fn: over tensors of ``shapes``, where text stands for a size that is not known. sizes: of runs, by name.

    launches: how many there are.
    """

    fn: Any
    shapes: tuple[tuple[Any, ...], ...]
    sizes: tuple[dict[str, int], ...]
    launches: int

    def graph(self) -> Graph:
        """The graph in strict primitives."""
        env, graph = ShapeEnv(), Graph()
        names = dict.fromkeys(n for shape in self.shapes for n in shape if type(n) is str)
        symbols = {name: env.create_symbol(64, name, lower=0) for name in names}
        builder = GraphBuilder(graph)
        specs = [TensorSpec([symbols.get(n, n) for n in shape], float32) for shape in self.shapes]
        inputs = [builder.proxy(graph.placeholder(f"x{k}", spec=spec)) for k, spec in enumerate(specs)]
        result = self.fn(*inputs)
        graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
        return decompose(graph, level="prims")


def arrays_of(case: Case, sizes: dict[str, int]) -> list[np.ndarray]:
    """Inputs."""
    rng = np.random.default_rng(0)
    return [np.abs(rng.standard_normal([sizes.get(n, n) for n in s])).astype(np.float32) for s in case.shapes]


NAMES = ("a", "b", "c", "d", "e")
CASES: dict[str, Case] = {
    "whole tiles and the last one": Case(
        lambda x, y: ops.add(ops.exp(x), y), (("a", "b"), ("a", "b")),
        ({"a": 3, "b": 5}, {"a": 4, "b": 1024}, {"a": 37, "b": 61}, {"a": 0, "b": 7}), 1,
    ),
    "adamw of several sizes": Case(
        adamw, tuple((n,) for n in NAMES for _ in range(4)),
        (
            dict(zip(NAMES, (33, 1024, 2500, 1, 4096), strict=True)),
            dict(zip(NAMES, (0, 7, 0, 1025, 0), strict=True)),
            dict(zip(NAMES, (2048, 0, 1, 1, 5000), strict=True)),
        ), 1,
    ),
    "adamw of known and unknown sizes": Case(
        adamw, tuple(s for s in ((64,), ("a", 32), (64,), ("b", 3), ("a", 32), ("b", 3)) for _ in range(4)),
        ({"a": 5, "b": 11}, {"a": 100, "b": 700}, {"a": 0, "b": 1}), 3,
    ),
    "a transposed operand": Case(
        lambda x, y: ops.add(ops.permute(x, (1, 0)), y), (("a", "b"), ("b", "a")),
        (
            {"a": 1, "b": 1}, {"a": 3, "b": 31}, {"a": 33, "b": 129}, {"a": 128, "b": 127}, {"a": 32, "b": 1},
            {"a": 0, "b": 5},
        ), 1,
    ),
    "a transposed operand and half numbers": Case(
        lambda x, y: ops.convert_element_type(ops.add(ops.permute(x, (1, 0)), y), bfloat16), (("a", "b"), ("b", "a")),
        ({"a": 40, "b": 136}, {"a": 33, "b": 136}, {"a": 64, "b": 64}, {"a": 1, "b": 8}, {"a": 0, "b": 8}), 1,
    ),
    "transposed operands of several sizes": Case(
        lambda *t: tuple([ops.add(ops.permute(x, (1, 0)), y) for x, y in zip(t[::2], t[1::2], strict=True)]),
        tuple(shape for n in NAMES for shape in ((n, 24), (24, n))),
        (
            dict(zip(NAMES, (33, 512, 70, 1, 129), strict=True)), dict(zip(NAMES, (0, 7, 0, 65, 0), strict=True)),
        ), 1,
    ),
    "images to channels last": Case(
        lambda x, y: ops.add(ops.permute(x, (0, 2, 3, 1)), y), (("a", 24, "b", "c"), ("a", "b", "c", 24)),
        ({"a": 2, "b": 7, "c": 9}, {"a": 1, "b": 1, "c": 1}, {"a": 3, "b": 0, "c": 2}), 1,
    ),
    "reversed dimensions": Case(
        lambda x, y: ops.mul(ops.permute(x, (2, 1, 0)), y), (("a", "b", "c"), ("c", "b", "a")),
        ({"a": 33, "b": 2, "c": 65}, {"a": 1, "b": 40, "c": 3}), 1,
    ),
    "a transposed operand of a softmax": Case(
        lambda x, y: ops.softmax(ops.add(x, ops.permute(y, (1, 0))), -1), (("a", "b"), ("b", "a")),
        ({"a": 5, "b": 300}, {"a": 64, "b": 33}, {"a": 1, "b": 1}), 1,
    ),
    "short rows together": Case(
        lambda x: (ops.softmax(x, -1), ops.sum(x, 1)), (("a", 24),), ({"a": 1}, {"a": 63}, {"a": 200}), 1,
    ),
    "sums over axes that become one": Case(
        lambda x, y: (t := ops.add(ops.exp(x), y), ops.mul(ops.sum(t, (0, 1)), 2.0)),
        (("a", "b", 48), ("a", "b", 48)), ({"a": 3, "b": 5}, {"a": 20, "b": 30}), 2,
    ),
    "a norm's gradients": Case(
        lambda x, w, ct: layer_norm_backward(ops.reshape(x, (-1, 48)), w, ops.reshape(ct, (-1, 48))),
        (("a", "b", 48), (48,), ("a", "b", 48)), ({"a": 3, "b": 5}, {"a": 20, "b": 30}), 2,
    ),
}  # fmt: skip
