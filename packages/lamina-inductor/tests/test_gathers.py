"""What is looked up by computed indices: tables of places, checks of indices, and scatters that change what they are
given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import copied, spec_of, trace

from lamina_fx import Graph, GraphBuilder, int64
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.kernel import BindIndex, Load, Store, walk
from lamina_inductor.ir.program import CopyBuffer, Program
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import CPU_LOOPS, GRID_LOOPS, LoopStyle
from lamina_prims import decompose, ops

RNG = np.random.default_rng(5)
STYLES = pytest.mark.parametrize("loops", [CPU_LOOPS, GRID_LOOPS], ids=["cpu", "grid"])


def supports(op: str, dtype: Any) -> bool:
    return True


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def places(count: int, size: int) -> np.ndarray:
    return RNG.integers(0, size, count)


def built(loops: LoopStyle, fn: Any, *args: Any) -> Program:
    """The program; what it computes is what the operators' references do."""
    graph, arrays = trace(fn, *args)
    program = build_program(graph, supports=supports, loops=loops)
    wanted = fn(*[np.array(a) for a in arrays])
    got = run_program(program, [copied(a) for a in arrays])
    for value, want in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(want), 2e-5, 2e-5)
    return program


def statements(program: Program) -> list[Any]:
    return [s for kernel in program.kernels for s in walk(kernel.body)]


def sampled(mode: str, padding: str) -> Any:
    return lambda x, g: ops.grid_sample(x, g, mode, padding, False)


# -- tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_places_of_images_are_computed_by_the_kernel_that_reads_them(mode: str, padding: str) -> None:
    grid = RNG.uniform(-1.3, 1.3, (2, 9, 7, 2)).astype(np.float32)
    program = built(GRID_LOOPS, sampled(mode, padding), floats(2, 16, 8, 6), grid)
    assert len(program.kernels) == 1
    assert not program.checks
    loads = {(s.buffer, s.index) for s in statements(program) if type(s) is Load}
    assert len(loads) == 2 + {"nearest": 1, "bilinear": 4, "bicubic": 16}[mode]


def test_on_the_cpu_tables_are_stored() -> None:
    program = built(CPU_LOOPS, sampled("bilinear", "zeros"), floats(1, 16, 8, 6), floats(1, 9, 7, 2))
    assert len(program.kernels) == 2


def test_tables_of_functions_are_stored() -> None:
    def turned(x: Any, angle: Any) -> Any:
        return ops.mul(x, ops.cos(ops.sin(ops.mul(angle, 0.5))))

    program = built(GRID_LOOPS, turned, floats(64, 33), floats(33))
    assert len(program.kernels) == 2


def test_few_channels_share_no_tables() -> None:
    program = built(GRID_LOOPS, sampled("bilinear", "zeros"), floats(2, 3, 8, 6), floats(2, 9, 7, 2))
    assert len(program.kernels) == 2


def test_tables_that_are_results_are_stored_once() -> None:
    def both(x: Any, y: Any) -> Any:
        share = ops.add(ops.mul(y, 2.0), ops.floor(y))
        return ops.mul(x, ops.sub(share, ops.mul(share, share))), share

    assert len(built(GRID_LOOPS, both, floats(40, 50), floats(50)).outputs) == 2


def test_a_program_looks_up_neighbours_in_one_image() -> None:
    graph, _ = trace(sampled("bicubic", "zeros"), floats(8, 64, 128, 128), floats(8, 128, 128, 2))
    (kernel,) = TritonBackend().emit(graph).kernels
    assert (kernel.tile.y, kernel.tile.x) == (4096, 1)
    few, _ = trace(sampled("bicubic", "zeros"), floats(1, 16, 64, 64), floats(1, 64, 64, 2))
    (kernel,) = TritonBackend().emit(few).kernels
    assert (kernel.tile.y, kernel.tile.x) == (128, 1)


def test_what_is_added_at_a_place_is_shared_by_channels_in_a_tile() -> None:
    def spread(ct: Any, place: Any, base: Any) -> Any:
        inside = ops.logical_and(ops.lt(place, 30.0), ops.ge(place, 0.0))
        scale = place
        for step in range(8):
            scale = ops.mul(ops.add(scale, float(step)), ops.sub(place, scale))
        at = ops.convert_element_type(ops.floor(ops.where(inside, place, 0.0)), int64)
        index = ops.expand(ops.reshape(ops.clamp(at, 0, 30), (1, 512)), (64, 512))
        return ops.scatter_add(base, 1, index, ops.where(inside, ops.mul(ct, scale), 0.0))

    graph, _ = trace(spread, floats(64, 512), floats(512), floats(64, 31))
    kernel = TritonBackend().emit(graph).kernels[-1]
    assert (kernel.tile.y, kernel.tile.x) == (128, 16)
    assert 'sem="relaxed"' in kernel.source


