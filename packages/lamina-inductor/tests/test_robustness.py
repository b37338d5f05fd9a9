"""What once broke, and inputs that are unusual: empty, read-only, unaligned, strided in odd ways."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tracing import assert_same, trace

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
from lamina_inductor import CppBackend
from lamina_inductor.host.threads import default_threads, set_num_threads
from lamina_inductor.ir.program import HostCall
from lamina_prims import decompose, ops


def check(fn: Any, *arrays: Any, kernels_only: bool = False) -> None:
    """Compiled ``fn`` gives what the references give; ``kernels_only``: and calls none of them."""
    graph, inputs = trace(fn, *arrays)
    want = fn(*arrays)
    if kernels_only:
        assert not [s for s in CppBackend().program(graph).steps if type(s) is HostCall]
    got = CppBackend().compile(graph)(*inputs)
    for have, expected in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        assert_same(np.asarray(have), expected)


def test_an_empty_tensor_beside_others_in_one_parallel_launch() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((0, 3) if k == 3 else (k + 1, 5)).astype(np.float32) for k in range(40)]
    set_num_threads(2)
    try:
        check(lambda *xs: (*[ops.exp(x) for x in xs[:9]], *[ops.tanh(x) for x in xs[9:]]), *arrays)
    finally:
        set_num_threads(default_threads())


INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint64"]


@pytest.mark.parametrize("kind", [*INTEGERS, "complex64", "complex128"])
def test_matrix_products_of_every_type_are_steps(kind: str) -> None:
    rng = np.random.default_rng(1)
    if kind in INTEGERS:
        a, b = (rng.integers(-100 if kind[0] == "i" else 0, 120, s).astype(kind) for s in ((3, 17, 9), (3, 9, 33)))
    else:
        a, b = ((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(kind) for s in ((3, 17, 9), (3, 9, 33)))
    check(lambda x, y: ops.add(ops.dot_general(x, y, ((2,), (1,)), ((0,), (0,))), 1), a, b, kernels_only=True)
    check(lambda x, y: ops.dot_general(x, y, ((1,), (0,)), ((), ())), a[0], np.asfortranarray(b[0]), kernels_only=True)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "int64", "bool", "complex64"])
def test_scatters_of_every_type(kind: str) -> None:
    rng = np.random.default_rng(2)
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    table = rng.integers(0, 2, (7, 5)).astype(dtype)
    rows, index = rng.integers(0, 2, (20, 5)).astype(dtype), rng.integers(0, 7, 20)
    check(lambda t, i, v: ops.index_put(t, (i,), v, True), table, index, rows, kernels_only=True)
    check(lambda t, i, v: ops.index_put(t, (i,), v, False), table, rng.permutation(7), rows[:7], kernels_only=True)


@pytest.mark.parametrize(
    ("size", "step", "dilation"), [(2, 2, 1), (3, 2, 1), (3, 1, 1), (2, 3, 1), (3, 2, 2), (11, 1, 1)]
)
def test_windows_add_up(size: int, step: int, dilation: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 5, 4, size, size)).astype(np.float32)
    length = [(n - 1) * step + dilation * (size - 1) + 2 for n in (5, 4)]
    check(
        lambda v: ops.exp(ops.overlap_add(ops.neg(v), (1, 2), length, (step, step), (dilation, dilation))),
        x,
        kernels_only=True,
    )


@pytest.mark.parametrize("right", [False, True])
def test_searches(right: bool) -> None:
    rng = np.random.default_rng(4)
    for length in (1, 2, 7, 8, 9, 100):
        sequence = np.sort(rng.integers(0, 20, length).astype(np.float32))
        sequence[-1] = np.nan if length > 8 else sequence[-1]
        wanted = np.concatenate([rng.integers(-2, 23, 40), [np.nan, np.inf, -np.inf]]).astype(np.float32)
        check(lambda s, v: ops.searchsorted(s, v, right=right), sequence, wanted, kernels_only=True)
        rows = np.sort(rng.standard_normal((3, length)), axis=-1)
        check(lambda s, v: ops.searchsorted(s, v, right=right), rows, rows[:, ::-1].copy(), kernels_only=True)


def _unaligned(array: Any) -> Any:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _frozen(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "sliced": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "offset": lambda a: np.concatenate([a[:1], a])[1:],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "reversed twice": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "fortran": np.asfortranarray,
    "unaligned": _unaligned,
    "read-only": _frozen,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "complex128"])
def test_inputs_in_any_layout(layout: str, kind: str) -> None:
    """The graph was compiled for dense inputs; others are copied, none is changed."""
    array = np.random.default_rng(5).integers(0, 3, (37, 19)).astype(kind)
    graph, _ = trace(lambda x: (ops.cumsum(x, 1), ops.mul(x, x)), array)
    artifact = CppBackend().compile(graph)
    given = LAYOUTS[layout](array)
    for have, want in zip(artifact(given), (ops.cumsum(array, 1), array * array), strict=True):
        assert_same(np.asarray(have), want)
    np.testing.assert_array_equal(given, array)


def test_expanded_inputs() -> None:
    row = np.arange(5, dtype=np.float32)
    graph, _ = trace(lambda x: ops.exp(x), np.zeros((3, 5), np.float32))
    given = np.lib.stride_tricks.as_strided(row, (3, 5), (0, 4))
    assert_same(np.asarray(CppBackend().compile(graph)(given)[0]), np.exp(given))


@pytest.mark.parametrize("layout", ["reversed", "unaligned", "read-only", "transposed"])
def test_a_written_input_is_never_a_copy(layout: str) -> None:
    """What cannot be written in place is refused, and stays as it was."""
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((7, 5), float32)))
    graph.call_function("copy_to", (x.node, ops.exp(x).node), effect="write")
    graph.output(())
    artifact = CppBackend().compile(decompose(graph, level="prims"))
    given = LAYOUTS[layout](np.zeros((7, 5), np.float32))
    with pytest.raises(RuntimeError, match="is written by the program"):
        artifact(given)
    np.testing.assert_array_equal(given, 0)


def test_a_graph_without_specs_says_what_makes_them() -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((4, 3), float32)))
    graph.output(((x + x).node,))
    with pytest.raises(ValueError, match=r"add \(add\) has no spec; give GraphBuilder a resolver"):
        CppBackend().program(graph)
