"""The place of an extremum of everything: threads search blocks, and the first of the best is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import trace

from lamina_inductor import CppBackend
from lamina_inductor.schedule.program import build_program
from lamina_prims import ops

COUNT = 3 * (1 << 15) + 77
X = np.random.default_rng(5).standard_normal(COUNT).astype(np.float32)


def with_nan() -> np.ndarray:
    x = X.copy()
    x[[70_000, 80_000]] = np.nan
    return x


CASES = {
    "floats": X,
    "the first NaN wins": with_nan(),
    "the first of equals wins": np.round(X),
    "nothing but -inf": np.full(COUNT, -np.inf, np.float32),
    "doubles": X.astype(np.float64),
    "half": X.astype(np.float16),
    "integers": (X * 9).astype(np.int32),
    "booleans": X > 3,
    "the last element": np.arange(COUNT, dtype=np.float32),
    "several dimensions": X[: 1 << 16].reshape(16, 64, 64),
}


def places(x: Any) -> Any:
    return ops.argmax(x), ops.argmin(x), ops.amax(x)


@pytest.mark.parametrize("name", CASES)
def test_places_are_numpys(name: str) -> None:
    x = CASES[name]
    graph, _ = trace(places, x)
    most, least, _ = CppBackend().compile(graph)(x)
    assert int(most) == np.argmax(x) and int(least) == np.argmin(x)


def test_blocks_are_searched_in_parallel_by_vectors() -> None:
    graph, _ = trace(lambda x: ops.argmax(ops.mul(ops.abs(x), -1.0)), X)
    (kernel,) = build_program(graph).kernels
    assert [str(phase.extent) for phase in kernel.body] == ["4", "1"]
    artifact = CppBackend().compile(graph)
    assert int(artifact(X)[0]) == np.argmin(np.abs(X))
    assert "_best" in artifact.source, "an extremum first, then its place: both are loops that compilers vectorise"
