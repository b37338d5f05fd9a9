"""Make graphs of primitives from Python functions over operators, for the tests of this package."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import Graph, GraphBuilder, TensorSpec
from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.program import Program
from lamina_inductor.schedule.program import build_program
from lamina_prims import decompose
from lamina_prims.arrays import array_dtype


def spec_of(array: np.ndarray) -> TensorSpec:
    strides = tuple(s // array.itemsize for s in array.strides)
    return TensorSpec(array.shape, array_dtype(array.dtype), strides)


def trace(fn: Any, *args: Any, keep: frozenset[str] = frozenset(), **kwargs: Any) -> tuple[Graph, list[np.ndarray]]:
    """The graph of ``fn`` in strict primitives and the ids to ``keep``, and the arrays that are its inputs."""
    graph = Graph()
    builder = GraphBuilder(graph)
    arrays: list[np.ndarray] = []

    def lift(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return builder.proxy(graph.placeholder(f"x{len(arrays) - 1}", spec=spec_of(value)))
        if type(value) in (list, tuple):
            return type(value)(lift(v) for v in value)
        return value

    result = fn(*[lift(a) for a in args], **{k: lift(v) for k, v in kwargs.items()})
    flat = result if isinstance(result, (tuple, list)) else (result,)
    graph.output(tuple(getattr(r, "node", r) for r in flat if r is not None))
    return decompose(graph, level="prims", keep=keep), arrays


def copied(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides (gaps between elements too)."""
    extent = 1 + sum((n - 1) * abs(s) // array.itemsize for n, s in zip(array.shape, array.strides, strict=True))
    memory = np.zeros(max(extent, 1), array.dtype)
    copy = np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
    copy[...] = array
    return copy


def compiled(fn: Any, *args: Any, **kwargs: Any) -> tuple[Program, tuple[Any, ...]]:
    """The program of ``fn`` and what the IR's interpreter computes with it."""
    graph, arrays = trace(fn, *args, **kwargs)
    program = build_program(graph)
    return program, run_program(program, [copied(a) for a in arrays])


def assert_same(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    """Same shape and dtype, values close (NaN equals NaN)."""
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape, want.dtype)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    if want.dtype.itemsize <= 2 or want.dtype.kind == "V":
        got, want, tolerance = got.astype(np.float32), want.astype(np.float32), 2e-2
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
