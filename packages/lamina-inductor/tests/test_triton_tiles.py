"""Tiles of several axes: each access walks memory along an axis of the tile, whatever the others do."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from random_permuted import drawn
from tracing import compiled, copied, spec_of
from triton_corpus import floats, graph_of
from triton_symbolic import CASES
from triton_tiles import ROW_CASES, TILE_CASES

from lamina_fx import Graph, GraphBuilder, Interpreter, TensorSpec, bfloat16, float32, int8
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.backends.triton.tiles import Tile
from lamina_inductor.ir.interpret_program import run_program
from lamina_prims import decompose, operator, ops
from lamina_prims.modes import creating

COUNT, BATCH = int(os.environ.get("LAMINA_RANDOM_GRAPHS", "60")), 20


def same(got: Any, want: Any) -> None:
    wide = [np.asarray(a).astype(np.float64) for a in (got, want)]
    np.testing.assert_allclose(*wide, *((2e-2, 2e-2) if np.asarray(want).itemsize < 4 else (1e-4, 2e-5)))


@pytest.mark.parametrize("name", [*TILE_CASES, *ROW_CASES])
def test_what_kernels_compute(name: str) -> None:
    """By the interpreter of kernel IR, beside the loops of a CPU."""
    fn, inputs = (TILE_CASES | ROW_CASES)[name]
    program = TritonBackend().emit(graph_of(fn, inputs))
    assert not program.externs
    _, wanted = compiled(fn, *inputs)
    for got, want in zip(run_program(program.program, [copied(a) for a in inputs]), wanted, strict=True):
        same(got, want)


@pytest.mark.parametrize("name", TILE_CASES)
def test_no_access_divides_an_index_of_the_tile(name: str) -> None:
    fn, inputs = TILE_CASES[name]
    (kernel,) = TritonBackend().emit(graph_of(fn, inputs)).kernels
    axes = re.findall(r"(\w+) = .*tl\.arange", kernel.source)
    assert len(axes) in (2, 3) and len(axes) == len(kernel.tile.dims)
    accesses = [line for line in kernel.source.splitlines() if "tl.load(" in line or "tl.store(" in line]
    divided = rf"\b({'|'.join(axes)})\b\)* (//|%)"
    assert not [line for line in accesses if re.search(divided, line)]


def test_large_tensors_have_wide_indices() -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((1 << 16, 1 << 16), int8)))
    graph.output((ops.clone(ops.permute(x, (1, 0)), memory_format="contiguous_format").node,))
    (launch,) = TritonBackend().emit(decompose(graph, level="prims")).launches
    assert "program = tl.program_id(0).to(tl.int64)" in launch.kernel.source
    assert launch.kernel.tile.dims == "yx" and launch.grid == ((1 << 32) // launch.kernel.tile.area,)


def test_half_numbers_of_unknown_even_sizes_move_16_bytes_at_once() -> None:
    (launch,) = TritonBackend().emit(CASES["a transposed operand and half numbers"].graph()).launches
    text = launch.kernel.source
    assert "    if (n_s0 % 8 == 0) & (n_s1 % 8 == 0):\n        n_s0 = n_s0 // 8 * 8\n" in text
    assert text.count("tl.store(") == 2
    (launch,) = TritonBackend().emit(CASES["a transposed operand"].graph()).launches
    assert "% 8" not in launch.kernel.source


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_orders_of_memory(first: int) -> None:
    for seed in range(first, first + BATCH):
        fn, arrays = drawn(seed)
        graph = graph_of(fn, tuple(arrays))
        program = TritonBackend().emit(graph)
        with creating(None):
            wanted = Interpreter(graph, operator).run(*[copied(a) for a in arrays])
        try:
            for got, want in zip(run_program(program.program, [copied(a) for a in arrays]), wanted, strict=True):
                same(got, np.asarray(want))
        except BaseException as problem:
            problem.add_note(f"seed {seed}")
            raise


WRITES: dict[str, tuple[Any, int]] = {
    "in place": (lambda x, y: ((), [(x, ops.add(x, ops.permute(y, (1, 0))))]), 1),
    "the old value is returned": (
        lambda x, y: ((ops.mul(x, ops.permute(y, (1, 0))),), [(x, ops.neg(ops.permute(y, (1, 0))))]), 1,
    ),
    "its own transposed value": (lambda x, y: ((), [(x, ops.add(x, ops.permute(x, (1, 0))))]), 2),
    "both are turned": (lambda x, y: ((), [(x, ops.permute(y, (1, 0))), (y, ops.permute(x, (1, 0)))]), 3),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITES)
def test_inputs_are_written_after_they_were_read(case: str) -> None:
    fn, most = WRITES[case]
    graph, arrays = Graph(), [floats(70, 70), floats(70, 70)]
    builder = GraphBuilder(graph)
    results, writes = fn(*[builder.proxy(graph.placeholder(f"x{k}", spec=spec_of(a))) for k, a in enumerate(arrays)])
    for target, value in writes:
        ops.copy_to(target, value)
    graph.output(tuple(r.node for r in results))
    program = TritonBackend().emit(decompose(graph, level="prims"))
    assert len(program.launches) <= most
    wanted = [np.array(v) for _, v in fn(*arrays)[1]]
    run_program(program.program, arrays)
    for want, array in zip(wanted, arrays, strict=False):
        same(array, want)
    for kernel in program.kernels:
        stored = re.findall(r"tl\.store\((b\d)", kernel.source)
        waits = any(f"tl.load({b}" in kernel.source for b in stored) and kernel.tile.y > 0
        assert ("tl.debug_barrier()" in kernel.source) == waits


def turned(*shape: int) -> tuple[tuple[int, ...], Any]:
    return shape, lambda x: ops.contiguous(ops.permute(x, (1, 0)))


TILES: dict[str, tuple[tuple[tuple[int, ...], Any], Any, Tile]] = {
    "squares": (turned(8192, 8192), float32, Tile(64, y=64, warps=8)),
    "larger ones of half numbers": (turned(8192, 8192), bfloat16, Tile(128, y=128, warps=16)),
    "longer rows where they begin anywhere": (turned(8191, 8193), float32, Tile(128, y=64, warps=8)),
    "small ones where there are few": (turned(512, 512), float32, Tile(32, y=32, warps=2)),
    "few rows": (turned(1 << 20, 3), float32, Tile(1024, y=4, warps=8)),
    "bytes of few channels, flat": (turned(1 << 20, 3), int8, Tile(1024, warps=4)),
    "small blocks, flat": (
        ((1 << 16, 16, 16), lambda x: ops.contiguous(ops.permute(x, (0, 2, 1)))), float32, Tile(1024, warps=4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TILES)
def test_tiles(case: str) -> None:
    (shape, fn), dtype, tile = TILES[case]
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec(shape, dtype)))
    graph.output((fn(x).node,))
    (kernel,) = TritonBackend().emit(decompose(graph, level="prims")).kernels
    assert kernel.tile == tile


def test_values_of_many_neighbours_are_not_read_across() -> None:
    """Heads of 64 channels side by side and a number of each head and row: whole lines of channels, as without it."""
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((128, 2048, 64), bfloat16)))
    y = GraphBuilder(graph).proxy(graph.placeholder("y", spec=TensorSpec((128, 2048, 1), float32)))
    total = ops.sum(ops.where(ops.gt(y, 0.0), x, 0.0), 1, keepdim=True)
    graph.output((ops.add(x, total).node,))
    (launch,) = TritonBackend().emit(decompose(graph, level="prims")).launches
    assert launch.kernel.tile.x >= 32
