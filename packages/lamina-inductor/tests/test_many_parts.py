"""Concatenation of many tensors: each is copied to its place, no reference runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import assert_same, compiled, trace

from lamina_inductor import CppBackend
from lamina_inductor.ir.program import CopyBuffer, HostCall
from lamina_prims import ops

RNG = np.random.default_rng(0)


def parts(count: int, *shape: int, dim: int = 0) -> list[np.ndarray]:
    sizes = [[*shape[:dim], k % 4, *shape[dim + 1 :]] for k in range(count)]
    return [RNG.normal(size=size).astype(np.float32) for size in sizes]


def doubled_between(tensors: Any) -> Any:
    return ops.mul(ops.cat([ops.exp(t) for t in tensors], 0), 2.0)


CASES: dict[str, tuple[Any, list[np.ndarray]]] = {
    "first dimension": (lambda ts: ops.cat(ts, 0), parts(20, 0, 3)),
    "middle dimension": (lambda ts: ops.cat(ts, 1), parts(33, 2, 0, 5, dim=1)),
    "last dimension": (lambda ts: ops.cat(ts, -1), parts(17, 3, 0, dim=1)),
    "turned parts": (lambda ts: ops.cat([ops.permute(t, (1, 0)) for t in ts], 0), parts(20, 3, 0, dim=1)),
    "the same part": (lambda ts: ops.cat([ts[1]] * 40, 0), parts(2, 0, 3)),
    "stacked": (lambda ts: ops.stack(ts, 1), [RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(18)]),
    "half": (lambda ts: ops.cat(ts, 0), [t.astype(np.float16) for t in parts(20, 0, 3)]),
    "constants among them": (lambda ts: ops.cat([*ts, ops.full_like(ts[1], 2.0)], 0), parts(17, 0, 3)),
    "computed parts": (doubled_between, parts(20, 0, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_copied(name: str) -> None:
    fn, tensors = CASES[name]
    want = fn(tensors)
    program, (got,) = compiled(fn, tensors)
    assert_same(got, want)
    assert not any(type(s) is HostCall for s in program.steps)
    assert sum(type(s) is CopyBuffer for s in program.steps) >= 12
    graph, arrays = trace(fn, tensors)
    assert_same(CppBackend().compile(graph)(*arrays)[0], want)
