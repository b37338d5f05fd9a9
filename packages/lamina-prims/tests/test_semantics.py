"""What elements become where libraries and languages differ; views share memory; errors as users see them."""

# ruff: noqa: E501  (tables: one case a line, messages whole)

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lamina_fx import TensorSpec, dtype_of
from lamina_prims import operator, ops, resolve

nan, inf = float("nan"), float("inf")


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def u8(*values: int) -> Any:
    return np.array(values, np.uint8)


def flags(*values: bool) -> Any:
    return np.array(values, np.bool_)


VALUES: list[tuple[str, Callable[[], Any], Any]] = [
    ("floor division of ints", lambda: ops.floor_divide(i64(7, -7, 7, -7), i64(2, 2, -2, -2)), i64(3, -4, -4, 3)),
    ("truncating division", lambda: ops.trunc_divide(i64(7, -7, 7, -7), i64(2, 2, -2, -2)), i64(3, -3, -3, 3)),
    ("remainder has the divisor's sign", lambda: ops.remainder(i64(7, -7, 7, -7), i64(2, 2, -2, -2)), i64(1, 1, -1, -1)),
    ("fmod has the dividend's sign", lambda: ops.fmod(i64(7, -7, 7, -7), i64(2, 2, -2, -2)), i64(1, -1, 1, -1)),
    ("floor division of floats", lambda: ops.floor_divide(f32(7, -7, 1), 2), f32(3, -4, 0)),
    ("true division of ints", lambda: ops.div(i64(1, -3), 2), f32(0.5, -1.5)),
    ("division by zero", lambda: ops.div(f32(1, -1, 0), 0), f32(inf, -inf, nan)),
    ("unsigned wraps", lambda: ops.sub(u8(1), u8(2)), u8(255)),
    ("a scalar wraps to the tensor's dtype", lambda: ops.add(u8(1, 2), 300), u8(45, 46)),
    ("ints to negative powers", lambda: ops.pow(i64(1, 2, -1, 0), i64(-1, -1, -3, 2)), i64(1, 0, -1, 0)),
    ("power of half a root", lambda: ops.pow(f32(-0.0, 0, -inf, inf, 4), 0.5), f32(-0.0, 0, nan, inf, 2)),
    ("power of less half a root", lambda: ops.pow(f32(-0.0, 0, -inf, inf, 4), -0.5), f32(-inf, inf, nan, 0, 0.5)),
    ("ldexp beyond its powers", lambda: ops.ldexp(f32(1, 2.0**-149, 0, inf, 3), i64(-149, 200, 5000, -5000, -151)), f32(2.0**-149, 2.0**51, 0, inf, 2.0**-149)),
    ("ldexp of doubles", lambda: ops.ldexp(np.array([1.0, 1.0]), i64(1023, -1074)), np.array([2.0**1023, 5e-324])),
    ("ldexp keeps half", lambda: ops.ldexp(np.array([2.0**-20, 3.0], np.float16), i64(30, 15)), np.array([1024, inf], np.float16)),
    ("pow of floats", lambda: ops.pow(f32(-8, 0, 2), f32(1 / 3, 0, -1)), f32(nan, 1, 0.5)),
    ("shift by the width", lambda: ops.bitwise_left_shift(i64(1, 1), i64(3, 64)), i64(8, 0)),
    ("right shift keeps the sign", lambda: ops.bitwise_right_shift(i64(-8, -8), i64(1, 99)), i64(-4, -1)),
    ("bool + bool is or", lambda: ops.add(flags(True, True), flags(True, False)), flags(True, True)),
    ("bool * bool is and", lambda: ops.mul(flags(True, True), flags(True, False)), flags(True, False)),
    ("round half to even", lambda: ops.round(f32(0.5, 1.5, -0.5, 2.5)), f32(0, 2, -0.0, 2)),
    ("rounding ints changes nothing", lambda: ops.floor(i64(3)), i64(3)),
    ("sign of nan", lambda: ops.sign(f32(nan, -0.0, -2)), f32(0, 0, -1)),
    ("maximum passes nan on", lambda: ops.maximum(f32(1, nan), f32(nan, 1)), f32(nan, nan)),
    ("fmax does not", lambda: ops.fmax(f32(1, nan), f32(nan, 1)), f32(1, 1)),
    ("amax passes nan on", lambda: ops.amax(f32(1, nan, 3)), np.float32(nan)),
    ("argmax: nan wins", lambda: ops.argmax(f32(1, nan, 3)), np.int64(1)),
    ("argmax: the first of equals", lambda: ops.argmax(f32(1, 3, 3)), np.int64(1)),
    ("clamp keeps nan", lambda: ops.clamp(f32(nan, -5, 5), -1, 1), f32(nan, -1, 1)),
    ("clamp with min > max is max", lambda: ops.clamp(f32(0, 9), 3, 1), f32(1, 1)),
    ("sum of bools", lambda: ops.sum(flags(True, True, False)), np.int64(2)),
    ("sum of uint8", lambda: ops.sum(u8(200, 100)), np.int64(300)),
    ("prod of bools", lambda: ops.prod(flags(True, False)), np.int64(0)),
    ("any of uint8 is uint8", lambda: ops.any(u8(0, 3)), np.uint8(1)),
    ("all of nothing", lambda: ops.all(f32()), np.True_),
    ("sum of nothing", lambda: ops.sum(f32()), np.float32(0)),
    ("mean of nothing", lambda: ops.mean(f32()), np.float32(nan)),
    ("softmax of large numbers", lambda: ops.softmax(f32(1000, 1000), 0), f32(0.5, 0.5)),
    ("softmax of -inf", lambda: ops.softmax(f32(-inf, 0), 0), f32(0, 1)),
    ("logsumexp of -inf", lambda: ops.logsumexp(f32(-inf, -inf), 0), np.float32(-inf)),
    ("where promotes scalars", lambda: ops.where(flags(True, False), i64(1, 2), 0.5), f32(1, 0.5)),
    ("isinf of ints", lambda: ops.isinf(i64(1)), flags(False)),
    ("logical_not of floats", lambda: ops.logical_not(f32(0, 0.5, nan)), flags(True, False, False)),
    ("float to int truncates", lambda: ops.convert_element_type(f32(1.7, -1.7), dtype_of("int32")), np.array([1, -1], np.int32)),
    ("complex to float", lambda: ops.convert_element_type(np.array([1 + 2j]), dtype_of("float64")), np.array([1.0])),
    ("arange of floats", lambda: resolve("arange", (0.0, 1.0, 0.25), {})(0.0, 1.0, 0.25), f32(0, 0.25, 0.5, 0.75)),
    ("arange downwards", lambda: resolve("arange", (5, 0, -2), {})(5, 0, -2), i64(5, 3, 1)),
    ("full takes its dtype from the value", lambda: ops.full((1,), True), flags(True)),
    ("negative indices", lambda: ops.index(f32(1, 2, 3), [i64(-1, 0)]), f32(3, 1)),
    ("index_put adds repeated positions", lambda: ops.index_put(f32(0, 0), [i64(1, 1)], f32(2, 3), True), f32(0, 5)),
    ("cat skips legacy empty tensors", lambda: ops.cat([f32(), np.ones((1, 2), np.float32)]), np.ones((1, 2), np.float32)),
    ("bfloat16 is accumulated in float32", lambda: ops.sum(np.full(1000, 1.001, ml_dtypes.bfloat16)), ml_dtypes.bfloat16(1000)),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [c[1:] for c in VALUES], ids=[c[0] for c in VALUES])
