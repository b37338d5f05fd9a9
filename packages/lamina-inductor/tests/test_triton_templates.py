from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from assembler import notices
from triton_convolutions import CONVOLUTIONS, SYMBOLIC_IMAGES
from triton_templates import ATTENTIONS, BF16, GEMMS, SMALL, SYMBOLIC, emit_with, floats, kept_graph

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_inductor.backends.triton.prelude import functions_for
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.program import Gemm
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import CPU_LOOPS, GRID_LOOPS
from lamina_inductor.tune.candidates import AttentionCandidate, GemmCandidate, LibraryCandidate, label
from lamina_prims import decompose, ops

CASES = GEMMS | ATTENTIONS | CONVOLUTIONS
GOLDEN = {
    "linear with residual": "product_with_epilogue",
    "wide sums": "split_product",
    "converted weights": "product_with_prologue",
    "causal of odd lengths": "attention",
    "causal gradients": "attention_backward",
    "3x3 with everything": "convolution",
}


def best_template(problem: Any, ranked: list[Any], show: Any) -> Any:
    return next(c for c in ranked if not isinstance(c, LibraryCandidate))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_templates(name: str, golden: Any) -> None:
    fn, inputs, candidates = CASES[name]
    program = emit_with(kept_graph(fn, inputs), candidates[0])
    golden(f"triton_{GOLDEN[name]}.py.txt", "\n\n".join(k.source for k in program.kernels))


@pytest.mark.parametrize("name", CASES)
def test_what_the_program_means(name: str) -> None:
    """Epilogues as kernel IR, in NumPy: the loops for a tile mean what the graph means."""
    fn, inputs, _ = CASES[name]
    graph = kept_graph(fn, inputs)
    program = build_program(graph, loops=GRID_LOOPS)
    plain = build_program(graph, loops=replace(GRID_LOOPS, epilogue=lambda *given: False))
    got, want = (run_program(p, [np.array(a) for a in inputs]) for p in (program, plain))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_epilogue_on_tiles_needs_no_memory_for_the_product() -> None:
    fn, inputs, _ = GEMMS["bias and gelu"]
    (step,) = build_program(kept_graph(fn, inputs), loops=GRID_LOOPS).steps
    assert type(step) is Gemm and step.scratch and step.epilogue is not None


def test_the_library_takes_the_epilogue_apart() -> None:
    fn, inputs, _ = GEMMS["bias and gelu"]
    program = emit_with(kept_graph(fn, inputs), LibraryCandidate())
    assert [e.operator for e in program.externs] == ["dot_general"]
    assert [launch.kernel.name for launch in program.launches] == ["k0_add_mul_erf"]


def test_short_forms_are_near_enough_for_bfloat16() -> None:
    """The prelude's text, run by NumPy in float32 over all numbers of bfloat16."""
    bits = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    x = bits.view(np.float32)
    x = x[np.isfinite(x)]
    language = SimpleNamespace(abs=np.abs, exp2=np.exp2, where=np.where)
    library = SimpleNamespace(copysign=np.copysign)
    names: dict[str, Any] = {"tl": language, "libdevice": library, "triton": SimpleNamespace(jit=lambda fn: fn)}
    with np.errstate(all="ignore"):
        exec(functions_for("lm_gelu_narrow lm_erf_narrow lm_tanh_narrow"), names)
        wide = x.astype(np.float64)
        upper = np.array([0.5 * math.erfc(-v / math.sqrt(2.0)) for v in wide])
        tail = upper > 1e-7
        gelu = names["lm_gelu_narrow"](x)
        np.testing.assert_allclose(gelu[tail], (wide * upper)[tail], rtol=5e-4)
        np.testing.assert_allclose(gelu[~tail], (wide * upper)[~tail], atol=1e-6)
        some = np.abs(x) < 3
        erf = np.array([math.erf(v) for v in wide[some]])
        np.testing.assert_allclose(1.0 + names["lm_erf_narrow"](x[some]), 1.0 + erf, rtol=5e-4, atol=1e-7)
        np.testing.assert_allclose(
            1.0 + names["lm_tanh_narrow"](x[some]), 1.0 + np.tanh(wide[some]), rtol=5e-4, atol=1e-7
        )
        assert names["lm_gelu_narrow"](np.float32(np.inf)) == np.inf
        assert np.isnan(names["lm_gelu_narrow"](np.float32(np.nan)))