# -- checks ----------------------------------------------------------------------------------------------


@STYLES
def test_indices_that_are_seen_to_be_in_range_are_not_checked(loops: LoopStyle) -> None:
    def clamped(x: Any, i: Any) -> Any:
        return ops.index_select(x, 0, ops.clamp(i, 0, 6))

    program = built(loops, clamped, floats(7, 5), np.array([-4, 0, 3, 9, 6]))
    assert not program.checks
    binds = [s for s in statements(program) if type(s) is BindIndex]
    assert binds
    assert all(s.size is None and not s.wrap for s in binds)


@STYLES
@pytest.mark.parametrize(("low", "high"), [(0, 7), (-1, 6)])
def test_others_are(loops: LoopStyle, low: int, high: int) -> None:
    graph, arrays = trace(lambda x, i: ops.index(x, (ops.clamp(i, low, high),)), floats(7, 5), np.array([0, 3, 5]))
    program = build_program(graph, supports=supports, loops=loops)
    assert len(program.checks) == 1
    (got,) = run_program(program, arrays)
    np.testing.assert_array_equal(got, arrays[0][[0, 3, 5]])


# -- scatters --------------------------------------------------------------------------------------------


def copies_of_input(program: Program) -> int:
    """Stores that set all of what a scatter begins with, and copies."""
    scatters = [k for k in program.kernels if "scatter" in k.name or "index_put" in k.name]
    phases = [k.body for k in scatters]
    first = sum(len(body) == 2 for body in phases)
    return first + sum(type(s) is CopyBuffer for s in program.steps)


def chain(count: int) -> Any:
    def run(x: Any, *rest: Any) -> Any:
        value = ops.mul(x, 2.0)
        for i, u in zip(rest[:count], rest[count:], strict=True):
            value = ops.index_put(value, (i,), u, True)
        return value

    return run


@STYLES
def test_a_chain_of_scatters_has_one_place(loops: LoopStyle) -> None:
    x, indices = floats(9, 4), [places(5, 9) for _ in range(3)]
    program = built(loops, chain(3), x, *indices, *[floats(5, 4) for _ in range(3)])
    assert copies_of_input(program) == 0
    assert not [b for b in program.buffers.values() if b.storage == "workspace"]
    assert len(program.kernels) == (2 if loops is GRID_LOOPS else 4)


@STYLES
def test_scatters_into_zeros_fill_once(loops: LoopStyle) -> None:
    graph = Graph()
    builder = GraphBuilder(graph)
    arrays = [places(6, 9), places(6, 9), floats(6, 4), floats(6, 4)]
    inputs = [builder.proxy(graph.placeholder(f"x{k}", spec=spec_of(a))) for k, a in enumerate(arrays)]
    zeros = builder.proxy(graph.call_function("full", ((9, 4), 0.0), {}, spec=spec_of(np.zeros((9, 4), np.float32))))
    first = ops.index_put(zeros, (inputs[0],), inputs[2], True)
    graph.output((ops.index_put(first, (inputs[1],), inputs[3], True).node,))
    program = build_program(decompose(graph, level="prims"), supports=supports, loops=loops)
    (got,) = run_program(program, [a.copy() for a in arrays])
    want = np.zeros((9, 4), np.float32)
    np.add.at(want, arrays[0], arrays[2])
    np.add.at(want, arrays[1], arrays[3])
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    fills = [s for s in statements(program) if type(s) is Store and s.mode == "set"]
    assert len(fills) == 1
    assert not [s for s in statements(program) if type(s) is Load and s.buffer == "out0"]


@STYLES
def test_what_is_read_again_is_copied(loops: LoopStyle) -> None:
    def later(x: Any, i: Any, u: Any) -> Any:
        y = ops.mul(x, 2.0)
        z = ops.index_put(y, (i,), u, True)
        return ops.index_put(z, (i,), ops.index_select(ops.exp(z), 0, i), False), y

    built(loops, later, floats(9, 4), np.array([3, 1, 7]), floats(3, 4))