def test_values(run: Callable[[], Any], want: Any) -> None:
    got = run()
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-6)


BASE = np.arange(24.0).reshape(2, 3, 4)
VIEWS: list[tuple[str, tuple[Any, ...]]] = [
    ("view", ((6, 4),)), ("reshape", ((4, 6),)), ("expand", ((5, 2, 3, 4),)), ("permute", ((2, 0, 1),)),
    ("transpose", (0, 2)), ("movedim", (0, 1)), ("squeeze", ()), ("unsqueeze", (1,)), ("flatten", ()), ("select", (1, -1)),
    ("narrow", (2, 1, 2)), ("diagonal", (0, 1, 2)), ("unfold.dimension", (2, 2, 1)), ("T", ()), ("mT", ()), ("detach", ()),
    ("unflatten", (2, (2, 2))), ("as_strided", ((2, 2), (12, 1), 3)), ("expand_as", (np.empty((7, 2, 3, 4)),)),
]  # fmt: skip


@pytest.mark.parametrize(("id", "rest"), VIEWS)
def test_views_share_memory(id: str, rest: tuple[Any, ...]) -> None:
    op = operator(id)
    assert np.shares_memory(op(BASE, *rest), BASE)
    spec = TensorSpec(BASE.shape, dtype_of("float64"))
    assert op.alias and op.views((spec, *rest), {})


@pytest.mark.parametrize(
    ("id", "rest"), [("split", (2, 2)), ("chunk", (2, 2)), ("unbind", (1,)), ("tensor_split", (2,))]
)
def test_parts_share_memory(id: str, rest: tuple[Any, ...]) -> None:
    parts = operator(id)(BASE, *rest)
    assert isinstance(parts, tuple) and all(np.shares_memory(part, BASE) for part in parts)


