"""``copy_to`` at the end of a graph: the kernel that makes the value writes the input, unless somebody still needs
the old one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import spec_of

from lamina_fx import Graph, GraphBuilder
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.program import CopyBuffer, Gemm, Launch, Program
from lamina_inductor.schedule.program import build_program
from lamina_prims import decompose, ops

RNG = np.random.default_rng(0)


def build(fn: Any, arrays: list[np.ndarray]) -> Program:
    """``fn`` returns (results, pairs of written input and value)."""
    graph = Graph()
    builder = GraphBuilder(graph)
    inputs = [builder.proxy(graph.placeholder(f"x{k}", spec=spec_of(a))) for k, a in enumerate(arrays)]
    results, writes = fn(*inputs)
    for target, value in writes:
        ops.copy_to(target, value)
    graph.output(tuple(r.node for r in results))
    return build_program(decompose(graph, level="prims"))


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def updated(fn: Any, arrays: list[np.ndarray]) -> tuple[Program, list[np.ndarray], tuple[Any, ...], list[np.ndarray]]:
    """(program, inputs after it, its results, inputs as they should be)."""
    program = build(fn, arrays)
    after = [a.copy() for a in arrays]
    got = run_program(program, after)
    wanted = [a.copy() for a in arrays]
    _, writes = fn(*arrays)
    for target, value in writes:
        for k, a in enumerate(arrays):
            if a is target:
                wanted[k] = np.asarray(value)
    return program, after, got, wanted


CASES: dict[str, tuple[Any, tuple[tuple[int, ...], ...], int]] = {
    "in place": (lambda x: ((), [(x, ops.mul(x, 2.0))]), ((5,),), 0),
    "from another": (lambda x, y: ((), [(x, ops.exp(y))]), ((5,), (5,)), 0),
    "normalised rows": (lambda x: ((), [(x, ops.softmax(x, -1))]), ((5, 7),), 0),
    "transposed needs a copy": (lambda x: ((), [(x, ops.permute(x, (1, 0)))]), ((5, 5),), 1),
    "flipped needs a copy": (lambda x: ((), [(x, ops.flip(x, (0,)))]), ((6,),), 1),
    "swap needs a copy": (lambda x, y: ((), [(x, ops.mul(y, 1.5)), (y, ops.mul(x, 0.5))]), ((5,), (5,)), 1),
    "the old value is returned": (lambda x: ((ops.sum(ops.exp(x)),), [(x, ops.mul(x, 2.0))]), ((3000,),), 0),
    "columns centred": (lambda x: ((), [(x, ops.sub(x, ops.mean(x, 0, True)))]), ((40, 300),), 0),
    "product": (lambda x, y: ((), [(x, ops.matmul(x, y))]), ((4, 4), (4, 4)), 1),
    "read by the rows, written when they are over": (
        lambda x, w: ((ops.sum(ops.mul(x, w), 1),), [(w, ops.sub(w, ops.sum(x, 0)))]),
        ((40, 30), (30,)),
        0,
    ),
    "sum over everything first": (lambda x: ((), [(x, ops.div(x, ops.sum(x)))]), ((20000,),), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_written(case: str) -> None:
    fn, shapes, copies = CASES[case]
    program, after, _, wanted = updated(fn, [floats(*s) for s in shapes])
    for have, want in zip(after, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)
    assert sum(type(s) is CopyBuffer for s in program.steps) == copies


def test_results_are_of_the_old_value() -> None:
    x = floats(3000)
    _, _, (total,), _ = updated(lambda x: ((ops.sum(ops.exp(x)),), [(x, ops.mul(x, 2.0))]), [x])
    np.testing.assert_allclose(total, np.exp(x).sum(), rtol=1e-4)


def adamw(count: int) -> Any:
    def step(*tensors: Any) -> Any:
        writes = []
        for k in range(count):
            p, g, m, v = tensors[4 * k : 4 * k + 4]
            m1 = ops.add(m, ops.mul(ops.sub(g, m), 0.1))
            v1 = ops.add(ops.mul(v, 0.999), ops.mul(ops.mul(g, g), 0.001))
            p1 = ops.sub(ops.mul(p, 0.99), ops.div(ops.mul(m1, 0.01), ops.add(ops.sqrt(v1), 1e-8)))
            writes += [(p, p1), (m, m1), (v, v1)]
        return (), writes

    return step


def test_an_optimizer_step_is_one_kernel() -> None:
    shapes = [tuple(int(n) for n in RNG.integers(2, 30, RNG.integers(1, 4))) for _ in range(100)]
    arrays = [np.abs(floats(*s)) for s in shapes for _ in range(4)]
    program, after, _, wanted = updated(adamw(100), arrays)
    for have, want in zip(after, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
    (launch,) = program.steps
    assert type(launch) is Launch and len(launch.parts) == 100
    assert len(program.kernels) == 1
    assert program.workspace == 0


def test_an_update_is_the_epilogue_of_the_gradient_and_waits_for_readers() -> None:
    """The weight is read by another product after its gradient is known: the update comes behind that, in place."""

    def backward(x: Any, w: Any, ct: Any) -> Any:
        gradient = ops.matmul(ops.permute(x, (1, 0)), ct)
        below = ops.matmul(ct, ops.permute(w, (1, 0)))
        return (ops.mul(below, 2.0),), [(w, ops.sub(w, ops.mul(gradient, 0.1)))]

    arrays = [floats(6, 4), floats(4, 5), floats(6, 5)]
    program, after, (below,), wanted = updated(backward, arrays)
    np.testing.assert_allclose(after[1], wanted[1], rtol=1e-5)
    np.testing.assert_allclose(below, 2 * arrays[2] @ arrays[1].T, rtol=1e-5)
    assert [type(s) for s in program.steps] == [Gemm, Gemm]
    assert all(s.epilogue is not None for s in program.steps)


def test_a_copy_that_is_also_a_result_is_not_read_before_it_is_written() -> None:
    """A product's value goes to a clone that is returned, and to an update that runs as the product's epilogue."""

    def step(x: Any, g: Any, w: Any) -> Any:
        grad = ops.matmul(x, g)
        kept = ops.clone(grad)
        change = ops.mul(ops.add(grad, ops.mul(kept, 0.9)), 0.1)
        return (kept, grad), [(w, ops.sub(w, change))]

    _, after, _, expected = updated(step, [floats(5, 4), floats(4, 3), floats(5, 3)])
    np.testing.assert_allclose(after[2], expected[2], rtol=1e-5)
