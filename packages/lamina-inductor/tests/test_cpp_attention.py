"""The host's attention against its references: shapes around its tiles, masks, dropout, layouts, dtypes, threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_attention import KEEP
from tracing import trace

from lamina_fx.dtype import dtype_of
from lamina_inductor import CppBackend
from lamina_inductor.host import num_threads, set_num_threads
from lamina_inductor.host.arguments import numpy_dtype
from lamina_prims import ops

RNG = np.random.default_rng(0)
STATE = np.array([7, (1 << 64) - 3], np.uint64).view(np.int64)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def heads(lead: tuple[int, ...], queries: int, keys: int, width: int, value_width: int) -> tuple[np.ndarray, ...]:
    return floats(*lead, queries, width), floats(*lead, keys, width), floats(*lead, keys, value_width)


def mask(*shape: int, share: float = 0.7) -> np.ndarray:
    return RNG.random(shape) < share


CASES: dict[str, tuple[Any, ...]] = {
    "one of all": (*heads((), 1, 1, 1, 1), None, False, 0.5),
    "small": (*heads((2, 3), 5, 7, 4, 6), None, False, 0.5),
    "a tile": (*heads((1, 2), 64, 64, 64, 64), None, False, 0.125),
    "around tiles": (*heads((3,), 65, 130, 33, 17), None, False, 0.2),
    "causal": (*heads((2,), 200, 200, 16, 24), None, True, 0.3),
    "causal, more keys": (*heads((2,), 70, 150, 8, 8), None, True, 0.3),
    "causal, more queries": (*heads((2,), 150, 70, 8, 8), None, True, 0.3),
    "causal, wide": (*heads((1,), 130, 130, 100, 80), None, True, 0.1),
    "boolean mask": (*heads((2, 2), 70, 90, 8, 8), mask(70, 90), False, 0.3),
    "boolean mask of keys": (*heads((2, 2), 70, 90, 8, 8), mask(2, 1, 1, 90), False, 0.3),
    "rows without keys": (*heads((2, 2), 70, 130, 8, 8), mask(70, 130) & mask(70, 1), False, 0.3),
    "mask of triangles": (*heads((2,), 130, 130, 8, 8), np.tri(130, dtype=bool), False, 0.3),
    "nothing at all": (*heads((2,), 5, 70, 8, 8), np.zeros((5, 70), bool), False, 0.3),
    "additive mask": (*heads((2, 3), 70, 90, 8, 8), floats(3, 70, 90), False, 0.3),
    "the lowest numbers": (
        *heads((2,), 70, 70, 8, 8), np.where(mask(70, 70) & mask(70, 1), 0, np.finfo(np.float32).min), False, 0.3,
    ),
    "minus infinity": (
        *heads((2,), 70, 70, 8, 8), np.where(mask(70, 70) & mask(70, 1), 0, -np.inf).astype(np.float32), False, 0.3,
    ),
    "causal with a mask": (*heads((2,), 130, 130, 8, 8), mask(130, 130), True, 0.3),
    "dropout": (*heads((2, 2), 70, 67, 8, 8), None, False, 0.3, 0.25, STATE),
    "dropout, causal": (*heads((2, 2), 130, 130, 8, 8), None, True, 0.3, 0.25, STATE),
    "dropout of all": (*heads((2,), 5, 7, 4, 6), None, False, 0.3, 1.0, STATE),
    "dropout of none": (*heads((2,), 5, 7, 4, 6), None, False, 0.3, 0.0, STATE),
    "grouped queries": (
        floats(2, 3, 4, 70, 8), floats(2, 3, 1, 70, 8), floats(2, 3, 1, 70, 8), None, True, 0.3,
    ),
    "one key head": (floats(2, 3, 70, 8), floats(2, 1, 90, 8), floats(90, 8), None, False, 0.3),
    "one query for all heads": (floats(1, 1, 5, 8), floats(2, 3, 90, 8), floats(2, 3, 90, 8), None, False, 0.3),
    "scores far from zero": (*(4 * x for x in heads((2,), 70, 90, 8, 8)), None, False, 1.0),
}  # fmt: skip


def run(operator: Any, *arguments: Any) -> tuple[Any, ...]:
    graph, arrays = trace(operator, *arguments, keep=KEEP)
    return CppBackend().compile(graph, name="attention")(*arrays)


def close(got: Any, want: Any, tolerance: float) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = np.nanmax(np.abs(b.astype(np.float64)), where=np.isfinite(b.astype(np.float64)), initial=1e-6)
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance * scale)


def cotangents(arguments: tuple[Any, ...], with_lse: bool) -> tuple[Any, ...]:
    out, lse = ops.attention_with_lse(*arguments)
    given = RNG.normal(size=out.shape).astype(out.dtype)
    return given, RNG.normal(size=lse.shape).astype(lse.dtype) if with_lse else None, out, lse


@pytest.mark.parametrize("name", CASES)
def test_forward(name: str) -> None:
    close(run(ops.attention_with_lse, *CASES[name]), ops.attention_with_lse(*CASES[name]), 2e-5)


@pytest.mark.parametrize("with_lse", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_backward(name: str, with_lse: bool) -> None:
    arguments = (*cotangents(CASES[name], with_lse), *CASES[name])
    close(run(ops.attention_backward, *arguments), ops.attention_backward(*arguments), 1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "name", ["around tiles", "causal", "grouped queries", "boolean mask", "additive mask", "dropout"]
)
def test_dtypes(name: str, dtype: str) -> None:
    kind = numpy_dtype(dtype_of(dtype))
    arguments = tuple(x.astype(kind) if getattr(x, "dtype", None) == np.float32 else x for x in CASES[name])
    tolerance = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    close(run(ops.attention_with_lse, *arguments), ops.attention_with_lse(*arguments), tolerance)
    backward = (*cotangents(arguments, False), *arguments)
    close(run(ops.attention_backward, *backward), ops.attention_backward(*backward), tolerance)


def test_layouts() -> None:
    """Operands of any strides, those of the last dimension too."""
    q, k, v = (np.moveaxis(floats(8, 2, 70), 0, 2) for _ in range(3))
    arguments = (q, k, v, np.asarray(mask(90, 70)).T[:, :70], False, 0.3)
    close(run(ops.attention_with_lse, *arguments), ops.attention_with_lse(*arguments), 2e-5)
    backward = (*cotangents(arguments, False), *arguments)
    close(run(ops.attention_backward, *backward), ops.attention_backward(*backward), 1e-4)


def test_nan_and_infinity() -> None:
    """As with the matrix of scores: what is not a number spreads over its row; an infinite score makes its row NaN."""
    q, k, v = heads((), 70, 70, 4, 4)
    q[3, 0], k[5, 1], q[9] = np.nan, 0.0, np.inf
    with np.errstate(all="ignore"):
        want = ops.attention_with_lse(q, k, v, None, False, 0.5)
    got = run(ops.attention_with_lse, q, k, v, None, False, 0.5)
    np.testing.assert_array_equal(np.isnan(got[0]), np.isnan(want[0]))
    good = ~np.isnan(want[0])
    np.testing.assert_allclose(got[0][good], want[0][good], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["causal", "grouped queries", "around tiles", "small"])
def test_threads_change_nothing(name: str) -> None:
    before = num_threads()
    arguments = (*cotangents(CASES[name], True), *CASES[name])
    try:
        results = []
        for threads in (1, 2, 5):
            set_num_threads(threads)
            results.append((*run(ops.attention_with_lse, *CASES[name]), *run(ops.attention_backward, *arguments)))
    finally:
        set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_only_some_gradients(wanted: tuple[int, ...]) -> None:
    def some(*arguments: Any) -> Any:
        return tuple(ops.attention_backward(*arguments)[k] for k in wanted)

    arguments = (*cotangents(CASES["causal"], False), *CASES["causal"])
    close(run(some, *arguments), some(*arguments), 1e-4)


@pytest.mark.parametrize("level", [0, 1])
def test_code_for_lesser_processors(level: int) -> None:
    """The same on the code that this processor would not take by itself."""
    if "LAMINA_CPU_LEVEL" in os.environ:
        pytest.skip("this is the process that the test starts")
    chosen = "(forward or backward or bfloat16) and not False and (around or wide or (dropout and causal) or additive)"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k", chosen]
    environment = os.environ | {"LAMINA_CPU_LEVEL": str(level)}
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
