"""Calling generated programs: checks, layouts, front ends, threads, forks, errors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_builders import buffer, elementwise, program, whole

from lamina_fx.dtype import bfloat16, float32, float64, int64
from lamina_fx.symbolic import Integer, Symbol
from lamina_inductor.backends.cpp import compile_program
from lamina_inductor.host import num_threads, set_num_threads
from lamina_inductor.host.arguments import numpy_dtype
from lamina_inductor.ir.kernel import BufferParam, Kernel, Let, Load, Loop, Store
from lamina_inductor.ir.program import HostCall, KernelCall, Launch, Result, SizeSource
from lamina_testing.work import count_calls


def matrix_program(
    rows: int = 6, columns: int = 4, strides: Any = None, out_strides: Any = None, written: bool = False
) -> Any:
    r, c = Symbol("r", 0, rows - 1), Symbol("c", 0, columns - 1)
    s, t = strides or (columns, 1), out_strides or (columns, 1)
    target = "arg0" if written else "out0"
    body = (
        Load("x", float32, "arg0", r * s[0] + c * s[1]),
        Let("y", float32, "mul", ("x", 3.0)),
        Store(target, r * (s if written else t)[0] + c * (s if written else t)[1], "y"),
    )
    params = [BufferParam("arg0", float32, "inout" if written else "in")]
    buffers = [buffer("arg0", "input", (rows, columns), float32, 0, s)]
    if not written:
        params.append(BufferParam("out0", float32, "out"))
        buffers.append(buffer("out0", "output", (rows, columns), float32, 0, t))
    loop = Loop(r, Integer(rows), "parallel", (Loop(c, Integer(columns), "simd", body),), grain=Integer(1000))
    kernel = Kernel("k0_triple", tuple(params), (), (loop,))
    call = KernelCall(kernel, tuple(b.name for b in buffers))
    return program("triple", buffers, [Launch((call,))], writes=(0,) if written else ())


def test_what_does_not_fit_is_an_error_that_says_so() -> None:
    artifact = compile_program(matrix_program())
    good = np.ones((6, 4), np.float32)
    for bad in (np.ones((6, 5), np.float32), np.ones((6, 4)), np.ones(24, np.float32), np.ones((6, 4), np.int32)):
        with pytest.raises(RuntimeError, match=r"triple: input 0 \(arg0\) must be float32\[6, 4\]"):
            artifact(bad)
    for wrong in ((), (good, good)):
        with pytest.raises(TypeError, match="triple takes 1 inputs"):
            artifact(*wrong)
    for kind in ("text", None, object()):
        with pytest.raises(TypeError, match="input 0"):
            artifact(kind)
    with pytest.raises(TypeError, match="no keywords"):
        artifact.function(good, x=1)


def test_other_layouts_of_an_input_are_copied() -> None:
    artifact = compile_program(matrix_program())
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    big = np.zeros((12, 8), np.float32)
    big[::2, ::2] = x
    for same in (np.asfortranarray(x), big[::2, ::2], x[::-1].copy()[::-1], x.astype(">f4")):
        np.testing.assert_array_equal(artifact(same)[0], x * 3)


def test_results_have_the_strides_of_the_graph() -> None:
    artifact = compile_program(matrix_program(out_strides=(1, 6)))
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    (result,) = artifact(x)
    assert result.strides == (4, 24)
    np.testing.assert_array_equal(result, x * 3)


def test_written_inputs_must_have_the_layout() -> None:
    artifact = compile_program(matrix_program(written=True))
    x = np.ones((6, 4), np.float32)
    assert artifact(x) == ()
    np.testing.assert_array_equal(x, np.full((6, 4), 3, np.float32))
    for bad in (np.asfortranarray(x), np.broadcast_to(np.float32(1), (6, 4))):
        with pytest.raises(RuntimeError, match="written"):
            artifact(bad)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="writeable"):
        artifact(frozen)


def test_results_of_every_kind() -> None:
    n = Symbol("n", 0)
    base = elementwise("neg", float32, float32, 1, 5)
    buffers = [buffer("arg0", "input", (n,), float32), buffer("out0", "output", (n,), float32)]
    i = Symbol("i", 0)
    body = (Load("x", float32, "arg0", i), Let("y", float32, "neg", ("x",)), Store("out0", i, "y"))
    m = Symbol("m", 0)
    params = base.steps[0].parts[0].kernel.params
    kernel = Kernel("k0_neg", params, (m,), (Loop(i, m, "parallel simd", body),))
    outputs = (
        Result("buffer", "out0"), Result("input", 0), Result("alias", 0), Result("scalar", n * 2 + 1),
        Result("scalar", 2.5), Result("scalar", None),
    )  # fmt: skip
    made = program("kinds", buffers, [Launch((KernelCall(kernel, ("arg0", "out0"), (n,)),))], outputs=outputs,
                   sizes=(SizeSource(n, 0, 0),))  # fmt: skip
    x = np.arange(5, dtype=np.float32)
    first, same, alias, size, number, nothing = compile_program(made)(x)
    np.testing.assert_array_equal(first, -x)
    assert same is x and alias is first and size == 11 and number == 2.5 and nothing is None


def test_sizes_come_from_numbers_too() -> None:
    n, i = Symbol("n", 0), Symbol("i", 0)
    kernel = Kernel("k0_fill", (BufferParam("out0", float64, "out"),), (n,),
                    (Loop(i, n, "parallel simd", (Store("out0", i, 7.0),)),))  # fmt: skip
    made = program("fill", [buffer("out0", "output", (n,), float64)], [Launch((KernelCall(kernel, ("out0",), (n,)),))],
                   inputs=(None,), sizes=(SizeSource(n, 0, None),))  # fmt: skip
    artifact = compile_program(made)
    assert artifact(3)[0].tolist() == [7.0] * 3 and artifact(0)[0].shape == (0,)
    with pytest.raises(TypeError):
        artifact("three")


def test_bfloat16_arrays() -> None:
    artifact = compile_program(elementwise("mul", bfloat16, bfloat16, 1, 9, (3.0,)))
    x = np.arange(9).astype(numpy_dtype(bfloat16))
    (result,) = artifact(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.astype(np.float32), np.arange(9) * np.float32(3))


def host_call_program(operator: str) -> Any:
    x, y = buffer("arg0", "input", (3, 3), float64), buffer("out0", "output", (3, 3), float64)
    call = HostCall(
        operator, (whole(x),), (("upper", True),) if operator == "cholesky" else (), (whole(y),), "model.py:3"
    )
    return program("host", [x, y], [call])


def test_operators_without_kernels_run_their_reference() -> None:
    artifact = compile_program(host_call_program("inv"))
    x = np.array([[2.0, 1, 0], [0, 3, 0], [1, 0, 4]])
    np.testing.assert_allclose(artifact(x)[0], np.linalg.inv(x))
    with pytest.raises(Exception, match=r"(?i)singular"):
        artifact(np.zeros((3, 3)))


_FORK = """
    import os, sys
    sys.path.insert(0, {tests!r})
    import numpy as np
    from lamina_fx.dtype import float32
    from lamina_inductor.backends.cpp import compile_program
    from lamina_inductor.host import set_num_threads
    from program_builders import elementwise
    set_num_threads(4)
    artifact = compile_program(elementwise("sqrt", float32, float32, 1, 1 << 20))
    x = np.full(1 << 20, 4, np.float32)
    for _ in range(3):
        assert (artifact(x)[0] == 2).all()
        child = os.fork()
        if child == 0:
            for _ in range(5):
                assert (artifact(x)[0] == 2).all()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    print("fine")
