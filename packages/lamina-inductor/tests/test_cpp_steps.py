"""Matrix products, convolutions and copies of the host program, in every layout, against NumPy in exact integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from program_builders import buffer, program, whole

from lamina_fx.dtype import complex64, dtype_of, float32, float64, int64
from lamina_fx.symbolic import Integer, Symbol
from lamina_inductor.backends.cpp import compile_program
from lamina_inductor.host import num_threads, set_num_threads
from lamina_inductor.host.arguments import numpy_dtype
from lamina_inductor.ir.kernel import BufferParam, Kernel, Let, Load, Loop, Store
from lamina_inductor.ir.program import Convolution, CopyBuffer, Gemm, KernelCall, Operand


def small_integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(numpy_dtype(dtype))


def relu_rows(rows: int, columns: int) -> KernelCall:
    r, c = Symbol("r", 0, rows - 1), Symbol("c", 0, columns - 1)
    at = r * columns + c
    body = (Load("x", float32, "out0", at), Let("y", float32, "relu", ("x",)), Store("out0", at, "y"))
    inner = Loop(c, Integer(columns), "simd", body)
    phases = (Loop(r, Integer(rows), "parallel", (inner,)),)
    return KernelCall(Kernel("k0_relu", (BufferParam("out0", float32, "inout"),), (), phases), ("out0",))


def gemm_program(dtype: Any, b: int, m: int, n: int, k: int, turned: str = "", **more: Any) -> Any:
    def matrix(name: str, storage: str, index: int, rows: int, columns: int, letter: str) -> Any:
        strides = (rows * columns, 1, rows) if letter in turned else (rows * columns, columns, 1)
        return buffer(name, storage, (b, rows, columns), dtype, index, strides)

    left, right = matrix("arg0", "input", 0, m, k, "a"), matrix("arg1", "input", 1, k, n, "b")
    out = matrix("out0", "output", 0, m, n, "c")
    step = Gemm(whole(left), whole(right), whole(out), **more)
    return program("product", [left, right, out], [step])


def laid_out(array: np.ndarray[Any, Any], turned: bool) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2) if turned else array


@pytest.mark.parametrize("turned", ["", "a", "b", "c", "ab", "abc"])
def test_layouts(turned: str) -> None:
    artifact = compile_program(gemm_program(float32, 3, 17, 33, 20, turned))
    x, y = small_integers((3, 17, 20), float32), small_integers((3, 20, 33), float32, 1)
    (got,) = artifact(laid_out(x, "a" in turned), laid_out(y, "b" in turned))
    np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize(
    "name", ["float64", "complex64", "complex128", "float16", "bfloat16", "int8", "uint8", "int32", "int64"]
)
def test_element_types(name: str) -> None:
    dtype = dtype_of(name)
    x, y = small_integers((2, 9, 20), dtype), small_integers((2, 20, 7), dtype, 1)
    (got,) = compile_program(gemm_program(dtype, 2, 9, 7, 20))(x, y)
    if name in ("float16", "bfloat16"):
        np.testing.assert_array_equal(got.astype(float), x.astype(float) @ y.astype(float))
    else:
        np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (1, 1, 300, 70), (1, 300, 1, 70), (2, 5, 6, 0), (0, 3, 3, 3), (1, 200, 400, 300)]
)
def test_shapes(shape: tuple[int, int, int, int]) -> None:
    b, m, n, k = shape
    x, y = small_integers((b, m, k), float64), small_integers((b, k, n), float64, 1)
    np.testing.assert_array_equal(compile_program(gemm_program(float64, b, m, n, k))(x, y)[0], x @ y)


def test_a_broadcast_operand_has_stride_0() -> None:
    left = buffer("arg0", "input", (4, 6, 5), float32)
    right, out = buffer("arg1", "input", (5, 3), float32, 1), buffer("out0", "output", (4, 6, 3), float32)
    shared = Operand("arg1", float32, 0, (4, 5, 3), (0, 3, 1))
    artifact = compile_program(program("shared", [left, right, out], [Gemm(whole(left), shared, whole(out))]))
    x, y = small_integers((4, 6, 5), float32), small_integers((5, 3), float32, 1)
    np.testing.assert_array_equal(artifact(x, y)[0], x @ y)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(1, 130, 700, 40), (3, 50, 20, 30), (1, 4, 3000, 60)])
def test_epilogue_sees_finished_rows(shape: tuple[int, int, int, int], threads: int) -> None:
    b, m, n, k = shape
    before = num_threads()
    set_num_threads(threads)
    try:
        artifact = compile_program(gemm_program(float32, b, m, n, k, epilogue=relu_rows(b * m, n)))
        x, y = small_integers((b, m, k), float32), small_integers((b, k, n), float32, 1)
        np.testing.assert_array_equal(artifact(x, y)[0], np.maximum(x @ y, 0))
    finally:
        set_num_threads(before)


def test_accumulating_into_an_input() -> None:
    left, right = buffer("arg0", "input", (1, 6, 5), float32), buffer("arg1", "input", (1, 5, 3), float32, 1)
    target = buffer("arg2", "input", (1, 6, 3), float32, 2)
    made = program("add", [left, right, target], [Gemm(whole(left), whole(right), whole(target), True)], writes=(2,))
    x, y, z = small_integers((1, 6, 5), float32), small_integers((1, 5, 3), float32, 1), np.ones((1, 6, 3), np.float32)
    compile_program(made)(x, y, z)
    np.testing.assert_array_equal(z, x @ y + 1)


# kind, images, channels in and out, sizes, window, stride, padding, dilation, groups, bias, transposed
CONVOLUTIONS = [
    ("float32", 2, 3, 5, (9, 11), (3, 3), 1, 0, 1, 1, True, False),
    ("float32", 2, 4, 6, (9, 11), (3, 2), 2, 1, 2, 2, True, False),
    ("float64", 2, 4, 6, (17,), (3,), 2, 1, 1, 1, False, False),
    ("float32", 1, 2, 3, (5, 6, 7), (2, 3, 2), 1, 1, 1, 1, False, False),
    ("float32", 2, 4, 6, (7, 8), (3, 3), 2, 1, 1, 2, True, True),
    ("float64", 2, 4, 6, (7,), (3,), 3, 1, 2, 1, False, True),
    ("float32", 3, 6, 6, (8, 8), (3, 3), 1, 1, 1, 6, False, False),
    ("float16", 2, 3, 5, (9, 11), (3, 3), 1, 0, 1, 1, False, False),
    ("bfloat16", 2, 3, 5, (9, 11), (3, 3), 1, 0, 1, 1, True, False),
    ("int32", 2, 3, 5, (9, 11), (3, 3), 1, 0, 1, 1, True, False),
    ("float32", 1, 16, 16, (40, 40), (1, 1), 1, 0, 1, 1, False, False),
    ("float32", 1, 8, 12, (6, 7), (1, 1), 1, 0, 1, 2, True, False),
    ("float32", 2, 4, 13, (6, 14), (3, 3), 1, 1, 1, 1, True, False),
    ("float32", 2, 6, 6, (5, 48), (3, 3), 1, 1, 1, 6, False, False),
    ("float32", 1, 4, 10, (7, 33), (3, 2), 1, 2, 2, 2, True, False),
    ("float32", 2, 3, 5, (46,), (5,), 1, 1, 1, 1, False, False),
    ("float32", 1, 2, 9, (3, 4, 15), (2, 2, 2), 1, 1, 1, 1, True, False),
    ("float32", 2, 3, 13, (9, 28), (3, 3), 1, 1, 1, 1, False, False),
    ("float32", 1, 4, 10, (7, 19), (3, 3), 1, 0, 2, 2, False, False),
    ("float32", 1, 2, 9, (3, 4, 21), (2, 2, 2), 1, 1, 1, 1, False, False),
]


def convolve(
    x: Any, w: Any, out: tuple[int, ...], stride: int, pad: int, dilation: int, groups: int, turned: bool
) -> Any:
    """A convolution by its definition, in float64."""
    spatial, window = x.shape[2:], w.shape[2:]
    per_in, per_out = x.shape[1] // groups, (w.shape[1] if turned else w.shape[0] // groups)
    result = np.zeros((x.shape[0], per_out * groups, *out))
    for group in range(groups):
        xs = x[:, group * per_in : (group + 1) * per_in].astype(float)
        rows = slice(group * per_out, (group + 1) * per_out)
        for k in np.ndindex(*window):
            wk = (
                w[(slice(group * per_in, (group + 1) * per_in), slice(None), *k)].T
                if turned
                else w[(rows, slice(None), *k)]
            )
            for q in np.ndindex(*(spatial if turned else out)):
                p = tuple(a * stride - pad + b * dilation for a, b in zip(q, k, strict=True))
                if all(0 <= a < n for a, n in zip(p, out if turned else spatial, strict=True)):
                    source, target = (q, p) if turned else (p, q)
                    result[(slice(None), rows, *target)] += xs[(..., *source)] @ wk.astype(float).T
    return result


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution(case: tuple[Any, ...]) -> None:
    kind, n, ci, co, sizes, window, stride, pad, dilation, groups, biased, turned = case
    dtype, rank = dtype_of(kind), len(sizes)
    if turned:
        out = tuple((s - 1) * stride - 2 * pad + dilation * (w - 1) + 1 for s, w in zip(sizes, window, strict=True))
    else:
        out = tuple((s + 2 * pad - dilation * (w - 1) - 1) // stride + 1 for s, w in zip(sizes, window, strict=True))
    weights = (ci, co // groups, *window) if turned else (co, ci // groups, *window)
    x, w = buffer("arg0", "input", (n, ci, *sizes), dtype), buffer("arg1", "input", weights, dtype, 1)
    bias, y = buffer("arg2", "input", (co,), dtype, 2), buffer("out0", "output", (n, co, *out), dtype)
    step = Convolution(whole(x), whole(w), whole(bias) if biased else None, whole(y), (stride,) * rank,
                       ((pad, pad),) * rank, (dilation,) * rank, groups, turned)  # fmt: skip
    artifact = compile_program(program("convolution", [x, w, *([bias] if biased else []), y], [step]))
    arrays = [small_integers(b.shape, dtype, i) for i, b in enumerate((x, w, bias)[: 2 + biased])]
    expected = convolve(arrays[0], arrays[1], out, stride, pad, dilation, groups, turned)
    if biased:
        expected += arrays[2].astype(float).reshape(1, co, *(1,) * rank)
    np.testing.assert_array_equal(artifact(*arrays)[0].astype(float), expected)


def test_copies_between_layouts() -> None:
    x, y = buffer("arg0", "input", (3, 4, 5), complex64), buffer("out0", "output", (3, 4, 5), complex64, 0, (1, 15, 3))
    scalar, target = buffer("arg1", "input", (), int64, 1), buffer("out1", "output", (), int64, 1)
    steps = [CopyBuffer(whole(x), whole(y)), CopyBuffer(whole(scalar), whole(target))]
    artifact = compile_program(program("copies", [x, y, scalar, target], steps))
    a = (small_integers((3, 4, 5), float32) + 1j).astype(np.complex64)
    first, second = artifact(a, np.array(7))
    np.testing.assert_array_equal(first, a)
    assert first.strides == (8, 120, 24) and second == 7
