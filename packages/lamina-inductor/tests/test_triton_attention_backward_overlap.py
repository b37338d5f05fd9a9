"""Attention's gradients with products that overlap, which the interpreter cannot run: what they take; that they
compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from assembler import notices

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, bool_, float16, float32
from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_inductor.backends.triton.templates.attention_backward_overlap import can_overlap_backward
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.ir.program import AttentionBackward
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import GRID_LOOPS
from lamina_inductor.tune.candidates import AttentionCandidate
from lamina_prims import decompose, ops

OVERLAPPED = AttentionCandidate(64, 64, 4, 2, descriptors=True, overlapped=True)


@pytest.fixture
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def graph_of(queries: TensorSpec, keys: TensorSpec, causal: bool = True, mask: TensorSpec | None = None) -> Graph:
    """Gradients of attention over queries and keys."""
    graph = Graph()
    builder = GraphBuilder(graph)
    specs = (queries, queries, keys, keys, *([] if mask is None else [mask]))
    g, q, k, v, *rest = [builder.proxy(graph.placeholder(f"x{n}", spec=s)) for n, s in enumerate(specs)]
    given: Any = rest[0] if rest else None
    out, lse = ops.attention_with_lse(q, k, v, given, causal, 0.125, 0.0, None)
    results = ops.attention_backward(g, None, out, lse, q, k, v, given, causal, 0.125, 0.0, None)
    graph.output(tuple([r.node for r in results if r is not None]))
    return decompose(graph, level="prims", keep=TritonBackend.keep)


def overlaps(*given: Any, **how: Any) -> bool:
    program = build_program(graph_of(*given, **how), loops=GRID_LOOPS)
    return can_overlap_backward(next(s for s in program.steps if type(s) is AttentionBackward))


def heads(*shape: int, dtype: Any = bfloat16) -> TensorSpec:
    return TensorSpec(shape, dtype)


def test_what_can_overlap() -> None:
    for width in (64, 128):
        assert overlaps(*(heads(2, 4, 256, width),) * 2) and overlaps(*(heads(2, 4, 256, width),) * 2, causal=False)
    assert overlaps(*(heads(2, 4, 192, 64, dtype=float16),) * 2)
    assert overlaps(heads(2, 2, 4, 128, 64), heads(2, 2, 1, 256, 64))


def test_what_cannot() -> None:
    assert not overlaps(*(heads(2, 4, 200, 64),) * 2)
    assert not overlaps(*(heads(2, 4, 256, 32),) * 2)
    assert not overlaps(*(heads(2, 4, 256, 64, dtype=float32),) * 2)
    assert not overlaps(*(heads(2, 4, 256, 64),) * 2, causal=False, mask=heads(256, 256, dtype=bool_))
    assert not overlaps(heads(2, 4, 256, 64), heads(2, 4, 128, 64))


def test_they_are_chosen_where_the_device_has_them() -> None:
    graph = graph_of(*(heads(4, 16, 2048, 128),) * 2)
    for sm, chosen in ((90, True), (80, False), (100, False)):
        first: list[AttentionCandidate] = []
        planner = TemplatePlanner(sm, choose=lambda problem, found, show: first.append(found[0]) or found[0])  # noqa: B023
        TritonBackend(planner).emit(graph)
        assert [c.overlapped for c in first] == [chosen, chosen]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("queries", "keys"),
    [((4, 16, 2048, 128),) * 2, ((16, 12, 1024, 64),) * 2, ((2, 2, 4, 1024, 128), (2, 2, 1, 1024, 128))],
    ids=["wide", "heads", "groups"],
)
def test_it_compiles(queries: tuple[int, ...], keys: tuple[int, ...], causal: bool, _private_cache: None) -> None:
    triton = pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    pytest.importorskip("triton.experimental.gluon", reason="this triton has no Gluon")
    planner = TemplatePlanner(choose=lambda problem, ranked, show: OVERLAPPED)
    program = TritonBackend(planner).emit(graph_of(heads(*queries), heads(*keys), causal))
    kernels = [x.kernel for x in program.launches if "grad_out" in dict(x.kernel.parameters)]
    assert len(kernels) == 2
    for kernel in kernels:
        compiled = compile_ptx(kernel, 90)
        assert compiled.registers is not None and (compiled.spills or 0) <= 32
        assert "wgmma.mma_async" in compiled.ptx and "cp.async.bulk.tensor" in compiled.ptx
        assert "serialized" not in notices(triton, compiled.ptx)
