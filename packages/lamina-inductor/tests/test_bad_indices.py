"""An index out of range raises an error with the operator and the user's line; nothing is written then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32, int64
from lamina_inductor import CppBackend
from lamina_prims import decompose, ops

TABLE, INDEX, ROWS = TensorSpec((10, 6), float32), TensorSpec((4,), int64), TensorSpec((4, 6), float32)


def build(fn: Any, *specs: TensorSpec) -> Any:
    """``fn(*inputs)`` gives the results and, per written input, its number and value."""
    graph = Graph()
    builder = GraphBuilder(graph)
    inputs = [builder.proxy(graph.placeholder(f"x{k}", spec=spec)) for k, spec in enumerate(specs)]
    results, writes = fn(*inputs)
    for node in graph.nodes:
        node.meta["source"] = ("model.py", 12, "forward")
    for number, value in writes.items():
        graph.call_function("copy_to", (inputs[number].node, value.node), effect="write")
    graph.output(tuple([r.node for r in results]))
    return CppBackend().compile(decompose(graph, level="prims"))


CASES = {
    "index": (lambda t, i, r: ([ops.index(t, (i,))], {}), "index"),
    "gather": (lambda t, i, r: ([ops.gather(t, 0, ops.reshape(i, (4, 1)))], {}), "gather"),
    "embedding": (lambda t, i, r: ([ops.embedding(i, t)], {}), ""),
    "index_put": (lambda t, i, r: ([], {0: ops.index_put(t, (i,), r, False)}), "index_put"),
    "index_add": (lambda t, i, r: ([], {0: ops.index_put(t, (i,), r, True)}), "index_put"),
    "scatter": (
        lambda t, i, r: ([], {0: ops.scatter_add(t, 0, ops.expand(ops.reshape(i, (4, 1)), (4, 6)), r)}),
        "scatter",
    ),
    "fused update": (lambda t, i, r: ([], {2: ops.add(r, ops.index(t, (i,)))}), "index"),
    "update beside": (lambda t, i, r: ([ops.index(t, (i,))], {2: ops.exp(r)}), "index"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bad", [10, -11, 2**40])
def test_nothing_is_written(case: str, bad: int) -> None:
    fn, name = CASES[case]
    artifact = build(fn, TABLE, INDEX, ROWS)
    rng = np.random.default_rng(0)
    table, rows = rng.standard_normal((10, 6)).astype(np.float32), rng.standard_normal((4, 6)).astype(np.float32)
    before = table.copy(), rows.copy()
    kind = RuntimeError if case in ("gather", "scatter") else IndexError  # as PyTorch's
    told = 10 if case == "embedding" and bad < 0 else bad  # a negative one is replaced by the size: it does not wrap
    with pytest.raises(kind, match=rf"{name}.*index {told} is out of bounds.*model.py:12"):
        artifact(table, np.array([1, 2, bad, 3]), rows)
    np.testing.assert_array_equal(table, before[0])
    np.testing.assert_array_equal(rows, before[1])
    artifact(table, np.array([1, 2, 9, 0]), rows)  # and the program can be called again


def test_what_is_in_range_is_updated() -> None:
    artifact = build(CASES["fused update"][0], TABLE, INDEX, ROWS)
    table, rows = np.ones((10, 6), np.float32), np.full((4, 6), 2, np.float32)
    artifact(table, np.array([0, 1, -1, 9]), rows)
    np.testing.assert_array_equal(rows, 3)
