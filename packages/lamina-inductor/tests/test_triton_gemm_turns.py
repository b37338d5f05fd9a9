"""Products whose tiles two groups of warps make in turn, which the interpreter cannot run: what it takes; that it
compiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from assembler import notices

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float16, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TensorDescriptor, TritonBackend, compile_ptx
from lamina_inductor.backends.triton.templates.gemm_turns import can_take_turns
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.ir.program import Gemm
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import GRID_LOOPS
from lamina_inductor.tune import tables
from lamina_inductor.tune.candidates import GemmCandidate
from lamina_prims import decompose, ops

ROWS = ShapeEnv().create_symbol(16, "rows", lower=2)
SQUARE = GemmCandidate(128, 128, 64, 4, 5, descriptors=True, overlapped=True)
WIDE = GemmCandidate(64, 256, 64, 4, 4, descriptors=True, overlapped=True)


@pytest.fixture
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def half(*shape: Any, dtype: Any = bfloat16, strides: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(shape, dtype, strides)


def turned(x: Any) -> Any:
    return ops.permute(x, (1, 0))


def plain(x: Any, w: Any) -> Any:
    return ops.matmul(x, w)


def linear_gelu(x: Any, w: Any, b: Any) -> Any:
    y = ops.add(ops.matmul(x, turned(w)), b)
    return ops.gelu(y), y


def scaled_by(x: Any, w: Any, h: Any) -> Any:
    return ops.mul(ops.matmul(x, w), h)


def weight_gradient(x: Any, g: Any) -> Any:
    return ops.matmul(turned(x), g)


def graph_of(fn: Callable[..., Any], *specs: TensorSpec) -> Graph:
    graph = Graph()
    builder = GraphBuilder(graph)
    results = fn(*[builder.proxy(graph.placeholder(f"x{n}", spec=s)) for n, s in enumerate(specs)])
    graph.output(tuple([r.node for r in (results if isinstance(results, tuple) else (results,))]))
    return decompose(graph, level="prims", keep=TritonBackend.keep)


def takes_turns(fn: Callable[..., Any], *specs: TensorSpec) -> bool:
    program = build_program(graph_of(fn, *specs), loops=GRID_LOOPS)
    return can_take_turns(next(s for s in program.steps if type(s) is Gemm))


def test_what_can() -> None:
    assert takes_turns(plain, half(512, 256), half(256, 384))
    assert takes_turns(plain, half(500, 200, dtype=float16), half(200, 392, dtype=float16))
    assert takes_turns(linear_gelu, half(512, 256), half(384, 256), half(384))
    assert takes_turns(scaled_by, half(512, 256), half(256, 384), half(512, 384))
    assert takes_turns(weight_gradient, half(512, 256), half(512, 384))
    assert takes_turns(linear_gelu, half(ROWS, 256), half(384, 256), half(384))
    assert takes_turns(weight_gradient, half(ROWS, 256), half(ROWS, 384))


def test_what_cannot() -> None:
    assert not takes_turns(plain, half(512, 256, dtype=float32), half(256, 384, dtype=float32))
    assert not takes_turns(plain, half(512, 256), half(256, 381))  # rows of no multiple of 16 bytes
    assert not takes_turns(plain, half(2, 512, 256), half(2, 256, 384))
    assert not takes_turns(plain, half(512, 256), half(256, ROWS))
    assert not takes_turns(scaled_by, half(512, 256), half(256, 384), half(512, 384, dtype=float32))


def test_one_generation_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_IN_TURNS", ((128, 128, 64, 4, 5),))
    graph = graph_of(linear_gelu, half(16384, 768), half(3072, 768), half(3072))
    for sm, there in ((90, True), (80, False), (100, False)):
        ranked: list[Any] = []
        planner = TemplatePlanner(sm, choose=lambda problem, found, show: ranked.extend(found) or found[0])  # noqa: B023
        TritonBackend(planner).emit(graph)
        assert any(getattr(c, "overlapped", False) for c in ranked) == there


@pytest.mark.parametrize("candidate", [SQUARE, WIDE], ids=["square", "wide"])
@pytest.mark.parametrize(
    ("fn", "specs", "stored"),
    [
        (plain, (half(4096, 4096), half(4096, 4096)), 1),
        (linear_gelu, (half(16384, 768), half(3072, 768), half(3072)), 2),
        (scaled_by, (half(1000, 800), half(800, 1032), half(1000, 1032)), 1),
        (weight_gradient, (half(4096, 768, dtype=float16), half(4096, 3072, dtype=float16)), 1),
        (linear_gelu, (half(1024 * ROWS, 768), half(3072, 768), half(3072)), 2),
        (plain, (half(ROWS, 800), half(800, 1032)), 1),
        (weight_gradient, (half(1024 * ROWS, 768), half(1024 * ROWS, 3072)), 1),
    ],
    ids=["plain", "two results", "edges", "transposed", "symbolic rows", "symbolic edges", "a symbolic sum"],
)
def test_it_compiles(
    fn: Callable[..., Any], specs: tuple[TensorSpec, ...], stored: int, candidate: GemmCandidate, _private_cache: None
) -> None:
    triton = pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    pytest.importorskip("triton.experimental.gluon", reason="this triton has no Gluon")
    planner = TemplatePlanner(choose=lambda problem, ranked, show: candidate)
    (launch,) = TritonBackend(planner).emit(graph_of(fn, *specs)).launches
    described = [b for b in launch.buffers if type(b) is TensorDescriptor]
    assert len(described) == 2 + stored
    compiled = compile_ptx(launch.kernel, 90)
    assert compiled.warps == 12 and launch.kernel.tile.warps == 4
    assert not compiled.spills
    assert "wgmma.mma_async" in compiled.ptx and "setmaxnreg" in compiled.ptx
    assert compiled.ptx.count("cp.async.bulk.tensor.2d.global.shared") >= 2 * stored
    assert "serialized" not in notices(triton, compiled.ptx)
