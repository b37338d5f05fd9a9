from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tracing import compiled
from triton_corpus import CASES, floats, graph_of, standardise

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import MissingTriton, TritonBackend, compile_ptx
from lamina_inductor.backends.triton.prelude import functions_for
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.backends.triton.tiles import Tile
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.tune.candidates import LibraryCandidate
from lamina_prims import decompose, ops

GOLDEN = ("layer norm and gelu", "softmax of long rows", "column standardise", "odd full sums", "dropout", "embedding")


def emitted(name: str) -> Any:
    fn, inputs, _ = CASES[name]
    return TritonBackend().emit(graph_of(fn, inputs))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_kernels(name: str, golden: Any) -> None:
    golden(f"triton_{name.replace(' ', '_')}.py.txt", "\n\n".join(k.source for k in emitted(name).kernels))


@pytest.mark.parametrize("name", CASES)
def test_kernels_and_what_they_compute(name: str) -> None:
    """The loops for a grid mean what the graph means, by the interpreter of kernel IR."""
    fn, inputs, count = CASES[name]
    program = emitted(name)
    assert len(program.kernels) == count
    assert not program.externs
    results = run_program(program.program, [np.array(a) for a in inputs])
    _, wanted = compiled(fn, *inputs)
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(got).astype(np.float64),
            want.astype(np.float64),
            *((1e-2,) if want.itemsize < 4 else (2e-5, 1e-6)),
        )


def test_names_say_operators_and_comments_the_line() -> None:
    graph = graph_of(lambda x: ops.exp(ops.sin(x)), (floats(8),))
    for node in graph.nodes:
        node.meta["source"] = ("model.py", 12, "forward")
    (kernel,) = TritonBackend().emit(graph).kernels
    assert kernel.name == "k0_sin_exp"
    assert "    # sin, exp at model.py:12\n" in kernel.source


def test_equal_tensors_share_a_kernel() -> None:
    program = emitted("adamw")
    assert len(program.kernels) == 1
    assert [launch.sizes for launch in program.launches] == [(33,), (64,), (1000,)]
    assert [launch.grid for launch in program.launches] == [(1,), (1,), (1,)]


def test_products_of_a_library_are_steps_of_their_own() -> None:
    def fn(x: Any, y: Any) -> Any:
        return ops.relu(ops.matmul(x, y))

    graph = graph_of(fn, (floats(4, 5), floats(5, 6)))
    library = TritonBackend(TemplatePlanner(choose=lambda problem, ranked, show: LibraryCandidate()))
    program = library.emit(graph)
    assert [e.operator for e in program.externs] == ["dot_general"]
    assert [k.name for k in program.kernels] == ["k0_maximum"]
    with pytest.raises(NotImplementedError, match=r"^dot_general: the Triton backend generates no kernel for it;"):
        library.emit(graph, externs=False)


def test_operators_without_code_are_steps_with_the_line() -> None:
    graph = graph_of(lambda x: ops.exp(ops.digamma(x)), (floats(4),))
    for node in graph.nodes:
        node.meta["source"] = ("model.py", 3, "f")
    with pytest.raises(NotImplementedError, match=r"^digamma \(at model.py:3\): "):
        TritonBackend().emit(graph, externs=False)


REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "complex numbers": (
        lambda x: ops.cat((x, x), 0), (floats(4).astype(np.complex64),), "^cat: Triton has no values of dtype complex",
    ),
    "small atomics": (
        lambda x, i, u: ops.index_put(x, (i,), u, True),
        (np.zeros(4, np.int8), np.array([1, 1]), np.ones(2, np.int8)),
        "^index_put: Triton has no atomic add on int8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_triton_has_not_is_a_step_of_its_own(case: str) -> None:
    fn, inputs, message = REFUSED[case]
    graph = graph_of(fn, inputs)
    program = TritonBackend().emit(graph)
    assert not program.launches and len(program.externs) == 1
    with pytest.raises(NotImplementedError, match=message):
        TritonBackend().emit(graph, externs=False)


def test_large_buffers_have_64_bit_indices() -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec(((1 << 31) + 1,), float32)))
    graph.output((ops.exp(x).node,))
    (kernel,) = TritonBackend().emit(graph).kernels
    assert "tl.program_id(0).to(tl.int64)" in kernel.source
    assert ("n", "i64") in kernel.parameters


