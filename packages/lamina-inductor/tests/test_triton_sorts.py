"""Sorts in tiles, sorts and the largest of long rows: what the loops for a grid mean, by the interpreter of kernel IR;
with triton, what the kernels compute, and that they compile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from random_sorts import drawn
from tracing import spec_of
from triton_corpus import floats, graph_of
from triton_sorts import LONG_SORTS, LONG_TOPK, SORT_CASES, SYMBOLIC_ROWS, TOPK_CASES, emit_long
from triton_templates import kept_graph

from lamina_fx import Graph, GraphBuilder, Interpreter, TensorSpec, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.lower.sorts import longest_row
from lamina_prims import decompose, operator, ops
from lamina_prims.modes import creating

TRITON = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('triton')", reason="no triton here")


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


@pytest.mark.parametrize("name", ["top p", "router"])
def test_golden_kernels(name: str, golden: Any) -> None:
    fn, inputs, _ = (SORT_CASES | TOPK_CASES)[name]
    program = TritonBackend().emit(kept_graph(fn, inputs))
    golden(f"triton_sorts_{name.replace(' ', '_')}.py.txt", "\n\n".join(k.source for k in program.kernels))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_rows_beyond_the_longest_are_sorted_by_parts_or_by_the_library(dtype: Any) -> None:
    most = longest_row(spec_of(np.zeros(1, dtype)).dtype)
    beyond = {np.float32: 3, np.float16: 4, np.int64: 0}
    for size, launches in ((most, 1), (most + 1, beyond[dtype])):
        program = TritonBackend().emit(graph_of(lambda x: ops.sort(x, 1), (np.zeros((3, size), dtype),)))
        assert len(program.launches) == launches
        assert [e.operator for e in program.externs] == ([] if launches else ["sort"])


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


@pytest.mark.parametrize("name", [*LONG_TOPK, *LONG_SORTS])
def test_long_rows_have_kernels_of_their_own(name: str) -> None:
    fn, inputs, _, launches = (LONG_TOPK | LONG_SORTS)[name]
    program = emit_long(name, kept_graph(fn, inputs))
    assert not program.externs
    assert len(program.launches) == launches


@pytest.mark.parametrize(
    ("k", "dtype", "size"), [(257, np.float32, 9000), (5, np.int64, 9000), (5, np.float64, 9000), (5000, np.int8, 5000)]
)
def test_what_else_of_long_rows_is_sorted_by_the_library(k: int, dtype: Any, size: int) -> None:
    x = np.zeros((2, size), dtype)
    graph = kept_graph(lambda x: ops.topk(x, k), (x,))
    program = TritonBackend().emit(graph)
    assert [e.operator for e in program.externs] == ["topk"]
    for got, want in zip(run_program(program.program, [x]), wanted(graph, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(), (3, 40), (2, 5000)])
def test_float8_is_sorted_by_the_library(shape: tuple[int, ...]) -> None:
    x = floats(*shape).astype(ml_dtypes.float8_e4m3fn)
    graph = graph_of(lambda x: ops.sort(x, -1, True), (x,))
    program = TritonBackend().emit(graph)
    assert [e.operator for e in program.externs] == ["sort"]
    for got, want in zip(run_program(program.program, [x]), wanted(graph, [x]), strict=True):
        np.testing.assert_array_equal(np.asarray(got).astype(np.float32), want.astype(np.float32))


def test_results_of_topk_have_memory_of_their_own_size() -> None:
    graph = kept_graph(lambda x: (*ops.topk(x, 3), *ops.kthvalue(x, 2)), (floats(4, 50),))
    (output,) = [n for n in graph.nodes if n.op == "output"]
    assert [tuple(r.spec.strides) for r in output.args[0]] == [(3, 1), (3, 1), (1,), (1,)]


@pytest.mark.parametrize("name", SYMBOLIC_ROWS)
def test_rows_of_an_unknown_number_have_kernels_alone(name: str) -> None:
    fn, inputs = SYMBOLIC_ROWS[name]
    program = TritonBackend().emit(kept_graph(fn, inputs, (3,)))
    assert program.launches and not program.externs


@pytest.fixture(scope="module")
def report() -> dict[str, str | None]:
    script = Path(__file__).parent / "triton_sorts_interpreted.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@TRITON
@pytest.mark.parametrize(
    "name", [*SORT_CASES, *TOPK_CASES, *LONG_TOPK, *LONG_SORTS, *SYMBOLIC_ROWS, *[f"seed {seed}" for seed in range(6)]]
)
def test_kernels_compute_what_the_references_do(name: str, report: dict[str, str | None]) -> None:
    assert report[name] is None, report[name]


COMPILED = (
    "rows of 33",
    "rows of 1024",
    "short words, one row",
    "sorted b",
    "float64",
    "uint32",
    "columns",
    "top p",
    "largest",
    "whole numbers",
)


@TRITON
@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", [n for n in (*SORT_CASES, *TOPK_CASES) if any(part in n for part in COMPILED)])
def test_kernels_compile(name: str, sm: int) -> None:
    fn, inputs, _ = (SORT_CASES | TOPK_CASES)[name]
    for kernel in TritonBackend().emit((kept_graph if name in TOPK_CASES else graph_of)(fn, inputs)).kernels:
        _compiles(kernel, sm)


@TRITON
@pytest.mark.parametrize(("name", "sm"), [("parts", 90), ("short words in parts", 80), ("sorted in runs", 90)])
def test_kernels_for_long_rows_compile(name: str, sm: int) -> None:
    fn, inputs, *_ = (LONG_TOPK | LONG_SORTS)[name]
    for kernel in emit_long(name, kept_graph(fn, inputs)).kernels:
        _compiles(kernel, sm)


def _compiles(kernel: Any, sm: int) -> None:
    compiled = compile_ptx(kernel, sm)
    assert f".visible .entry {kernel.name}(" in compiled.ptx
    assert compiled.registers is None or 0 < compiled.registers <= 255
    assert (compiled.spills or 0) <= 64 and compiled.shared <= 99 << 10


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_with_sorts(seed: int) -> None:
    fn, inputs = drawn(seed)
    graph = kept_graph(fn, inputs)
    program = TritonBackend().emit(graph)
    assert not program.externs
    for got, want in zip(run_program(program.program, [a.copy() for a in inputs]), wanted(graph, inputs), strict=True):
        np.testing.assert_allclose(got, want, *((0, 0) if want.dtype.kind in "biu" else (1e-4, 1e-4)))
