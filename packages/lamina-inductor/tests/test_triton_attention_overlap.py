"""Attention forward with products that overlap, which the interpreter cannot run: what it takes; that it compiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from assembler import notices

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, bool_, float16, float32, int64
from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_inductor.backends.triton.templates.attention_overlap import can_overlap
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.ir.program import Attention
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import GRID_LOOPS
from lamina_inductor.tune.candidates import AttentionCandidate
from lamina_prims import decompose, ops

OVERLAPPED = AttentionCandidate(64, 128, 4, 2, descriptors=True, overlapped=True)
WIDE = AttentionCandidate(64, 64, 4, 2, descriptors=True, overlapped=True)
SHARED = AttentionCandidate(128, 128, 4, 2, descriptors=True, overlapped=True)


@pytest.fixture
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def graph_of(specs: tuple[TensorSpec, ...], causal: bool = True, dropout: float = 0.0, scale: float = 0.125) -> Graph:
    """Attention over three operands and, if there are more, a mask or a random state."""
    graph = Graph()
    builder = GraphBuilder(graph)
    q, k, v, *rest = [builder.proxy(graph.placeholder(f"x{n}", spec=s)) for n, s in enumerate(specs)]
    mask, state = (None, rest[0]) if dropout else (rest[0] if rest else None, None)
    results = ops.attention_with_lse(q, k, v, mask, causal, scale, dropout, state)
    graph.output((results[0].node, results[1].node))
    return decompose(graph, level="prims", keep=TritonBackend.keep)


def step_of(*given: Any, **how: Any) -> Attention:
    return next(s for s in build_program(graph_of(*given, **how), loops=GRID_LOOPS).steps if type(s) is Attention)


def heads(*shape: int, dtype: Any = bfloat16, strides: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(shape, dtype, strides)


def test_what_can_overlap() -> None:
    same = (heads(2, 4, 256, 64),) * 3
    assert can_overlap(step_of(same)) and can_overlap(step_of(same, causal=False))
    assert can_overlap(step_of((heads(2, 4, 256, 128, dtype=float16),) * 3))
    longer = (heads(2, 4, 128, 64), *(heads(2, 4, 256, 64),) * 2)
    assert can_overlap(step_of(longer))
    packed = heads(
        2, 4, 256, 64, strides=(256 * 768, 64, 768, 1)
    )  # heads beside each other, as a projection makes them
    assert can_overlap(step_of((packed,) * 3))


def test_what_cannot() -> None:
    same = (heads(2, 4, 256, 64),) * 3
    assert not can_overlap(step_of((heads(2, 4, 200, 64),) * 3))
    assert not can_overlap(step_of((heads(2, 4, 256, 32),) * 3))
    assert not can_overlap(step_of((heads(2, 4, 256, 64, dtype=float32),) * 3))
    assert not can_overlap(step_of((*same, heads(256, 256, dtype=bool_)), causal=False))
    assert not can_overlap(step_of((*same, heads(2, dtype=int64)), dropout=0.25))
    assert not can_overlap(step_of(same, scale=-1.0))
    more_queries = (heads(2, 4, 256, 64), *(heads(2, 4, 128, 64),) * 2)
    assert not can_overlap(step_of(more_queries)) and can_overlap(step_of(more_queries, causal=False))
    unaligned = heads(2, 4, 256, 64, strides=(4 * 256 * 68, 256 * 68, 68, 1))
    assert not can_overlap(step_of((unaligned,) * 3))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("shape", "keys", "candidate"),
    [
        ((8, 16, 2048, 64), (8, 16, 2048, 64), OVERLAPPED),
        ((4, 16, 2048, 128), (4, 16, 2048, 128), WIDE),
        ((4, 16, 2048, 128), (4, 16, 2048, 128), SHARED),
        ((2, 2, 4, 1024, 128), (2, 2, 1, 1024, 128), SHARED),
        ((2, 2, 4, 1024, 64), (2, 2, 1, 1024, 64), OVERLAPPED),
        ((1024, 64), (1024, 64), OVERLAPPED),
    ],
    ids=["heads", "wide", "two groups of warps", "two groups of warps, grouped heads", "groups", "one matrix"],
)
def test_it_compiles(
    shape: tuple[int, ...], keys: tuple[int, ...], candidate: AttentionCandidate, causal: bool, _private_cache: None
) -> None:
    triton = pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    pytest.importorskip("triton.experimental.gluon", reason="this triton has no Gluon")
    graph = graph_of((heads(*shape), heads(*keys), heads(*keys)), causal=causal)
    program = TritonBackend(TemplatePlanner(choose=lambda problem, ranked, show: candidate)).emit(graph)
    (launch,) = program.launches
    compiled = compile_ptx(launch.kernel, 90)
    assert compiled.registers is not None and compiled.registers <= 168
    assert not compiled.spills and compiled.warps == (12 if candidate is SHARED else 4)
    assert [block[:-1] for *_, block in compiled.descriptors] == [d.block[:-1] for d in launch.buffers[:3]]
    assert "wgmma.mma_async" in compiled.ptx and "cp.async.bulk.tensor" in compiled.ptx
    assert "serialized" not in notices(triton, compiled.ptx)


def test_wide_heads_are_walked_by_two_groups_where_queries_fill_them() -> None:
    keys = heads(2, 4, 256, 128)
    for queries, rows in ((256, 128), (192, 64)):
        ranked: list[AttentionCandidate] = []
        planner = TemplatePlanner(choose=lambda problem, found, show: ranked.extend(found) or found[0])  # noqa: B023
        TritonBackend(planner).emit(graph_of((heads(2, 4, queries, 128), keys, keys), causal=False))
        assert max(c.block_m for c in ranked if c.overlapped) == rows


def test_older_and_newer_devices_have_other_kernels() -> None:
    graph = graph_of((heads(8, 16, 2048, 64),) * 3)
    for sm in (80, 100):
        ranked: list[AttentionCandidate] = []
        planner = TemplatePlanner(sm, choose=lambda problem, found, show: ranked.extend(found) or found[0])  # noqa: B023
        TritonBackend(planner).emit(graph)
        assert ranked and not any(c.overlapped for c in ranked)