@STYLES
def test_updates_made_of_the_input_are_read_before_it_changes(loops: LoopStyle) -> None:
    def shifted(x: Any, i: Any) -> Any:
        y = ops.mul(x, 2.0)
        return ops.index_put(y, (i,), ops.flip(y, (0,)), True)

    built(loops, shifted, floats(9, 4), np.arange(9))


@STYLES
def test_results_that_are_inputs_of_scatters(loops: LoopStyle) -> None:
    def given(x: Any, i: Any, u: Any, v: Any) -> Any:
        first = ops.index_put(ops.exp(x), (i,), u, True)
        second = ops.index_put(first, (i,), v, True)
        return first, second, ops.reshape(second, (4, 9)), ops.reshape(ops.index_put(x, (i,), v, True), (36,))

    built(loops, given, floats(9, 4), np.array([3, 1, 3]), floats(3, 4), floats(3, 4))


@STYLES
def test_reshaped_results_are_where_the_scatter_writes(loops: LoopStyle) -> None:
    def folded(x: Any, i: Any, u: Any) -> Any:
        return ops.reshape(ops.index_put(x, (i,), u, True), (3, 3, 4))

    program = built(loops, folded, floats(9, 4), np.array([3, 1, 3]), floats(3, 4))
    assert len(program.kernels) == 1
    assert not [b for b in program.buffers.values() if b.storage == "workspace"]


def test_updates_are_computed_where_they_are_scattered() -> None:
    def spread(i: Any, u: Any, w: Any, x: Any) -> Any:
        return ops.index_put(x, (i,), ops.where(ops.gt(w, 0.0), ops.mul(u, w), 0.0), True)

    program = built(GRID_LOOPS, spread, places(40, 9), floats(40, 16), floats(40, 1), floats(9, 16))
    assert len(program.kernels) == 1
    assert not [b for b in program.buffers.values() if b.storage == "workspace"]


def test_scatters_with_other_updates_and_modes_have_kernels_of_their_own() -> None:
    def several(x: Any, i: Any, u: Any, j: Any, v: Any) -> Any:
        first = ops.index_put(ops.exp(x), (i,), u, True)
        second = ops.index_put(first, (j,), v, True)
        return ops.index_put(second, (j,), v, False)

    program = built(GRID_LOOPS, several, floats(9, 4), places(5, 9), floats(5, 4), np.array([2, 8]), floats(2, 4))
    assert len(program.kernels) == 4
    assert copies_of_input(program) == 0


@STYLES
def test_an_input_that_is_overwritten_is_read_in_time(loops: LoopStyle) -> None:
    """The first scatter of a chain reads what the program then writes to."""
    graph = Graph()
    builder = GraphBuilder(graph)
    arrays = [floats(9, 4), places(5, 9), floats(5, 4), floats(5, 4)]
    x, i, u, v = (builder.proxy(graph.placeholder(f"x{k}", spec=spec_of(a))) for k, a in enumerate(arrays))
    first = ops.index_put(ops.exp(x), (i,), u, True)
    new = ops.mul(u, 3.0)
    second = ops.index_put(first, (i,), ops.add(v, new), True)
    ops.copy_to(u, new)
    graph.output((second.node,))
    program = build_program(decompose(graph, level="prims"), supports=supports, loops=loops)
    after = [a.copy() for a in arrays]
    (got,) = run_program(program, after)
    want = np.exp(arrays[0])
    np.add.at(want, arrays[1], arrays[2] * 4 + arrays[3])
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    np.testing.assert_allclose(after[2], arrays[2] * 3, 1e-6)


@STYLES
def test_gradients_of_samples(loops: LoopStyle) -> None:
    """Sums by index of several tables, as ``grid_sample`` has them."""

    def spread(ct: Any, place: Any, base: Any) -> Any:
        count, channels = ct.shape[1], ct.shape[0]
        total = base
        for step in (0, 1, 3):
            inside = ops.lt(ops.add(place, float(step)), 30.0)
            at = ops.convert_element_type(
                ops.where(inside, ops.add(place, float(step)), 0.0), spec_of(places(1, 2)).dtype
            )
            index = ops.expand(ops.reshape(ops.clamp(at, 0, 30), (1, count)), (channels, count))
            total = ops.scatter_add(total, 1, index, ops.where(inside, ops.mul(ct, float(step + 1)), 0.0))
        return total

    program = built(loops, spread, floats(16, 40), np.floor(RNG.uniform(0, 31, 40)).astype(np.float32), floats(16, 31))
    if loops is GRID_LOOPS:
        assert len(program.kernels) == 1
        assert not program.checks