def test_short_forms_are_for_results_in_bfloat16_alone() -> None:
    fn, inputs, _ = GEMMS["bias and gelu"]
    (kernel,) = emit_with(kept_graph(fn, inputs), SMALL).kernels
    assert "lm_gelu_narrow" in kernel.source and "tl.erf" not in kernel.source
    wide = tuple(np.asarray(a, np.float32) for a in inputs)
    (kernel,) = emit_with(kept_graph(fn, wide), SMALL).kernels
    assert "tl.erf" in kernel.source and "narrow" not in kernel.source


def test_equal_products_share_a_kernel() -> None:
    def fn(x: Any, a: Any, b: Any) -> Any:
        return ops.relu(ops.matmul(ops.relu(ops.matmul(x, a)), b))

    program = emit_with(kept_graph(fn, tuple(floats(64, 64) for _ in range(3))), SMALL)
    assert [k.name for k in program.kernels] == ["t0_dot_general_maximum"]
    assert len(program.launches) == 2


def test_kernels_of_templates_are_told_before_the_others_are_printed() -> None:
    def fn(x: Any, a: Any, b: Any) -> Any:
        return ops.softmax(ops.matmul(ops.relu(ops.matmul(x, a)), b), 1)

    graph, told = kept_graph(fn, tuple(floats(64, 64) for _ in range(3))), []
    program = TritonBackend(TemplatePlanner(choose=best_template)).emit(graph, made=told.append)
    assert told == [k for k in program.kernels if k.name.startswith("t")]
    assert 0 < len(told) < len(program.kernels)


def kernels_of(fn: Any, *inputs: np.ndarray) -> list[str]:
    return [k.name for k in emit_with(kept_graph(fn, inputs), SMALL).kernels]


def test_a_thin_product_converts_its_weights_on_the_way_in() -> None:
    def fn(x: Any, w: Any) -> Any:
        return ops.matmul(x, ops.convert_element_type(w, bfloat16))

    def twice(x: Any, w: Any) -> Any:
        narrow = ops.convert_element_type(w, bfloat16)
        return ops.matmul(x, narrow), ops.exp(narrow)

    thin, wide, w = floats(8, 64, dtype=BF16), floats(512, 64, dtype=BF16), floats(64, 96)
    assert kernels_of(fn, thin, w) == ["t0_dot_general"]
    assert kernels_of(fn, wide, w) == ["k0_copy", "t0_dot_general"]
    assert "t0_dot_general" in kernels_of(twice, thin, w) and len(kernels_of(twice, thin, w)) == 2
    # what the conversion reads is overwritten by then, or is no input: its memory may be another's
    assert len(kernels_of(lambda x, w: fn(x, ops.softmax(w, 0)), thin, w)) == 2


def test_a_product_is_not_overwritten_while_others_read_its_operand() -> None:
    """x += relu(x @ w): a tile that is done may not write rows that other tiles still read."""

    def fn(x: Any, w: Any) -> Any:
        return ops.copy_to(x, ops.add(x, ops.relu(ops.matmul(x, w))))

    graph = Graph()
    builder = GraphBuilder(graph)
    x, w = (builder.proxy(graph.placeholder(n, spec=TensorSpec((64, 64), bfloat16))) for n in "xw")
    fn(x, w)
    graph.output((x.node,))
    graph = decompose(graph, level="prims")
    for loops in (GRID_LOOPS, CPU_LOOPS):
        step = next(s for s in build_program(graph, loops=loops).steps if type(s) is Gemm)
        call = step.epilogue
        pairs = zip(call.kernel.params, call.buffers, strict=True) if call else ()
        assert step.left.buffer not in [b for p, b in pairs if p.role != "in"]


@pytest.mark.parametrize("symbolic", [(), (64,)])
@pytest.mark.parametrize(
    ("fn", "described"),
    [
        (ops.matmul, True),
        (lambda x, w: ops.matmul(ops.flip(x, (0,)), w), False),
        (lambda x, w: ops.matmul(x, ops.flip(w, (0,))), False),
        (lambda x, w: ops.attention_with_lse(x, w, w, None, False, 0.25, 0.0, None), True),
        (lambda x, w: ops.attention_with_lse(x, ops.flip(w, (1,)), w, None, False, 0.25, 0.0, None), False),
        (lambda x, w: ops.attention_with_lse(ops.flip(x, (0,)), w, w, None, False, 0.25, 0.0, None), False),
    ],
)
def test_descriptors_do_not_go_backwards(fn: Any, described: bool, symbolic: tuple[int, ...]) -> None:
    inputs = floats(2, 64, 32, dtype=BF16), floats(2, 32, 32, dtype=BF16)
    asked: list[bool] = []

    def choose(problem: Any, ranked: list[Any], show: Any) -> Any:
        asked.append(problem.described)
        return ranked[0]

    TritonBackend(TemplatePlanner(choose=choose)).emit(kept_graph(fn, inputs, symbolic))
    assert asked == [described]