"""


def test_a_forked_child_runs_kernels() -> None:
    script = textwrap.dedent(_FORK.format(tests=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=60, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "fine", done.stderr


@pytest.fixture
def four_threads() -> Any:
    before = num_threads()
    set_num_threads(4)
    yield
    set_num_threads(before)


def test_python_threads_share_the_pool(four_threads: None) -> None:
    artifact = compile_program(elementwise("exp", float32, float32, 1, 300_001))
    x = np.random.default_rng(1).standard_normal(300_001).astype(np.float32)
    expected, failures = artifact(x)[0], []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(artifact(x)[0], expected):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_thread_counts_change_without_compiling(four_threads: None) -> None:
    artifact = compile_program(elementwise("exp", float32, float32, 1, 300_001))
    x = np.random.default_rng(1).standard_normal(300_001).astype(np.float32)
    results = []
    for threads in (1, 2, 3, 7, 1):
        set_num_threads(threads)
        assert num_threads() == threads
        results.append(artifact(x)[0])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    with pytest.raises(ValueError, match="at least 1"):
        set_num_threads(0)


def test_a_call_runs_no_python() -> None:
    artifact = compile_program(elementwise("add", float32, float32, 2, 16))
    x = np.ones(16, np.float32)
    function = artifact.function
    assert count_calls(lambda: function(x, x)) <= 2  # the lambda, and the launcher


def test_integer_inputs_are_not_mistaken() -> None:
    artifact = compile_program(elementwise("add", int64, int64, 1, 4, (1,)))
    assert artifact(np.arange(4))[0].tolist() == [1, 2, 3, 4]
    assert artifact(np.arange(4, dtype=np.longlong))[0].tolist() == [1, 2, 3, 4]


def test_results_with_gaps_in_their_strides_own_all_they_span() -> None:
    artifact = compile_program(matrix_program(out_strides=(1000, 3)))
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    results = [artifact(x)[0] for _ in range(50)]
    for result in results:
        assert result.strides == (4000, 12) and result.base is not None and result.base.size == 5 * 1000 + 3 * 3 + 1
        np.testing.assert_array_equal(result, x * 3)
