"""What depends on which numbers a half type has: neighbours, and comparisons with Python's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lamina

HALVES = (lamina.float16, lamina.bfloat16)


def all_numbers(dtype: Any) -> Any:
    return lamina.tensor(np.arange(1 << 16, dtype=np.uint16).view(np.int16)).view(dtype)


@pytest.mark.parametrize("to", [float("inf"), -float("inf"), 1.0, 0.0, float("nan")])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_neighbour_of_every_number(dtype: Any, to: float) -> None:
    x = all_numbers(dtype)
    y = lamina.full((1 << 16,), to, dtype=dtype)
    got, want = lamina.compile(lambda x, y: lamina.nextafter(x, y))(x, y), lamina.nextafter(x, y)
    np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())
    nonzero = want.ne(0) & want.eq(want)
    assert lamina.equal(got.view(lamina.int16)[nonzero], want.view(lamina.int16)[nonzero])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_neighbour_of_a_sum_is_one_of_its_rounded_value(dtype: Any) -> None:
    x = lamina.tensor([1.0, 3.3, 100.0], dtype=dtype)
    fn = lambda x: lamina.nextafter(x * 1.001, x * 2)  # noqa: E731
    assert lamina.compile(fn)(x).tolist() == fn(x).tolist()


def compared(x: Any) -> Any:
    return x == 0.1, x != 0.1, x < 0.1, x <= 0.1, x > 0.1, x >= 0.1, x % 0.1, lamina.fmod(x, 0.1), 0.1 == x  # noqa: SIM300


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_numbers_are_compared_as_the_tensor_has_them(dtype: Any, compiled: bool) -> None:
    x = lamina.tensor([0.1, 0.2, -1.0], dtype=dtype)
    got = (lamina.compile(compared) if compiled else compared)(x)
    wanted = [
        [True, False, False], [False, True, True], [False, False, True], [True, False, True], [False, True, False],
        [True, True, False],
    ]  # fmt: skip
    assert [g.tolist() for g in got[:6]] == wanted and got[8].tolist() == wanted[0]
    assert got[6].tolist()[:2] == got[7].tolist()[:2] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_times_powers_of_two_are_exact(name: str) -> None:
    dtype = getattr(lamina, name)
    rng = np.random.default_rng(3)
    x = lamina.tensor(rng.standard_normal(4000) * 2.0 ** rng.integers(-20, 20, 4000)).to(dtype)
    exponents = rng.integers(-1100, 1100, 4000) if name == "float64" else rng.integers(-180, 180, 4000)
    with np.errstate(all="ignore"):
        wanted = lamina.tensor(np.ldexp(x.double().numpy(), exponents.astype(np.int32))).to(dtype)
    for fn in (lamina.ldexp, lamina.compile(lambda x, e: lamina.ldexp(x, e))):
        found = fn(x, lamina.tensor(exponents))
        assert found.dtype is dtype and lamina.equal(found, wanted)