def test_symbolic_rows_are_a_parameter() -> None:
    env = ShapeEnv()
    rows = env.create_symbol(6, "x.shape[0]")
    graph = Graph()
    builder = GraphBuilder(graph)
    x = builder.proxy(graph.placeholder("x", spec=TensorSpec((rows, 64), bfloat16)))
    w = builder.proxy(graph.placeholder("w", spec=TensorSpec((64, 64), bfloat16)))
    graph.output((ops.relu(ops.matmul(x, w)).node,))
    program = TritonBackend(TemplatePlanner(choose=best_template)).emit(decompose(graph, level="prims"))
    (launch,) = program.launches
    assert launch.sizes == (rows.expr,)
    assert dict(launch.kernel.parameters)["n_s0"] in ("i32", "i64")
    blocks = launch.kernel.constants
    tiles = -(-1000 // blocks["BLOCK_M"]) * -(-64 // blocks["BLOCK_N"])
    assert launch.grid[0].evaluate({rows.expr: 1000}) == tiles


# -- with triton -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> dict[str, str | None]:
    """What the interpreter says of every case; its patches hold for a whole process, so it has one of its own."""
    pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    script = Path(__file__).parent / "triton_templates_interpreted.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


ALL = {name: case[2] for name, case in (CASES | SYMBOLIC | SYMBOLIC_IMAGES).items()}


@pytest.mark.parametrize("case", [f"{n}: {label(c)}" for n, found in ALL.items() for c in found])
def test_templates_compute_what_the_references_do(case: str, report: dict[str, str | None]) -> None:
    assert report[case] is None, report[case]


@pytest.fixture(scope="module")
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield


COMPILED = (
    "bias and gelu", "half", "3x3 with everything", "groups", "several results", "batches", "rows of a table",
    "causal of odd lengths", "dropout", "a boolean mask", "gradients under an additive mask", "gradients with dropout",
    "gradients of grouped queries",
)  # fmt: skip


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", COMPILED)
def test_templates_compile(name: str, sm: int, _private_cache: None) -> None:
    pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    fn, inputs, candidates = CASES[name]
    candidate = candidates[0 if sm == 80 else -1]
    for kernel in emit_with(kept_graph(fn, inputs), candidate).kernels:
        compiled = compile_ptx(kernel, sm)
        assert compiled.registers is None or 0 < compiled.registers <= 255


LARGE: dict[str, tuple[Any, tuple[tuple[int, ...], ...], Any]] = {
    "product": (
        lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)), ((4096, 4096), (4096, 4096), (4096,)),
        GemmCandidate(128, 128, 64, 8, 3),
    ),
    "attention": (
        lambda q, k, v: ops.attention_with_lse(q, k, v, None, True, 0.125)[0], ((8, 16, 2048, 64),) * 3,
        AttentionCandidate(128, 64, 4, 3),
    ),
}  # fmt: skip