def of_shape(fn: Any, *shape: int) -> Graph:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec(shape, float32)))
    graph.output((fn(x).node,))
    return decompose(graph, level="prims")


TILES: dict[str, tuple[Any, tuple[int, ...], tuple[Tile, ...]]] = {
    "short rows side by side": (lambda x: ops.softmax(x, -1), (1 << 20, 64), (Tile(64, 64, True, 4),)),
    "a row in a tile": (lambda x: ops.softmax(x, -1), (16384, 4096), (Tile(1, 4096, True, 4),)),
    "a row in steps": (lambda x: ops.softmax(x, -1), (512, 40000), (Tile(1, 2048, False, 8),)),
    "few long rows in stages": (
        lambda x: ops.softmax(x, -1), (8, 1 << 22),
        (Tile(1, 4096, True, 4), Tile(8, 1024, True, 16), Tile(1, 4096, True, 4)),
    ),
    "one pass in steps": (lambda x: ops.sum(x, 1), (16384, 4096), (Tile(1, 2048, False, 8),)),
    "columns in a tile": (standardise, (128, 4096), (Tile(32, 128, True, 8),)),
    "columns in steps": (standardise, (256, 1 << 15), (Tile(32, 128, False, 4),)),
    "few columns in stages": (
        standardise, (1 << 16, 128),
        (Tile(128, 32, False, 4, stages=3), Tile(8, 1024, True, 16), Tile(128, 32, True, 4)),
    ),
    "columns in stages": (
        standardise, (4096, 4096),
        (Tile(1024, 4, False, 4, stages=3), Tile(32, 128, True, 8), Tile(1024, 4, True, 4)),
    ),
    "few columns in two phases": (
        lambda x: ops.sum(x, 0), (65536, 1024), (Tile(32, 128, False, 4), Tile(32, 128, True, 8)),
    ),
    "everything in two phases": (ops.sum, (1 << 26,), (Tile(1, 2048, False, 8), Tile(1, 2048, False, 8))),
    "pointwise": (ops.exp, (4096, 4096), (Tile(1024, 0, False, 4),)),
}  # fmt: skip


@pytest.mark.parametrize("case", TILES)
def test_tiles(case: str) -> None:
    fn, shape, tiles = TILES[case]
    assert tuple(k.tile for k in TritonBackend().emit(of_shape(fn, *shape)).kernels) == tiles


def test_symbolic_sizes_are_parameters() -> None:
    env = ShapeEnv()
    rows = env.create_symbol(6, "x.shape[0]")
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((rows, 40), float32)))
    graph.output((ops.softmax(x, -1).node,))
    (launch,) = TritonBackend().emit(decompose(graph, level="prims")).launches
    assert launch.grid == ((rows.expr + 63) // 64,) and launch.sizes == (rows.expr,)  # short rows, together
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((rows, 40), float32)))
    graph.output((ops.softmax(x, 0).node,))
    first, second, last = TritonBackend().emit(decompose(graph, level="prims")).launches
    assert first.sizes == second.sizes == last.sizes == (rows.expr,)
    assert first.kernel.parameters[-1] == ("n_s0", "i32")
    wide = TritonBackend().emit(decompose(graph, level="prims"), index_bits=64).launches[0]
    assert wide.kernel.parameters[-1] == ("n_s0", "i64")
    assert first.grid == ((rows.expr + 511) // 512,) and last.grid == ((rows.expr + 63) // 64,)


@pytest.mark.parametrize("count", [1, 3, 700])
def test_a_symbolic_number_of_elements_is_summed_by_blocks(count: int) -> None:
    env = ShapeEnv()
    graph = Graph()
    spec = TensorSpec((env.create_symbol(6, "x.shape[0]"), 40), float32)
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=spec))
    graph.output((ops.sum(x).node, ops.amax(x).node))
    program = TritonBackend().emit(decompose(graph, level="prims"))
    assert [launch.kernel.name for launch in program.launches] == ["k0_sum_amax_0", "k0_sum_amax_1"]
    array = floats(count, 40)
    total, most = run_program(program.program, [array])
    np.testing.assert_allclose(total, array.sum(), rtol=1e-4, atol=1e-3)
    assert most == array.max()


