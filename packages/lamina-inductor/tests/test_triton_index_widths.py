"""Indices have 64 bits where positions that become values need them, though no buffer is large."""

from __future__ import annotations

from typing import Any

import pytest

from lamina_fx import Graph, TensorSpec, bool_, float32, int64
from lamina_inductor.backends.triton import TritonBackend, TritonKernel, compile_ptx
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.tune.candidates import GemmCandidate
from lamina_prims import decompose


def positions(length: int, start: int, step: int) -> TritonKernel:
    """The kernel of ``arange + x``."""
    graph = Graph()
    x = graph.placeholder("x", spec=TensorSpec((length,), int64))
    spec = TensorSpec((length,), int64)
    iota = graph.call_function("iota", (length,), {"start": start, "step": step, "dtype": int64}, spec=spec)
    graph.output((graph.call_function("add", (iota, x), spec=spec),))
    (kernel,) = TritonBackend().emit(graph).kernels
    return kernel


WIDE = {
    "a large step": (1 << 20, 0, 1 << 22),
    "a step beyond 31 bits": (20, 0, 1 << 33),
    "a large start": (10, (1 << 31) - 5, 1),
    "a low start": (10, -(1 << 31) - 5, 1),
}


@pytest.mark.parametrize("name", WIDE)
def test_positions_that_pass_31_bits_are_computed_in_64(name: str) -> None:
    assert "tl.program_id(0).to(tl.int64)" in positions(*WIDE[name]).source


@pytest.mark.parametrize("name", WIDE)
def test_such_kernels_compile(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = positions(*WIDE[name])
    assert f".visible .entry {kernel.name}(" in compile_ptx(kernel, 90).ptx


def test_chunks_of_a_long_sum_are_bounded_in_64_bits() -> None:
    graph = Graph()
    x = graph.placeholder("x", spec=TensorSpec((), float32))
    many = TensorSpec(((1 << 31) + 4097,), float32)
    spread = graph.call_function("broadcast_in_dim", (x, many.shape, ()), spec=many)
    graph.output((graph.call_function("sum", (spread, (0,)), spec=TensorSpec((), float32)),))
    first, _ = TritonBackend().emit(decompose(graph, level="prims")).kernels
    assert "tl.program_id(0).to(tl.int64)" in first.source


@pytest.mark.parametrize(("step", "wide"), [(1 << 33, True), (1 << 22, False), (1 << 28, True)])
def test_positions_behind_a_product(step: int, wide: bool) -> None:
    graph = Graph()
    x = graph.placeholder("x", spec=TensorSpec((16, 32), float32))
    w = graph.placeholder("w", spec=TensorSpec((32, 16), float32))
    product = graph.call_function("matmul", (x, w), spec=TensorSpec((16, 16), float32))
    counted = graph.call_function("iota", (16,), {"step": step, "dtype": int64}, spec=TensorSpec((16,), int64))
    kept = graph.call_function("gt", (counted, 3 * step), spec=TensorSpec((16,), bool_))
    graph.output((graph.call_function("where", (kept, product, 0.0), spec=TensorSpec((16, 16), float32)),))
    planner = TemplatePlanner(choose=lambda *asked: GemmCandidate(16, 16, 16, 2, 2))
    (kernel,) = TritonBackend(planner).emit(decompose(graph, level="prims")).kernels
    assert "tl.dot" in kernel.source and ("start_n.to(tl.int64)" in kernel.source) is wide


def test_other_positions_stay_narrow() -> None:
    kernel = positions(1 << 20, 5, 1 << 10)
    assert "program_id(0).to" not in kernel.source
    assert dict(kernel.parameters).get("n", "i32") == "i32"
