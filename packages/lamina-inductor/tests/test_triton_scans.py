"""Scans as kernels of a grid: fused, in tiles, in steps and in blocks, for all types and sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_scans import drawn
from tracing import assert_same, copied
from triton_corpus import floats, graph_of
from triton_scans import LONG_SCANS, MODES, SCAN_CASES, small_steps
from triton_symbolic import arrays_of
from triton_symbolic_scans import SYMBOLIC_SCANS

from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_inductor.ir.interpret_program import run_program
from lamina_prims import ops

TRITON = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('triton')", reason="no triton here")


def check(fn: Any, *arrays: np.ndarray, launches: int | None = None) -> Any:
    """The loops for a grid mean what the function means, by the interpreter of kernel IR; all of it is kernels."""
    program = TritonBackend().emit(graph_of(fn, arrays))
    assert not program.externs
    assert launches is None or len(program.launches) == launches
    with np.errstate(all="ignore"):
        want = fn(*arrays)
    want = want if isinstance(want, tuple) else (want,)
    for have, expected in zip(run_program(program.program, [copied(x) for x in arrays]), want, strict=True):
        assert_same(np.asarray(have), np.asarray(expected), 3e-4)
    return program


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCAN_CASES)
def test_loops_mean_what_the_operators_do(name: str, mode: str) -> None:
    fn, inputs, launches = SCAN_CASES[name]
    with small_steps(mode):
        check(fn, *inputs, launches=launches if mode == "in tiles" else None)


@pytest.mark.parametrize("name", LONG_SCANS)
def test_long_rows_and_columns(name: str) -> None:
    fn, inputs, launches = LONG_SCANS[name]
    check(fn, *inputs, launches=launches)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(100, 130))
def test_random_programs(seed: int, mode: str) -> None:
    fn, inputs = drawn(seed)
    with small_steps(mode):
        check(fn, *inputs)


@pytest.mark.parametrize("name", SYMBOLIC_SCANS)
def test_unknown_sizes(name: str) -> None:
    case = SYMBOLIC_SCANS[name]
    program = TritonBackend().emit(case.graph())
    assert not program.externs and len(program.launches) == case.launches
    for sizes in case.sizes:
        arrays = arrays_of(case, sizes)
        want = case.fn(*arrays)
        want = want if isinstance(want, tuple) else (want,)
        for have, expected in zip(run_program(program.program, [copied(x) for x in arrays]), want, strict=True):
            assert_same(np.asarray(have), np.asarray(expected), 3e-4)


@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1), (0, 4), (4, 0), (1, 7), (7, 1), (2, 3, 5)])
def test_small_sizes(op: str, shape: tuple[int, ...]) -> None:
    for dim in range(max(len(shape), 1)):
        check(lambda x, d=dim: getattr(ops, op)(x, d), floats(*shape) if shape else np.array(2.5, np.float32))


def test_what_needs_a_whole_row_first_comes_behind_it() -> None:
    """A scan behind a softmax, and a softmax behind a scan, take one pass more each; nothing is stored between."""
    (launch,) = check(lambda x: ops.cumsum(ops.softmax(x, 1), 1), floats(300, 90)).launches
    assert launch.kernel.source.count("tl.load") == launch.kernel.source.count("tl.store") == 1
    (launch,) = check(lambda x: ops.softmax(ops.cumsum(x, 1), 1), floats(300, 90)).launches
    assert launch.kernel.source.count("tl.load") == launch.kernel.source.count("tl.store") == 1


def test_scans_over_two_axes_are_two_kernels() -> None:
    check(lambda x: ops.cumsum(ops.cumsum(x, 1), 0), floats(20, 30), launches=2)
    check(lambda x: ops.add(ops.cumsum(x, 0), ops.sum(x, 1, keepdim=True)), floats(20, 30), launches=2)


def test_complex_numbers_and_float8_stay_with_the_library() -> None:
    x = floats(4, 5).astype(np.complex64)
    assert [e.operator for e in TritonBackend().emit(graph_of(lambda v: ops.cumsum(v, 1), (x,))).externs] == ["cumsum"]


# -- with triton -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> dict[str, str | None]:
    """What Triton's interpreter says of every case."""
    script = Path(__file__).parent / "triton_scans_interpreted.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@TRITON
def test_kernels_compute_what_the_references_do(report: dict[str, str | None]) -> None:
    assert len(report) > 100
    assert {name: wrong for name, wrong in report.items() if wrong} == {}


@TRITON
@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", [*SCAN_CASES, *LONG_SCANS])
def test_kernels_compile(name: str, sm: int) -> None:
    fn, inputs, _ = (SCAN_CASES | LONG_SCANS)[name]
    for kernel in TritonBackend().emit(graph_of(fn, inputs)).kernels:
        assert f".visible .entry {kernel.name}(" in compile_ptx(kernel, sm).ptx