def test_reshape_says_when_it_copies() -> None:
    spec = TensorSpec((3, 2), dtype_of("float32"), (1, 3))
    assert not ops.reshape.views((spec, (6,)), {}) and ops.reshape.views((spec, (3, 1, 2)), {})
    assert not np.shares_memory(ops.reshape(BASE.transpose(2, 0, 1), (24,)), BASE)


@pytest.mark.parametrize("id", ["flip", "clone", "cat", "gather"])
def test_these_copy(id: str) -> None:
    assert not operator(id).alias


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype_of(dtype))


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.add(spec(2, 3), spec(2, 4)), RuntimeError, "add: the shapes [2, 3] and [2, 4] do not broadcast: size 3 must match size 4 at dimension 1"),
    (lambda: ops.sub(spec(2, dtype="bool"), spec(2, dtype="bool")), RuntimeError, "sub is not defined for bool; use logical_xor (^) or logical_not (~) on bools"),
    (lambda: ops.bitwise_and(spec(2), 1), RuntimeError, "bitwise_and is not defined for float32; it takes bool, int"),
    (lambda: ops.add(spec(2, dtype="float8_e5m2"), 1), RuntimeError, "add is not defined for float8_e5m2; convert it to a wider type first"),
    (lambda: ops.exp(3), TypeError, "exp: argument 1 must be a tensor, not int"),
    (lambda: ops.add(spec(2), "a"), TypeError, "add: argument 2 must be a tensor or a number, not str"),
    (lambda: ops.sum(spec(2, 3), 2), IndexError, "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (lambda: ops.sum(spec(2, 3), (0, 0)), RuntimeError, "sum: dim 0 appears multiple times in the list of dims (0, 0)"),
    (lambda: ops.sum(spec(2, 3), 1.5), TypeError, "sum: a dimension must be an int, not float"),
    (lambda: ops.mean(spec(2, dtype="int64")), RuntimeError, "mean: the input dtype must be either a floating point or complex dtype, got int64; give dtype="),
    (lambda: ops.amax(spec(0)), IndexError, "amax: expected the reduced dimensions of [0] to have non-zero size"),
    (lambda: ops.matmul(spec(2, 3), spec(2, 3)), RuntimeError, "matmul: shapes [2, 3] and [2, 3] cannot be multiplied: the inner sizes 3 and 2 differ"),
    (lambda: ops.matmul(spec(2, 3), spec(3, dtype="int64")), RuntimeError, "matmul: expected both to have the same dtype, but got float32 and int64"),
    (lambda: ops.view(TensorSpec((3, 2), dtype_of("float32"), (1, 3)), (6,)), RuntimeError, "view size is not compatible with input tensor's size [3, 2] and stride [1, 3]: [6] spans memory that is not contiguous. Use .reshape(...) instead."),
    (lambda: ops.reshape(spec(2, 3), (4, -1)), RuntimeError, "reshape: shape [4, -1] is invalid for input of size 6 ([2, 3])"),
    (lambda: ops.expand(spec(2, 3), (3, 3)), RuntimeError, "expand: the expanded size 3 must match the existing size 2 at dimension 0: [2, 3] to [3, 3]"),
    (lambda: ops.select(spec(2, 3), 0, 5), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: ops.cat([spec(2, 3), spec(3, 2)]), RuntimeError, "cat: sizes of tensors must match except in dimension 0: [2, 3] and [3, 2] (tensor number 1 in the list)"),
    (lambda: ops.gather(spec(2, 3), 0, spec(1)), RuntimeError, "gather: expected dtype int32/int64 for index, got float32"),
    (lambda: ops.where(spec(2), 1, 2), RuntimeError, "where: expected condition to be a boolean tensor, but got float32"),
    (lambda: ops.pow(spec(2, dtype="int64"), -1), RuntimeError, "pow: Integers to negative integer powers are not allowed."),
    (lambda: ops.full((2, -1), 0.0), RuntimeError, "full: negative size in [2, -1]"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "kind", "message"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_messages(run: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        run()


def test_two_devices() -> None:
    cuda = spec(2).replace(device=type(spec(2).device)("cuda"))
    with pytest.raises(
        RuntimeError,
        match="add: Expected all tensors to be on the same device, but found at least two devices, cuda and cpu!",
    ):
        ops.add(cuda, spec(2))
    assert ops.add(cuda, spec()).device.type == "cuda", "a number on the CPU goes along"
