"""Arithmetic of every dtype, eager against compiled: overflow, signs of remainders, NaN, infinities, -0, promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by it)
import numpy as np
import pytest

import lamina

INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ([-7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 127, -128], [2, -2, 3, -3, 1, -1, 5, -5, 7, -7, 127, -1])
UNSIGNED = ([0, 1, 2, 3, 7, 100, 200, 255], [1, 2, 3, 7, 255, 200, 3, 2])
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3.7, -3.7, 2.5, -2.5, 0.5, -0.5, 1.5, 88.9, -104.0]


def integer_pair(dtype: str) -> tuple[Any, Any]:
    a, b = UNSIGNED if dtype == "uint8" else SIGNED
    made = getattr(lamina, dtype)
    return lamina.tensor(a).to(made), lamina.tensor(b).to(made)


def special_pair(dtype: str) -> tuple[Any, Any]:
    a, b = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    made = getattr(lamina, dtype)
    return lamina.tensor(a.reshape(-1)).to(made), lamina.tensor(b.reshape(-1)).to(made)


def integer_arithmetic(a: Any, b: Any) -> Any:
    return a + b, a * b, a - b, a // b, a % b, a / b, -a, a.abs(), a & b, a | b, a ^ b, ~a, a < b, a.sign()


def integer_division(a: Any, b: Any) -> Any:
    return (
        lamina.remainder(a, b), lamina.fmod(a, b), lamina.div(a, b, rounding_mode="floor"),
        lamina.div(a, b, rounding_mode="trunc"), lamina.maximum(a, b), a.clamp(1, 100), a + 200, a * 3, a * 2.5,
    )  # fmt: skip


def integer_sums(a: Any, b: Any) -> Any:
    return a.sum(), a.prod(), a.cumsum(0), a.max(), a.argmin(), a.sum(dtype=a.dtype), a.prod(dtype=a.dtype), a.any()


def integer_in_place(a: Any, b: Any) -> Any:
    a = a.clone()
    a += b
    a *= 3
    a //= 2
    a %= 5
    return a, a << (b & 3), a >> (b & 3)


def float_arithmetic(a: Any, b: Any) -> Any:
    return (
        a + b, a * b, a - b, a / b, a // b, a % b, lamina.fmod(a, b), lamina.maximum(a, b), lamina.minimum(a, b),
        a < b, a == b, a != b, a >= b, lamina.pow(a, b), lamina.atan2(a, b), lamina.where(a > b, a, -1.0),
    )  # fmt: skip


def float_rounding(a: Any, b: Any) -> Any:
    return (
        a.round(), a.floor(), a.ceil(), a.trunc(), a.sign(), a.abs(), -a, a.relu(), a.clamp(-1, 1), a.isnan(),
        a.isinf(), a.isfinite(), a.bool(), a.frac(), a.nan_to_num(), a.any(), a.all(),
    )  # fmt: skip


def float_functions(a: Any, b: Any) -> Any:
    functional = lamina.nn.functional
    return (
        a.exp(), a.log(), a.sqrt(), a.rsqrt(), a.tanh(), a.sigmoid(), a.log1p(), a.expm1(), a.erf(), a.reciprocal(),
        functional.gelu(a), functional.silu(a), functional.softplus(a), functional.relu6(a), functional.hardtanh(a),
        functional.leaky_relu(a), functional.elu(a), functional.hardswish(a), functional.logsigmoid(a),
    )  # fmt: skip


def float_sums(a: Any, b: Any) -> Any:
    return a.max(), a.min(), a.argmax(), a.argmin(), a.sum(), a.amax(0), a.softmax(0), a.cumsum(0), a.logsumexp(0)


def truths(a: Any, b: Any) -> Any:
    return (
        a & b, a | b, a ^ b, ~a, a.sum(), a.any(), a.all(), a + b, a * b, a == b, a.float(), a.int() + 1, a < b,
        a.cumsum(0), a.logical_not(), lamina.where(a, 1, 2), a * 2.0, a * 3,
    )  # fmt: skip


def complex_arithmetic(a: Any, b: Any) -> Any:
    return (
        a + b, a * b, a / b, a.abs(), a.angle(), a.real + 1, a.imag * 2, a.conj(), -a, a.exp(), a.sqrt(), a.sum(),
        a.mean(), a * 2, a * 1j, a == b,
    )  # fmt: skip


def promoted(a: Any, b: Any) -> Any:
    c, d, e = a.to(lamina.int64), a.to(lamina.float16), a.to(lamina.bfloat16)
    return a + c, a + d, a + e, c + d, c * e, d * e, a * 1.5, c + 1.5, d + 1, a / c, c / 2, d + True, lamina.cat([c, d])


def complex_pair(dtype: str) -> tuple[Any, Any]:
    values = np.array([1 + 2j, -0.5j, 3, -2 + 1j, 0.25 - 4j], np.complex64)
    return lamina.tensor(values), lamina.tensor(values[::-1].copy())


def truth_pair(dtype: str) -> tuple[Any, Any]:
    return lamina.tensor([False, True, False, True]), lamina.tensor([False, False, True, True])


Case = tuple[Callable[..., Any], Callable[[str], tuple[Any, Any]], str]
CASES: list[Case] = [
    *[(f, integer_pair, d) for d in INTEGERS for f in (integer_arithmetic, integer_division, integer_sums)],
    *[(integer_in_place, integer_pair, d) for d in ("int8", "uint8", "int32")],
    *[(f, special_pair, d) for d in FLOATS for f in (float_arithmetic, float_rounding, float_functions, float_sums)],
    (truths, truth_pair, "bool"),
    (complex_arithmetic, complex_pair, "complex64"),
    (promoted, integer_pair, "int8"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("function", "make", "dtype"), CASES)
def test_numbers(function: Any, make: Any, dtype: str) -> None:
    args = make(dtype)
    eager, compiled = function(*args), lamina.compile(function, fullgraph=True)(*args)
    tolerance = 1e-2 if dtype in ("float16", "bfloat16") else 1e-4
    for position, (want, have) in enumerate(zip(eager, compiled, strict=True)):
        assert want.dtype is have.dtype, position
        a, b = want.numpy(), have.numpy()
        if dtype in ("float16", "bfloat16") and a.dtype.kind not in "biu":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=f"{function.__name__} {position}")
        if a.dtype.kind == "f":
            zero = (a == 0) & (b == 0)
            assert (np.signbit(a)[zero] == np.signbit(b)[zero]).all(), f"sign of zero in {function.__name__} {position}"


def test_a_scatter_beside_kernels_of_other_widths_writes_its_own_buffer() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        v = lamina.nn.functional.pad(a.tanh(), (1, 2))
        top = lamina.stack([b, c], -1).max(-1)[0]
        top.diagonal().add_(0.97)
        doubled = lamina.cat([v, v], -1)
        return v.mean().gather(0, v.mean().argmax(0, keepdim=True)), doubled, top, doubled.t().logsumexp(-1)

    args = [lamina.arange(25.0).reshape(5, 5).sin() * k for k in (1.0, -0.5, 0.25)]
    for want, have in zip(f(*args), lamina.compile(f)(*args), strict=True):
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_the_position_of_an_extreme_over_two_loops() -> None:
    def f(a: Any) -> Any:
        return a.tril().reshape(-1).argmax(), a.tril().argmin(), (a / a.sum(-1, keepdim=True)).argmax()

    a = (lamina.arange(15.0).reshape(3, 5) * 0.7).sin()
    assert [int(v) for v in lamina.compile(f)(a)] == [int(v) for v in f(a)]