@pytest.mark.parametrize(("shape", "axis"), [((5000, 6), 0), ((3, 40000), 1)])
def test_variances_of_blocks_do_not_cancel(shape: tuple[int, int], axis: int) -> None:
    """The mean is 1000 times the standard deviation: a sum of squares would have no digit left."""

    def fn(x: Any) -> Any:
        variance = ops.var(x, axis, correction=0, keepdim=True)
        return variance, ops.mul(ops.sub(x, ops.mean(x, axis, True)), ops.rsqrt(variance))

    x = floats(*shape) + np.float32(1000)
    program = TritonBackend().emit(graph_of(fn, (x,)))
    assert len(program.kernels) == 3
    variance, normal = run_program(program.program, [x])
    wide = x.astype(np.float64)
    np.testing.assert_allclose(variance, wide.var(axis, keepdims=True), rtol=1e-5)
    wanted = (wide - wide.mean(axis, keepdims=True)) / wide.std(axis, keepdims=True)
    np.testing.assert_allclose(normal, wanted, atol=2e-4)  # the mean itself has a rounding error of 6e-5


def test_compiling_without_triton_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingTriton, match=r"pip install 'lamina\[cuda\]\'"):
        compile_ptx(emitted("dropout").kernels[0], 90)


def test_nothing_imports_triton_unasked() -> None:
    code = "import sys, lamina_inductor.backends.triton; assert 'triton' not in sys.modules, 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("size", "masked"), [(4096, False), (4095, True)])
def test_tiles_that_all_calls_fill_have_no_mask(size: int, masked: bool) -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((size,), float32)))
    graph.output((ops.exp(x).node,))
    (kernel,) = TritonBackend().emit(graph).kernels
    assert ("inside_x" in kernel.source) is masked


def test_rounding_to_bfloat16_on_the_way_takes_pairs() -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((4096,), bfloat16)))
    wide = ops.convert_element_type(x, float32)
    narrow = ops.convert_element_type(ops.div(wide, 3.0), bfloat16)
    result = ops.div(ops.convert_element_type(narrow, float32), 4.0)
    graph.output((ops.convert_element_type(result, bfloat16).node,))
    (kernel,) = TritonBackend().emit(graph).kernels
    lines = [line.strip().partition(" = ")[2] for line in kernel.source.splitlines()]
    assert "lm_widened(v1)" in lines and "lm_bfloat16(v3)" in lines and "v5 * (0.25)" in lines
    assert kernel.source.count(".to(tl.bfloat16)") == 2  # the one on the way is read by nothing


@pytest.mark.parametrize(("dtype", "fast"), [(bfloat16, True), (float32, False)])
def test_a_row_of_half_numbers_is_divided_once(dtype: Any, fast: bool) -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((64, 4096), dtype)))
    graph.output((ops.softmax(x, -1).node,))
    (kernel,) = TritonBackend().emit(decompose(graph, level="prims")).kernels
    assert ("lm_row_quotient(" in kernel.source) is fast


def test_quotients_of_rows_are_right_for_all_sizes_of_divisors() -> None:
    """The prelude's text, run by NumPy in float32."""
    language = SimpleNamespace(abs=np.abs, where=lambda c, a, b: np.where(c, np.float32(a), np.float32(b)))
    names: dict[str, Any] = {"tl": language, "triton": SimpleNamespace(jit=lambda fn: fn)}
    exec(functions_for("lm_row_quotient"), names)
    sizes = [0.0, -0.0, 1e-42, 1e-38, 3e-20, 1.0, 7.0, 1e20, 1e38, 3e38, np.inf, np.nan]
    x, row = np.meshgrid(np.float32([*sizes, *[-s for s in sizes[2:]]]), np.float32(sizes))
    with np.errstate(all="ignore"):
        got, want = names["lm_row_quotient"](x, row), x / row
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=3e-45)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


def test_rows_are_loaded_before_they_are_reduced_and_make_way_for_a_table() -> None:
    graph = Graph()
    build = GraphBuilder(graph)
    x = build.proxy(graph.placeholder("x", spec=TensorSpec((8, 4096, 32, 128), float32)))
    table = build.proxy(graph.placeholder("table", spec=TensorSpec((4096, 1, 128), float32)))
    graph.output((ops.mul(ops.div(x, ops.mean(ops.mul(x, x), -1, True)), table).node,))
    (kernel,) = TritonBackend().emit(decompose(graph, level="prims")).kernels
    loads = [line for line in kernel.source.splitlines() if "tl.load" in line]
    assert len(loads) == 2 and kernel.source.index(loads[1]) < kernel.source.index("tl.sum")
    assert ["evict_first" in line for line in loads] == ["(b0" in line for line in loads]
