"""Shape claims: how many kernels, phases and temporaries a program has, counted from the IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import assert_same, compiled

from lamina_fx import float32
from lamina_inductor.ir.kernel import Loop, walk
from lamina_inductor.ir.program import Convolution, Gemm, Launch, Program
from lamina_prims import ops

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def standardise(x: Any) -> Any:
    return ops.div(ops.sub(x, ops.mean(x, 0, True)), ops.std(x, 0, keepdim=True))


def attention(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(ops.mul(ops.matmul(q, ops.permute(k, (0, 2, 1))), 0.5), -1), v)


def norm_backward(x: Any, ct: Any, weight: Any) -> Any:
    """Row and column reductions of one pass over the data."""
    mean = ops.mean(x, 1, True)
    scaled = ops.mul(ct, weight)
    gx = ops.sub(scaled, ops.mean(ops.mul(scaled, ops.sub(x, mean)), 1, True))
    return gx, ops.sum(ops.mul(ct, ops.sub(x, mean)), 0), ops.sum(ct, 0)


CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "pointwise chain": (lambda x, y: ops.tanh(ops.add(ops.mul(x, 2.0), ops.exp(y))), (floats(6, 8), floats(6, 8)), 1),
    "through a transpose": (lambda x, y: ops.add(ops.permute(ops.exp(x), (1, 0)), y), (floats(6, 8), floats(8, 6)), 1),
    "through a reshape": (lambda x: ops.mul(ops.reshape(ops.exp(x), (3, 16)), 2.0), (floats(6, 8),), 1),
    "several results": (lambda x: (ops.exp(x), ops.sum(ops.exp(x), 1), ops.sin(x)), (floats(6, 8),), 1),
    "softmax": (lambda x: ops.softmax(x, -1), (floats(6, 8),), 1),
    "softmax over rows": (lambda x: ops.softmax(x, 0), (floats(6, 300),), 1),
    "layer norm and gelu": (
        lambda x, w, b: ops.gelu(ops.layer_norm(x, (8,), w, b)), (floats(6, 8), floats(8), floats(8)), 1,
    ),
    "rms norm": (lambda x, w: ops.rms_norm(x, (8,), w), (floats(6, 8), floats(8)), 1),
    "cross entropy": (lambda x, t: ops.cross_entropy(x, t), (floats(6, 8), RNG.integers(0, 8, 6)), 1),
    "standardised columns": (standardise, (floats(40, 300),), 1),
    "variance of all": (lambda x: ops.var(x), (floats(30, 20),), 1),
    "sum of all": (lambda x: ops.sum(ops.sin(ops.add(ops.mul(x, 2.0), 1.0))), (floats(300, 100),), 1),
    "norm backward": (norm_backward, (floats(64, 48), floats(64, 48), floats(48)), 1),
    "independent small ones": (lambda x, y: (ops.exp(x), ops.sum(y, 0)), (floats(5), floats(7, 3)), 2),
    "concatenation": (lambda x, y: ops.cat((ops.mul(x, 2.0), ops.add(y, 1.0)), 1), (floats(4, 5), floats(4, 7)), 1),
    "embedding": (
        lambda w, i: ops.mul(ops.embedding(i, w), 2.0), (floats(10, 8), RNG.integers(0, 10, (3, 4))), 1,
    ),
    "gathered apart, shaped alike": (
        lambda x, i, j, w: ops.add(*[
            ops.mul(ops.reshape(ops.gather(x, 1, k), (4, 2, 3)), ops.reshape(w, (4, 2, 3))) for k in (i, j)
        ]),
        (floats(4, 9), RNG.integers(0, 9, (4, 6)), RNG.integers(0, 9, (4, 6)), floats(4, 6)), 1,
    ),
    "one element of each row": (
        lambda x, i: (ops.sum(t := ops.exp(x), 1), ops.gather(t, 1, i)), (floats(6, 8), RNG.integers(0, 8, (6, 1))), 1,
    ),
    "dropout-like": (
        lambda s, x: ops.where(ops.lt(ops.convert_element_type(ops.philox(s, (6, 8)), float32), 2.0**31), x, 0.0),
        (np.array([1, 2]), floats(6, 8)), 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_kernels(case: str) -> None:
    fn, args, kernels = CASES[case]
    program, got = compiled(fn, *args)
    want = fn(*args)
    for have, wanted in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        assert_same(have, wanted)
    assert len(program.kernels) == kernels
    assert len(program.steps) == 1


def test_one_element_of_some_rows() -> None:
    def function(x: Any, i: Any) -> Any:
        t = ops.exp(x)
        return ops.sum(t, 1), ops.gather(t, 1, i)

    args = floats(6, 8), RNG.integers(0, 8, (4, 1))
    _, got = compiled(function, *args)
    for have, wanted in zip(got, function(*args), strict=True):
        assert_same(have, wanted)


@pytest.mark.parametrize(
    ("mode", "padding", "kernels"),
    [
        ("nearest", "zeros", 2), ("bilinear", "zeros", 2), ("bilinear", "border", 2), ("bilinear", "reflection", 2),
        ("bicubic", "zeros", 2), ("bicubic", "border", 4), ("bicubic", "reflection", 6),
    ],
)  # fmt: skip
def test_samples_of_images_are_read_by_one_kernel(mode: str, padding: str, kernels: int) -> None:
    """The others find the places, which the channels share, as many in one as a kernel may hold."""
    args = floats(2, 3, 7, 5), floats(2, 4, 6, 2)
    program, (got,) = compiled(lambda x, g: ops.grid_sample(x, g, mode, padding), *args)
    assert_same(got, ops.grid_sample(*args, mode, padding))
    assert len(program.kernels) <= kernels


def launches(program: Program) -> list[Launch]:
    return [s for s in program.steps if type(s) is Launch]


def test_bias_and_gelu_are_the_epilogue_of_a_product() -> None:
    x, w, b = floats(8, 5), floats(5, 7), floats(7)
    program, (got,) = compiled(lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)), x, w, b)
    assert_same(got, ops.gelu(ops.add(ops.matmul(x, w), b)))
    (step,) = program.steps
    assert type(step) is Gemm and step.epilogue is not None
    assert program.workspace == 0  # the product lies where its epilogue stores


def test_attention_is_two_products() -> None:
    args = floats(3, 8, 4), floats(3, 8, 4), floats(3, 8, 4)
    program, (got,) = compiled(attention, *args)
    assert_same(got, attention(*args))
    assert [type(s) for s in program.steps] == [Gemm, Gemm]
    assert program.steps[0].epilogue is not None


def test_equal_kernels_of_different_sizes_are_one() -> None:
    arrays = [floats(n, 3) for n in (2, 5, 9, 30)]
    program, got = compiled(lambda *xs: tuple(ops.exp(ops.mul(x, 2.0)) for x in xs), *arrays)
    (launch,) = launches(program)
    assert len(launch.parts) == 4 and len(program.kernels) == 1
    for have, x in zip(got, arrays, strict=True):
        assert_same(have, np.exp(x * 2))


def test_softmax_reads_its_row_twice_and_exponentiates_once() -> None:
    program, _ = compiled(lambda x: ops.softmax(x, -1), floats(6, 8))
    (kernel,) = program.kernels
    exponentials = [s for s in walk(kernel.body) if getattr(s, "op", "") == "exp"]
    loops = [s for s in walk(kernel.body) if type(s) is Loop and s.kind == "simd"]
    assert len(exponentials) == 1 and len(loops) == 3


def test_a_long_chain_is_bounded() -> None:
    def chain(x: Any) -> Any:
        for _ in range(600):
            x = ops.add(ops.mul(x, 1.001), 0.001)
        return x

    program, (got,) = compiled(chain, floats(16))
    assert got.shape == (16,)
    assert 2 <= len(launches(program)) <= 12


def test_temporaries_share_memory() -> None:
    def products(x: Any, *ws: Any) -> Any:
        for w in ws:
            x = ops.matmul(x, w)
        return x

    program, _ = compiled(products, floats(64, 64), *[floats(64, 64) for _ in range(8)])
    temporaries = [b for b in program.buffers.values() if b.storage == "workspace"]
    assert len(temporaries) == 7
    assert program.workspace == 2 * 64 * 64 * 4


def test_bias_and_relu_are_the_epilogue_of_a_convolution() -> None:
    def conv(x: Any, w: Any, b: Any) -> Any:
        return ops.relu(ops.conv2d(x, w, b, padding=1))

    args = floats(2, 3, 8, 8), floats(4, 3, 3, 3), floats(4)
    program, (got,) = compiled(conv, *args)
    assert_same(got, conv(*args), 1e-4)
    (step,) = program.steps
    assert type(step) is Convolution and step.epilogue is not None


def test_long_sums_are_accurate() -> None:
    x = RNG.uniform(0.9, 1.1, (2, 200_000)).astype(np.float32)
    _, (rows,) = compiled(lambda x: ops.sum(x, 1), x)
    _, (spread,) = compiled(lambda x: ops.sub(x, ops.mean(x, 1, True)), x)
    np.testing.assert_allclose(rows, x.astype(np.float64).sum(1), rtol=1e-6)
    np.testing.assert_allclose(spread, x - x.astype(np.float64).mean(1, keepdims=True), atol=1e-6)


def test_pieces_of_a_concatenation_are_computed_in_it() -> None:
    def pieces(x: Any) -> Any:
        return ops.cat((ops.exp(x), ops.sin(x), ops.mul(x, 2.0)), 0)

    x = floats(4, 6)
    program, (got,) = compiled(pieces, x)
    assert_same(got, pieces(x))
    assert len(program.kernels) == 1 and program.workspace == 0
