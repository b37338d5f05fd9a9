"""Accuracy of the generated elementary functions against NumPy in float64, in units in the last place."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from program_builders import elementwise

from lamina_fx import Graph, GraphBuilder, TensorSpec
from lamina_fx.dtype import bool_, dtype_of, float32, float64, int32, int64
from lamina_inductor import CppBackend
from lamina_inductor.backends.cpp import compile_program, supports
from lamina_inductor.host.arguments import numpy_dtype
from lamina_prims import decompose, operator, ops
from lamina_prims.arrays import converted

SPECIALS = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, 1e-30, 88.7, -88.0, -103.0]
)

FUNCTIONS: dict[str, tuple[Any, float, float, float]] = {  # reference, range, ULP allowed
    "exp": (np.exp, -103, 88.7, 4), "exp2": (np.exp2, -149, 127.9, 4), "expm1": (np.expm1, -20, 88, 4),
    "log": (np.log, 1e-38, 1e30, 4), "log2": (np.log2, 1e-38, 1e30, 4), "log10": (np.log10, 1e-38, 1e30, 4),
    "log1p": (np.log1p, -0.999, 1e6, 4), "sin": (np.sin, -1e4, 1e4, 4), "cos": (np.cos, -1e4, 1e4, 4),
    "tan": (np.tan, -100, 100, 4), "asin": (np.arcsin, -1, 1, 4), "acos": (np.arccos, -1, 1, 4),
    "atan": (np.arctan, -1e3, 1e3, 4), "sinh": (np.sinh, -88, 88, 4), "cosh": (np.cosh, -88, 88, 4),
    "tanh": (np.tanh, -10, 10, 4), "asinh": (np.arcsinh, -1e5, 1e5, 4), "acosh": (np.arccosh, 1, 1e5, 4),
    "atanh": (np.arctanh, -0.9999, 0.9999, 4), "erf": (np.vectorize(math.erf), -6, 6, 4),
    "erfc": (np.vectorize(math.erfc), -4, 9, 5), "sqrt": (np.sqrt, 0, 1e30, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 2),
    "lgamma": (np.vectorize(math.lgamma), 2.5, 1e4, 6), "cbrt": (np.cbrt, -1e9, 1e9, 4),
    "reciprocal": (lambda x: 1 / x, 1, 1e9, 0.51),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80, 6), "floor": (np.floor, -1e9, 1e9, 0),
    "round": (np.rint, -1e6, 1e6, 0),
}  # fmt: skip


def run(op: str, *arrays: np.ndarray[Any, Any], result: Any = None, extra: Any = ()) -> np.ndarray[Any, Any]:
    dtype = dtype_of(arrays[0].dtype.name)
    artifact = compile_program(elementwise(op, dtype, result or dtype, len(arrays), arrays[0].size, extra))
    return artifact(*arrays)[0]


def dense(low: float, high: float) -> np.ndarray[Any, Any]:
    span = np.linspace(low, high, 20001)
    sign = np.geomspace(1e-30, max(abs(low), abs(high)), 5001)
    return np.clip(np.concatenate([span, sign, -sign]), low, high)


def ulps(got: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        error = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(rounded)).astype(np.float64)
    error[(got == rounded) | (np.isnan(got) & np.isnan(rounded))] = np.minimum(error, 0.5)[
        (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    ]
    return float(np.nanmax(np.where(np.isfinite(error), error, np.where(got == rounded, 0, np.inf))))


@pytest.mark.parametrize("op", FUNCTIONS)
def test_float32_is_within_its_bound(op: str) -> None:
    reference, low, high, bound = FUNCTIONS[op]
    x = dense(low, high).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(x.astype(np.float64)), np.float64)
    assert ulps(run(op, x), exact) <= max(bound, 0.5)


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "erf", "sin", "log1p", "expm1", "sqrt"])
def test_specials_are_numpys(op: str) -> None:
    reference = FUNCTIONS[op][0]
    for kind in (np.float32, np.float64):
        x = SPECIALS.astype(kind)
        with np.errstate(all="ignore"):
            expected = np.asarray(reference(x), kind)
        got = run(op, x)
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_allclose(got, expected, rtol=2e-6 if kind is np.float32 else 1e-14, atol=1e-44)
        assert np.array_equal(np.signbit(got[:2]), np.signbit(expected[:2]))


def test_erfinv_and_digamma() -> None:
    y = np.concatenate([np.linspace(-0.999999, 0.999999, 4001), [1e-12, 0.0, 1.0, -1.0]])
    back = np.vectorize(math.erf)(run("erfinv", y)[:-4])
    np.testing.assert_allclose(back, y[:-4], rtol=1e-14, atol=1e-16)
    assert run("erfinv", y)[-2:].tolist() == [np.inf, -np.inf]
    # digamma(1) = -gamma, digamma(1/2) = -gamma - 2 ln 2, digamma(x + 1) = digamma(x) + 1/x
    x = np.array([1.0, 0.5, 3.25, 4.25, -0.5, 100.0])
    d = run("digamma", x)
    gamma = 0.57721566490153286
    np.testing.assert_allclose(d[:2], [-gamma, -gamma - 2 * math.log(2)], rtol=1e-13)
    np.testing.assert_allclose(d[3] - d[2], 1 / 3.25, rtol=1e-12)


@pytest.mark.parametrize("op", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_treat_nan_as_numpy(op: str) -> None:
    a, b = (g.ravel().copy() for g in np.meshgrid(SPECIALS.astype(np.float32), SPECIALS.astype(np.float32)))
    expected = getattr(np, op)(a, b)
    np.testing.assert_array_equal(run(op, a, b), expected)


INTEGER_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_div": np.floor_divide, "remainder": np.remainder,
    "maximum": np.maximum, "bitwise_xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"])
def test_integer_arithmetic_wraps_and_never_traps(kind: str) -> None:
    info = np.iinfo(kind)
    values = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.max - 1, info.min + 1], kind)
    if info.min < 0:
        values = np.concatenate([values, np.array([-1, -2, -3, -100], kind)])
    a, b = (g.ravel().copy() for g in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        for op, reference in INTEGER_OPERATORS.items():
            np.testing.assert_array_equal(run(op, a, b), reference(a, b), err_msg=op)
        np.testing.assert_array_equal(run("abs", a), np.abs(a))
        np.testing.assert_array_equal(run("neg", a), np.negative(a))


def test_float_remainder_and_floor_division() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, 1e30, 3e-3, np.inf, -np.inf, np.nan], np.float32)
    a, b = (g.ravel().copy() for g in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run("remainder", a, b), np.remainder(a, b))
        np.testing.assert_array_equal(run("floor_div", a, b), np.floor_divide(a, b))
        np.testing.assert_array_equal(run("fmod", a, b), np.fmod(a, b))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_convert_exactly(name: str) -> None:
    half = numpy_dtype(dtype_of(name))
    width = np.uint16 if half.itemsize == 2 else np.uint8
    every = np.arange(1 << (8 * half.itemsize), dtype=np.uint32).astype(width).view(half)
    wide = run("convert_element_type", every, result=float32)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    with np.errstate(all="ignore"):
        between = np.concatenate(
            [wide, np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf), (wide[:-1] + wide[1:]) / 2]
        )
    random = np.random.default_rng(0).standard_normal(20000) * np.geomspace(1e-9, 1e5, 20000)
    with np.errstate(all="ignore"):
        x = np.concatenate([between, random, SPECIALS]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = converted(x, half)
    got = run("convert_element_type", x, result=dtype_of(name))
    both = np.isnan(expected.astype(np.float32)) & np.isnan(got.astype(np.float32))
    np.testing.assert_array_equal(got.view(width)[~both], expected.view(width)[~both])


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_complex_functions(kind: str) -> None:
    rng = np.random.default_rng(1)
    a, b = ((rng.standard_normal(257) + 1j * rng.standard_normal(257)).astype(kind) for _ in range(2))
    tolerance = 3e-6 if kind == "complex64" else 1e-13
    for op, expected in [("add", a + b), ("mul", a * b), ("div", a / b)]:
        np.testing.assert_allclose(run(op, a, b), expected, rtol=tolerance)
    for op in ("exp", "log", "sqrt", "tanh", "sin", "cos"):
        np.testing.assert_allclose(run(op, a), getattr(np, op)(a), rtol=tolerance * 4)
    part = float32 if kind == "complex64" else float64
    np.testing.assert_allclose(run("abs", a, result=part), np.abs(a), rtol=tolerance)


def test_comparisons_and_logic() -> None:
    a, b = (g.ravel().copy() for g in np.meshgrid(SPECIALS.astype(np.float32), SPECIALS.astype(np.float32)))
    for op, ufunc in [
        ("lt", np.less),
        ("le", np.less_equal),
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("logical_and", np.logical_and),
    ]:
        np.testing.assert_array_equal(run(op, a, b, result=bool_), ufunc(a, b))
    for op in ("isnan", "isinf", "isfinite", "signbit"):
        np.testing.assert_array_equal(run(op, a, result=bool_), getattr(np, op)(a))
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(run("logical_xor", p, q), p ^ q)


def test_shifts_beyond_the_width() -> None:
    a = np.array([1, -8, 127, 5, -1, 3], np.int32)
    n = np.array([3, 1, 40, 31, 33, 0], np.int32)
    assert run("bitwise_left_shift", a, n).tolist() == [8, -16, 0, -(2**31), 0, 3]
    assert run("bitwise_right_shift", a, n).tolist() == [0, -4, 0, 0, -1, 3]


def test_constant_powers_need_no_logarithm() -> None:
    x = np.linspace(0.1, 9, 1000, dtype=np.float32)
    for exponent in (2.0, 3.0, 0.5, -1.0, 1.7):
        np.testing.assert_allclose(run("pow", x, extra=(exponent,)), x.astype(float) ** exponent, rtol=1e-6)


def test_supports_says_what_exists() -> None:
    assert supports("exp", float32) and supports("add", int64) and supports("where", bool_)
    assert (
        not supports("exp", int32)
        and not supports("no_such_operator", float32)
        and not supports("erf", dtype_of("complex64"))
    )


def test_one_plus_erf_keeps_what_a_sum_would_cancel() -> None:
    x = np.linspace(-6, 6, 40001).astype(np.float32)
    exact = np.vectorize(math.erfc)(-x.astype(np.float64))
    got = run("erf_plus_one", x)
    assert np.abs(got - exact).max() < 2.5e-7
    near = (x > -3.9) & (x < 0)
    assert (np.abs(got - exact)[near] / exact[near]).max() < 1e-5
    assert np.isnan(run("erf_plus_one", np.array([np.nan], np.float32))).all()
    assert run("erf_plus_one", np.array([np.inf, -np.inf, 0.0], np.float32)).tolist() == [2.0, 0.0, 1.0]


def test_masked_exp_is_exact_over_the_whole_range() -> None:
    x = np.concatenate([dense(-103, 88.7), np.linspace(-150, -80, 20001)]).astype(np.float32)
    with np.errstate(all="ignore"):
        assert ulps(run("exp_masked", x), np.exp(x.astype(np.float64))) <= 1.1
    special = np.array([-np.inf, -1e30, -104.5, np.inf, 89.0], np.float32)
    assert run("exp_masked", special).tolist() == [0.0, 0.0, 0.0, np.inf, np.inf]
    assert np.isnan(run("exp_masked", np.array([np.nan], np.float32))).all()


def test_exp_behind_a_mask_takes_our_polynomial() -> None:
    graph = Graph()
    builder = GraphBuilder(graph)
    x = builder.proxy(graph.placeholder("x", spec=TensorSpec((64,), float32)))
    keep = builder.proxy(graph.placeholder("keep", spec=TensorSpec((64,), bool_)))
    graph.output((ops.exp(ops.where(keep, x, -math.inf)).node,))
    artifact = CppBackend().compile(decompose(graph, level="prims"), name="masked")
    assert "lm_exp_own" in artifact.kernels[0].source
    values = np.linspace(-5, 5, 64).astype(np.float32)
    mask = values > 0
    np.testing.assert_allclose(artifact(values, mask)[0], np.where(mask, np.exp(values), 0), rtol=1e-6)


SPECIAL = {  # range, bound in float64 relative to the reference
    "erfcx": (-26, 200, 2e-13), "i0e": (-300, 300, 1e-13), "i1e": (-300, 300, 1e-13), "digamma": (0.1, 300, 1e-12),
}  # fmt: skip


@pytest.mark.parametrize("op", SPECIAL)
def test_special_functions_are_the_references(op: str) -> None:
    low, high, bound = SPECIAL[op]
    x = np.linspace(low, high, 4001)
    want = operator(op)(x)
    np.testing.assert_allclose(run(op, x), want, rtol=bound, atol=bound)
    np.testing.assert_allclose(run(op, x.astype(np.float32)), want.astype(np.float32), rtol=1e-5, atol=1e-7)
    odd = np.array([np.nan, np.inf, -np.inf])
    if op != "digamma":
        np.testing.assert_allclose(run(op, odd), {"erfcx": [np.nan, 0, np.inf]}.get(op, [np.nan, 0, 0]))


def test_erfcx_is_scaled_erfc() -> None:
    x = np.linspace(-5, 5, 2001)
    exact = np.exp(x.astype(np.longdouble) ** 2).astype(float) * np.vectorize(math.erfc)(x)
    np.testing.assert_allclose(run("erfcx", x), exact, rtol=3e-15)


def test_ndtri_inverts_the_distribution() -> None:
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 2001), np.geomspace(1e-300, 0.4, 400)])
    quantile = np.vectorize(NormalDist().inv_cdf)
    np.testing.assert_allclose(run("ndtri", p), quantile(p), rtol=1e-12, atol=1e-14)
    single = p[p > 1e-30].astype(np.float32)
    np.testing.assert_allclose(run("ndtri", single), quantile(single.astype(float)), rtol=3e-7, atol=1e-7)
    assert run("ndtri", np.array([0.0, 1.0, -0.1, 1.1, np.nan])).tolist()[:2] == [-np.inf, np.inf]
    assert np.isnan(run("ndtri", np.array([-0.1, 1.1, np.nan]))).all()


def test_zeta() -> None:
    s, q = (g.ravel().copy() for g in np.meshgrid([1.5, 2.0, 3.0, 7.5, 20.0], [0.3, 1.0, 2.5, 17.0, 1000.0]))
    np.testing.assert_allclose(run("zeta", s, q), operator("zeta")(s, q), rtol=1e-13)
    np.testing.assert_allclose(run("zeta", np.array([2.0]), np.array([1.0])), math.pi**2 / 6, rtol=1e-14)
    odd = run("zeta", np.array([1.0, 0.5, 2.0, 3.0]), np.array([2.0, 2.0, -3.0, -2.5]))
    assert odd[0] == np.inf and np.isnan(odd[1]) and odd[2] == np.inf
    np.testing.assert_allclose(odd[3], operator("zeta")(np.array([3.0]), np.array([-2.5]))[0], rtol=1e-13)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_logaddexp(kind: type) -> None:
    a, b = (g.ravel().copy() for g in np.meshgrid(SPECIALS.astype(kind), SPECIALS.astype(kind)))
    with np.errstate(all="ignore"):
        want = np.logaddexp(a, b)
    np.testing.assert_allclose(run("logaddexp", a, b), want, rtol=1e-6 if kind is np.float32 else 1e-14)


def test_parts_of_complex_numbers() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal(100), rng.standard_normal(100)
    z = run("complex", a, b, result=dtype_of("complex128"))
    np.testing.assert_array_equal(z, a + 1j * b)
    np.testing.assert_array_equal(run("real", z, result=float64), a)
    np.testing.assert_array_equal(run("imag", z, result=float64), b)