ROUNDED: dict[str, tuple[Any, tuple[tuple[int, ...], ...], Any]] = {
    "linear": (
        lambda x, w: ops.matmul(x, ops.permute(w, (1, 0))), ((1024, 1024), (1024, 1024)),
        GemmCandidate(128, 128, 32, 8, 3, tf32=True),
    ),
    "convolution": (
        CONVOLUTIONS["3x3"][0], ((8, 64, 16, 16), (64, 64, 3, 3)), GemmCandidate(128, 64, 32, 4, 3, tf32=True),
    ),
    "boxes": (
        CONVOLUTIONS["3x3"][0], ((8, 64, 16, 16), (64, 64, 3, 3)),
        GemmCandidate(128, 64, 32, 4, 3, descriptors=True, tf32=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_operands_go_to_the_matrix_units(name: str, _private_cache: None) -> None:
    pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    fn, shapes, candidate = ROUNDED[name]
    graph = kept_graph(fn, tuple(floats(*s) for s in shapes))
    kernels = [k for k in emit_with(graph, candidate).kernels if "tl.dot" in k.source]
    assert len(kernels) == 1 and "wgmma" in compile_ptx(kernels[0], 90).ptx
    (exact,) = [k for k in emit_with(graph, replace(candidate, tf32=False)).kernels if "tl.dot" in k.source]
    assert 'input_precision="ieee"' in exact.source


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", LARGE)
def test_large_tiles_use_the_matrix_units_and_stay_in_registers(name: str, sm: int, _private_cache: None) -> None:
    triton = pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    fn, shapes, candidate = LARGE[name]
    graph = Graph()
    builder = GraphBuilder(graph)
    values = [builder.proxy(graph.placeholder(f"x{k}", spec=TensorSpec(s, bfloat16))) for k, s in enumerate(shapes)]
    graph.output((fn(*values).node,))
    (kernel,) = emit_with(decompose(graph, level="prims", keep=TritonBackend.keep), candidate).kernels
    compiled = compile_ptx(kernel, sm)
    assert ("wgmma.mma_async" if sm == 90 else "mma.sync") in compiled.ptx
    assert (compiled.spills or 0) <= (0 if triton.__version__ < "3.7" else 32)


def attention_gradients(g: Any, q: Any, k: Any, v: Any) -> Any:
    out, lse = ops.attention_with_lse(q, k, v, None, True, 0.125)
    return ops.attention_backward(g, None, out, lse, q, k, v, None, True, 0.125)


def test_products_of_attention_overlap(_private_cache: None) -> None:
    """The assembler says nothing of products that wait for each other, and no program needs more registers than it may.

    Compiled are the candidates that the model puts first.
    """
    triton = pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
    graph = Graph()
    builder = GraphBuilder(graph)
    heads = TensorSpec((8, 16, 2048, 64), bfloat16)
    values = [builder.proxy(graph.placeholder(f"x{k}", spec=heads)) for k in range(4)]
    graph.output(tuple([r.node for r in attention_gradients(*values)]))
    program = TritonBackend().emit(decompose(graph, level="prims", keep=TritonBackend.keep))
    kernels = [k for k in program.kernels if "tl.dot" in k.source or "gl_mma" in k.source]
    assert len(kernels) == 4
    for kernel in kernels:
        compiled = compile_ptx(kernel, 90)
        assert "serialized" not in notices(triton, compiled.ptx), kernel.name
        assert "wgmma" in compiled.ptx or kernel.name == "t1_attention_backward"
        assert (compiled.spills or 0) <= 64


def test_gradients_of_activations_fit_into_registers(_private_cache: None) -> None:
    """As a whole the epilogue of this tile kept more than a kilobyte for each thread outside of them."""
    pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")

    def fn(g: Any, w: Any, h: Any, v: Any) -> Any:
        x = ops.convert_element_type(h, float32)
        normal = ops.mul(0.5, ops.add(1.0, ops.erf(ops.mul(x, math.sqrt(0.5)))))
        density = ops.mul(x, ops.mul(0.3989422804014327, ops.exp(ops.mul(-0.5, ops.mul(x, x)))))
        d = ops.mul(ops.convert_element_type(ops.matmul(g, w), float32), ops.add(normal, density))
        return ops.convert_element_type(d, bfloat16), ops.convert_element_type(ops.mul(x, normal), bfloat16)

    shapes = ((1024, 256), (256, 512), (1024, 512), (512, 256))
    graph = kept_graph(fn, tuple(floats(*s, dtype=BF16) for s in shapes))
    for candidate in (
        GemmCandidate(128, 128, 64, 4, 3, descriptors=True),
        GemmCandidate(128, 256, 64, 8, 3, persistent=True, descriptors=True),
    ):
        (kernel,) = emit_with(graph, candidate).kernels
        compiled = compile_ptx(kernel, 90)
        assert not compiled.spills and kernel.source.count("tl.split(") == 3


def test_what_other_products_read_is_made_on_the_tiles_of_one() -> None:
    """Gradients of an activation, whose sums over the rows are a kernel of their own: they are stored anyway."""

    def fn(g: Any, w: Any, h: Any, v: Any) -> Any:
        d = ops.mul(ops.matmul(g, w), ops.sigmoid(h))
        return ops.matmul(d, v), ops.sum(d, (0,))

    shapes = ((512, 64), (64, 96), (512, 96), (96, 64))
    graph = kept_graph(fn, tuple(floats(*s, dtype=BF16) for s in shapes))
    first, second = [step for step in build_program(graph, loops=GRID_LOOPS).steps if type(step) is Gemm]
    assert first.epilogue is not None and first.scratch and second.epilogue is None
    outside = [step for step in build_program(graph, loops=CPU_LOOPS).steps if type(step) is Gemm]
    assert outside[0].epilogue is None
    wide = kept_graph(fn, tuple(floats(*s) for s in shapes))  # the library's products of float32 are better
    assert all(step.epilogue is None for step in build_program(wide, loops=GRID_LOOPS).steps if type(step) is Gemm)
