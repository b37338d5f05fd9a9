"""Scans are loops of kernels, over any dimension, fused with what stands around them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tracing import assert_same, copied, trace

from lamina_fx import Graph, GraphBuilder, TensorSpec, bool_, float32, int8, int16, int32, uint8
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor import CppBackend
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.program import HostCall
from lamina_prims import decompose, operator, ops

SHAPES = [(7,), (1000,), (3, 5), (2, 300), (300, 2), (4, 5, 6), (2, 3, 400), (2, 400, 3), (200, 150), (1, 5), (5, 1)]


def check(fn: Any, *arrays: Any, kernels: int = 1, tolerance: float = 1e-5) -> Any:
    """Interpreted and compiled, ``fn`` is what the references give; in this many kernels and nothing else."""
    graph, inputs = trace(fn, *arrays)
    program = CppBackend().program(graph)
    assert len(program.kernels) == kernels and not [s for s in program.steps if type(s) is HostCall]
    want = fn(*arrays)
    want = want if isinstance(want, tuple) else (want,)
    for run in (lambda xs: run_program(program, [copied(x) for x in xs]), lambda xs: CppBackend().compile(graph)(*xs)):
        for have, expected in zip(run(inputs), want, strict=True):
            assert_same(np.asarray(have), expected, tolerance)
    return program


@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_dimension(op: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = x if op != "cumprod" else 1 + x / 30
    for dim in range(len(shape)):
        check(lambda v, d=dim: getattr(ops, op)(v, d), x, kernels=_kernels(op, shape[dim]), tolerance=1e-4)


def _kernels(op: str, size: int) -> int:
    return 1 if size > 1 or op not in ("cummax", "cummin") else 2


@pytest.mark.parametrize(
    "kind", ["bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_every_type(kind: str) -> None:
    x = np.random.default_rng(1).integers(0, 4, (5, 9)).astype(getattr(ml_dtypes, kind, kind))
    for dim in (0, 1):
        check(lambda v, d=dim: ops.cumsum(v, d), x)
        check(lambda v, d=dim: ops.cumprod(v, d), x)
        if kind != "complex64":
            check(lambda v, d=dim: ops.cummax(v, d), x)


@pytest.mark.parametrize("kind", [bool_, int8, uint8, int16, int32, float32])
def test_given_types(kind: Any) -> None:
    """A dtype that is asked for is that of the result: sums of small integers wrap around."""
    x = np.random.default_rng(6).integers(40, 90, (5, 9)).astype(np.int16)
    for dim in (0, 1):
        check(lambda v, d=dim: ops.cumsum(v, d, dtype=kind), x)
        check(lambda v, d=dim: ops.cumprod(ops.remainder(v, 3), d, dtype=kind), x)


def test_nan_and_infinity() -> None:
    x = np.array([1, -np.inf, np.nan, 2, np.inf, np.inf, -np.inf, 0], np.float32)
    for order in (x, x[::-1].copy(), x[[1, 6, 1, 0, 3]], x[[4, 5, 0]]):
        check(lambda v: (*ops.cummax(v, 0), *ops.cummin(v, 0), ops.logcumsumexp(v, 0)), order, kernels=3)


def test_neighbours_are_fused() -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((6, 700)).astype(np.float32) for _ in range(2))
    for dim in (0, 1):
        check(lambda a, b, d=dim: ops.tanh(ops.cumsum(ops.mul(ops.exp(a), b), d)), x, y, tolerance=1e-4)
        check(lambda a, b, d=dim: ops.add(ops.cumsum(a, d), ops.cumsum(ops.sin(b), d)), x, y, tolerance=1e-4)
        check(lambda a, b, d=dim: ops.cumsum(ops.exp(ops.neg(ops.cumsum(ops.abs(a), d))), d), x, y, tolerance=1e-4)


def test_negative_zeros() -> None:
    x = np.where(np.random.default_rng(8).random((6, 400)) < 0.9, -0.0, 0.0).astype(np.float32)
    for dim in (0, 1):
        check(lambda v, d=dim: (ops.signbit(ops.cumsum(v, d)), ops.signbit(ops.cumprod(v, d))), x, kernels=2)


def test_backwards() -> None:
    x = np.random.default_rng(3).standard_normal((9, 333)).astype(np.float32)
    for dim in (0, 1):
        check(lambda a, d=dim: ops.sin(ops.flip(ops.cumsum(ops.flip(ops.exp(a), (d,)), d), (d,))), x, tolerance=1e-3)
        check(lambda a, d=dim: ops.cumsum(ops.flip(ops.cumsum(a, d), (d,)), d), x, kernels=2, tolerance=1e-3)


def test_reductions_and_views_around() -> None:
    x = np.random.default_rng(4).standard_normal((8, 64)).astype(np.float32)
    check(lambda a: ops.cumsum(ops.softmax(a, 1), 1), x, kernels=2)
    check(lambda a: ops.sum(ops.cumsum(a, 1), (1,)), x, kernels=2, tolerance=1e-4)
    check(lambda a: ops.cumsum(ops.reshape(ops.exp(a), (512,)), 0), x, tolerance=1e-4)
    check(lambda a: ops.reshape(ops.cumsum(ops.permute(a, (1, 0)), 0), (16, 32)), x, tolerance=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (40, 1), (1, 500), (130, 260), (0, 4), (4, 0)])
def test_symbolic_sizes(shape: tuple[int, int]) -> None:
    env = ShapeEnv()
    spec = TensorSpec((env.create_symbol(5, "a", lower=0), env.create_symbol(6, "b", lower=0)), float32)
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=spec))
    results = (ops.cumsum(ops.exp(x), 0), ops.cumprod(x, 1), *ops.cummax(x, 0))
    graph.output(tuple([r.node for r in results]))
    artifact = CppBackend().compile(decompose(graph, level="prims"))
    array = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    e = operator("exp")(array)
    want = (ops.cumsum(e, 0), ops.cumprod(array, 1), *ops.cummax(array, 0))
    for have, expected in zip(artifact(array), want, strict=True):
        assert_same(np.asarray(have), expected, 1e-4)
