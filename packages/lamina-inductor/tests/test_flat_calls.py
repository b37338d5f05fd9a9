"""What stands behind a product that no template takes: a kernel over all elements, unless it needs rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TritonBackend, TritonProgram
from lamina_inductor.backends.triton.templates.expand import NoTemplates
from lamina_inductor.ir.interpret_program import run_program
from lamina_prims import decompose, ops

WEIGHTS = {(48, 64): 24, (32, 80): 24}


def updates(shapes: dict[tuple[Any, Any], int]) -> TritonProgram:
    """``w -= 0.1 * x.T @ g`` for each weight."""
    graph = Graph()
    builder = GraphBuilder(graph)

    def tensor(name: str, *shape: Any) -> Any:
        return builder.proxy(graph.placeholder(name, spec=TensorSpec(shape, float32)))

    writes = []
    for k, ((rows, columns), batch) in enumerate(shapes.items()):
        w, x, g = tensor(f"w{k}", rows, columns), tensor(f"x{k}", batch, rows), tensor(f"g{k}", batch, columns)
        writes.append((w, ops.sub(w, ops.mul(ops.matmul(ops.permute(x, (1, 0)), g), 0.1))))
    for w, value in writes:
        ops.copy_to(w, value)
    graph.output(())
    return TritonBackend().emit(decompose(graph, level="prims"), planner=NoTemplates())


def test_updates_behind_products_are_one_kernel_over_all_elements() -> None:
    emitted = updates(WEIGHTS)
    first, second = emitted.launches
    assert first.kernel is second.kernel and first.kernel.tile.r == 0 and "%" not in first.kernel.source
    assert (first.sizes, second.sizes) == ((48 * 64,), (32 * 80,))
    rng = np.random.default_rng(0)
    arrays, wanted = [], []
    for (rows, columns), batch in WEIGHTS.items():
        w, x, g = (
            rng.standard_normal(s).astype(np.float32) for s in ((rows, columns), (batch, rows), (batch, columns))
        )
        arrays += [w, x, g]
        wanted.append(w - 0.1 * (x.T @ g))
    run_program(emitted.program, arrays)
    for got, want in zip(arrays[::3], wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    env = ShapeEnv()
    rows, columns = (env.create_symbol(hint, name, lower=1) for name, hint in (("rows", 48), ("columns", 64)))
    emitted = updates({(rows, columns): 24, (columns, rows): 24})
    first, second = emitted.launches
    assert first.kernel is second.kernel and first.kernel.tile.r == 0
    assert first.sizes == second.sizes == ((rows * columns).expr,)


@pytest.mark.parametrize("columns", [96, 128, 3072])
def test_a_bias_keeps_rows_and_columns_that_fill_tiles(columns: int) -> None:
    graph = Graph()
    builder = GraphBuilder(graph)
    x, w, b = (
        builder.proxy(graph.placeholder(name, spec=TensorSpec(shape, float32)))
        for name, shape in (("x", (40, 16)), ("w", (16, columns)), ("b", (columns,)))
    )
    graph.output((ops.add(ops.matmul(x, w), b).node,))
    emitted = TritonBackend().emit(decompose(graph, level="prims"), planner=NoTemplates())
    (launch,) = emitted.launches
    assert (launch.kernel.tile.r, launch.grid) == ((128, (40,)) if columns == 128 else (0, (-(-40 * columns // 1024),)))
    assert (f"% {columns}" in launch.kernel.source) is (columns != 128)
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((40, 16), (16, columns), (columns,))]
    np.testing.assert_allclose(run_program(emitted.program, arrays)[0], arrays[0] @ arrays[1] + arrays[2], 1e-4, 1e-4)


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (1, 1)])
def test_one_row_or_column(shape: tuple[int, int]) -> None:
    emitted = updates({shape: 3})
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (shape, (3, shape[0]), (3, shape[1]))]
    want = arrays[0] - 0.1 * (arrays[1].T @ arrays[2])
    run_program(emitted.program, arrays)
    np.testing.assert_allclose(arrays[0], want, rtol=1e-5, atol=1e-5)
