"""One program for many sizes: shapes with symbols, run at several values, also at the awkward ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import assert_same

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float32, int64
from lamina_fx.symbolic import ShapeEnv, sym_float, sym_sqrt
from lamina_inductor.backends.cpp.sizes import SizeTerms, number
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.kernel import BindIndex, walk
from lamina_inductor.ir.program import Gemm, Program
from lamina_inductor.schedule.program import build_program
from lamina_prims import decompose, ops

RNG = np.random.default_rng(0)


def build(fn: Any, shapes: list[tuple[Any, ...]], dtypes: list[Any]) -> Program:
    """``"n"`` and ``"m"`` in a shape stand for sizes that are not known."""
    env = ShapeEnv()
    symbols = {name: env.create_symbol(hint, name, lower=1) for name, hint in (("n", 64), ("m", 48))}
    graph = Graph()
    builder = GraphBuilder(graph)
    specs = [TensorSpec([symbols.get(s, s) for s in shape], d) for shape, d in zip(shapes, dtypes, strict=True)]
    inputs = [builder.proxy(graph.placeholder(f"x{k}", spec=spec)) for k, spec in enumerate(specs)]
    result = fn(*inputs)
    graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
    return build_program(decompose(graph, level="prims"))


CASES: dict[str, tuple[Any, list[tuple[Any, ...]], int]] = {
    "pointwise": (lambda x, y: ops.add(ops.exp(x), y), [("n", "m"), ("n", "m")], 1),
    "broadcast": (lambda x, y: ops.add(ops.exp(x), y), [("n", "m"), ("m",)], 1),
    "softmax": (lambda x: ops.softmax(x, -1), [("n", "m")], 1),
    "softmax of known width": (lambda x: ops.softmax(x, -1), [("n", 7)], 1),
    "layer norm": (lambda x, w, b: ops.gelu(ops.layer_norm(x, (8,), w, b)), [("n", "m", 8), (8,), (8,)], 1),
    "sum of all": (lambda x: ops.sum(ops.exp(x)), [("n", "m")], 1),
    "sum of a vector": (lambda x: ops.sum(ops.exp(x)), [("n",)], 1),
    "column sum": (lambda x: ops.sum(x, 0), [("n", "m")], 1),
    "columns standardised": (lambda x: ops.sub(x, ops.mean(x, 0, True)), [("n", "m")], 1),
    "transpose": (lambda x, y: ops.add(ops.permute(x, (1, 0)), y), [("n", "m"), ("m", "n")], 1),
    "concatenation": (lambda x, y: ops.cat((ops.mul(x, 2.0), y), 0), [("n", 3), ("m", 3)], 1),
    "pad": (lambda x: ops.pad(x, (1, 0), (2, 0), 0.5), [("n", "m")], 1),
    "slice": (lambda x: ops.mul(ops.slice(x, 0, 1, None, 2), 2.0), [("n", "m")], 1),
    "product": (lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)), [("n", 6), (6, 5), (5,)], 1),
    "weight gradient": (
        lambda g, x: ops.matmul(ops.permute(ops.reshape(g, (-1, 4)), (1, 0)), ops.reshape(x, (-1, 8))),
        [("n", "m", 4), ("n", "m", 8)],
        0,  # reads the operands where they lie: no copy
    ),
    "merged dimensions": (lambda x: ops.mul(ops.reshape(ops.exp(x), (-1, 4)), 2.0), [("n", "m", 4)], 1),
}


@pytest.mark.parametrize("case", CASES)
def test_one_program_for_many_sizes(case: str) -> None:
    fn, shapes, kernels = CASES[case]
    program = build(fn, shapes, [float32] * len(shapes))
    assert len(program.kernels) == kernels
    for sizes in ({"n": 1, "m": 1}, {"n": 5, "m": 17}, {"n": 300, "m": 3}, {"n": 2, "m": 300}):
        arrays = [RNG.normal(size=[sizes.get(s, s) for s in shape]).astype(np.float32) for shape in shapes]
        (got,) = run_program(program, [a.copy() for a in arrays])
        assert_same(got, np.asarray(fn(*arrays)), 1e-3)


def test_size_terms_are_computed_once() -> None:
    env = ShapeEnv()
    n, m = (env.create_symbol(64, name, lower=0).expr for name in "nm")
    with SizeTerms() as terms:
        texts = [number(e) for e in (64 * ((n * m + 3) // 4) + 12, n * m, 5 + (n * m + 3) // 4 * 7, n // m, n + 1)]
    assert terms.definitions == [f"const i64 size_0 = {n}*{m};", "const i64 size_1 = (size_0 + 3) / 4;"]
    assert texts == ["64*size_1 + 12", "size_0", "7*size_1 + 5", f"{n} / {m}", f"{n} + 1"]


def test_index_out_of_range_raises_with_the_size() -> None:
    program = build(lambda w, i: ops.index(w, (i,)), [("n", 4), ("m",)], [float32, int64])
    table = RNG.normal(size=(5, 4)).astype(np.float32)
    (got,) = run_program(program, [table, np.array([0, -1, 4])])
    assert_same(got, table[[0, -1, 4]])
    with pytest.raises(IndexError, match="index: index 5 is out of bounds for dimension 0"):
        run_program(program, [table, np.array([0, 5])])


def test_an_index_that_is_loaded_is_no_size() -> None:
    """Loaded indices and sizes are symbols of one kernel: their names must differ."""
    env = ShapeEnv()
    graph = Graph()
    builder = GraphBuilder(graph)
    sizes = [env.create_symbol(5 + k, f"size {k}") for k in range(4)]
    table = builder.proxy(graph.placeholder("table", spec=TensorSpec(tuple(sizes[:2]), float32)))
    index = builder.proxy(graph.placeholder("index", spec=TensorSpec(tuple(sizes[2:]), int64)))
    graph.output((ops.exp(ops.index(table, (index,))).node,))
    program = build_program(decompose(graph, level="prims"))
    rng = np.random.default_rng(0)
    for rows, columns, a, b in ((7, 3, 2, 9), (1, 4, 5, 1)):
        x, i = rng.standard_normal((rows, columns)).astype(np.float32), rng.integers(0, rows, (a, b))
        for kernel in program.kernels:
            bound = {s.symbol.name for s in walk(kernel.body) if type(s) is BindIndex}
            assert bound and not bound & {s.name for s in kernel.sizes}
        np.testing.assert_allclose(run_program(program, [x, i])[0], np.exp(x[i]), rtol=1e-6)


def test_floats_computed_from_sizes_stay_symbolic() -> None:
    """A factor such as n / (n - 1) follows the sizes of a call, and asks for no guard."""
    env = ShapeEnv()
    n, m = (env.create_symbol(5 + k, f"size {k}") for k in range(2))
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((n, m), float32)))
    factor = sym_float(n * m) / sym_float(n * m - 1)
    graph.output((ops.mul(x, factor).node, ops.add(x, -1.0 / sym_sqrt(m)).node))
    graph = decompose(graph, level="prims")
    guards = len(env.guards)
    program = build_program(graph)
    assert len(env.guards) == guards
    for shape in ((5, 6), (2, 9), (31, 1)):
        array = RNG.standard_normal(shape).astype(np.float32)
        size = array.size
        got = run_program(program, [array])
        np.testing.assert_allclose(got[0], array * (size / (size - 1)), rtol=1e-6)
        np.testing.assert_allclose(got[1], array - 1 / np.sqrt(shape[1]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("batch", "length"), [("b", 64), (16, "s"), ("b", "s")])
def test_products_over_batches_read_their_operands_where_they_lie(batch: int | str, length: int | str) -> None:
    env, graph = ShapeEnv(), Graph()
    symbols = {name: env.create_symbol(16, name, lower=2) for name in ("b", "s")}
    shape = tuple(symbols.get(n, n) if isinstance(n, str) else n for n in (batch, length))
    builder = GraphBuilder(graph)
    x, y = (
        builder.proxy(graph.placeholder(name, spec=TensorSpec((*shape, width), float32)))
        for name, width in (("x", 48), ("y", 32))
    )
    graph.output((ops.dot_general(ops.mul(x, 2.0), y, ((0, 1), (0, 1)), ((), ())).node,))
    program = build_program(decompose(graph, level="prims"))
    (product,) = [step for step in program.steps if type(step) is Gemm]
    assert (product.left.strides, product.right.strides) == ((0, 1, 48), (0, 32, 1))
    assert {s.symbol.name: s.hint for s in program.sizes} == {
        size.expr.name: 16 for size in shape if type(size) is not int
    }


def test_templates_are_chosen_for_the_sizes_at_capture() -> None:
    """A sum over a million rows is split by a template, one over a few thousand is the library's."""

    def launches(rows: int) -> int:
        env, graph = ShapeEnv(), Graph()
        size = env.create_symbol(rows, "rows", lower=2)
        builder = GraphBuilder(graph)
        x = builder.proxy(graph.placeholder("x", spec=TensorSpec((size, 768), bfloat16)))
        y = builder.proxy(graph.placeholder("y", spec=TensorSpec((size, 3072), bfloat16)))
        graph.output((ops.dot_general(x, y, ((0,), (0,)), ((), ())).node,))
        return len(TritonBackend().emit(decompose(graph, level="prims")).launches)

    assert launches(1 << 20) == 2 and launches(1 << 14) == 0
