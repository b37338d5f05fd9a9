"""Sorts in tiles: what the loops for a grid mean, by the interpreter of kernel IR, and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import spec_of
from triton_corpus import floats, graph_of
from triton_sorts import SORT_CASES, TOPK_CASES
from triton_templates import kept_graph

from lamina_fx import Graph, GraphBuilder, Interpreter, TensorSpec, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.lower.sorts import longest_row
from lamina_prims import decompose, operator, ops
from lamina_prims.modes import creating


def wanted(graph: Graph, inputs: Any) -> list[np.ndarray]:
    with creating(None):
        return [np.asarray(r) for r in Interpreter(graph, operator).run(*[a.copy() for a in inputs])]


@pytest.mark.parametrize("name", [*SORT_CASES, *TOPK_CASES])
def test_kernels_and_what_they_compute(name: str) -> None:
    fn, inputs, count = (SORT_CASES | TOPK_CASES)[name]
    graph = (kept_graph if name in TOPK_CASES else graph_of)(fn, inputs)
    program = TritonBackend().emit(graph)
    assert not program.externs
    assert len(program.kernels) == count
    results = run_program(program.program, [a.copy() for a in inputs])
    for got, want in zip(results, wanted(graph, inputs), strict=True):
        exact = want.dtype.kind in "biu"
        got, want = (np.asarray(a).astype(np.float64) if not exact else a for a in (got, want))
        np.testing.assert_allclose(got, want, *((0, 0) if exact else (2e-2 if "16" in name else 2e-5, 1e-6)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_rows_beyond_the_longest_are_sorted_by_the_library(dtype: Any) -> None:
    most = longest_row(spec_of(np.zeros(1, dtype)).dtype)
    for size, externs in ((most, []), (most + 1, ["sort"])):
        program = TritonBackend().emit(graph_of(lambda x: ops.sort(x, 1), (np.zeros((3, size), dtype),)))
        assert [e.operator for e in program.externs] == externs


def bounded(upper: int | None) -> tuple[Graph, Any]:
    env, graph = ShapeEnv(), Graph()
    n = env.create_symbol(20, "n", lower=1, upper=upper)
    rows = env.create_symbol(3, "rows", lower=0)
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec([rows, n], float32)))
    values, places = ops.sort(x, 1, True)
    graph.output((values.node, places.node))
    return decompose(graph, level="prims"), n


def test_rows_of_unknown_length_are_sorted_in_a_tile_when_they_are_bounded() -> None:
    graph, _ = bounded(50)
    program = TritonBackend().emit(graph)
    assert [k.tile.r for k in program.kernels] == [64] and not program.externs
    for shape in ((4, 37), (3, 50), (5, 1), (0, 7)):
        x = floats(*shape)
        for got, want in zip(run_program(program.program, [x]), wanted(graph, [x]), strict=True):
            np.testing.assert_array_equal(got, want)
    graph, _ = bounded(None)
    assert [e.operator for e in TritonBackend().emit(graph).externs] == ["sort"]


def test_a_gradient_goes_back_to_the_places() -> None:
    def fn(x: Any, ct: Any) -> Any:
        _, places = ops.sort(x, 1)
        return ops.scatter_add(ops.zeros_like(x), 1, places, ct)

    inputs = (floats(5, 30), floats(5, 30))
    graph = graph_of(fn, inputs)
    program = TritonBackend().emit(graph)
    assert not program.externs
    (got,) = run_program(program.program, [a.copy() for a in inputs])
    np.testing.assert_array_equal(got, wanted(graph, inputs)[0])


def test_work_before_and_behind_is_in_the_kernel() -> None:
    (kernel,) = TritonBackend().emit(graph_of(*SORT_CASES["top p"][:2])).kernels
    assert kernel.source.count("lm_sort_words(") == 1
    assert kernel.tile.whole
