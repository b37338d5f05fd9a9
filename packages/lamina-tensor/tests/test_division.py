"""Integers divided by zero raise, floats give infinities and NaN: as in PyTorch, in every spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina_tensor as lt

N, Z = lt.tensor([7, -7, 3]), lt.tensor([2, 0, 0])

RAISING: list[Callable[[], Any]] = [
    lambda: N // Z,
    lambda: N % Z,
    lambda: lt.div(N, Z, rounding_mode="trunc"),
    lambda: lt.div(N, Z, rounding_mode="floor"),
    lambda: lt.fmod(N, Z),
    lambda: N // 0,
    lambda: N % 0,
    lambda: lt.fmod(N, 0),
    lambda: 7 // Z,
    lambda: 7 % Z,
    lambda: lt.remainder(7, Z),
    lambda: N.clone().floor_divide_(Z),
    lambda: N.clone().remainder_(Z),
    lambda: lt.tensor([1, 2], dtype=lt.uint8) // lt.tensor([0, 1], dtype=lt.uint8),
]


@pytest.mark.parametrize("call", RAISING)
def test_integers_by_zero(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError"):
        call()


def test_the_target_of_a_failed_division_is_as_it_was() -> None:
    target = N.clone()
    with pytest.raises(RuntimeError):
        target.floor_divide_(Z)
    assert target.tolist() == N.tolist()


def test_floats_and_empty_integers_do_not_raise() -> None:
    f, z = lt.tensor([7.0, -7.0, 0.0]), lt.tensor([2.0, 0.0, 0.0])
    assert (f // z).tolist()[:2] == [3.0, float("-inf")] and (f // z).isnan().tolist() == [False, False, True]
    assert (f % z).isnan().tolist() == [False, True, True]
    assert (N / Z).isinf().tolist() == [False, True, True]
    empty = lt.zeros(0, dtype=lt.int64)
    assert (empty // lt.zeros(1, dtype=lt.int64)).tolist() == []
    assert lt.gcd(N, Z).tolist() == [1, 7, 3]


def test_the_smallest_integer_by_minus_one_wraps() -> None:
    low, one = lt.tensor([-128, 7], dtype=lt.int8), lt.tensor([-1, -1], dtype=lt.int8)
    assert (low // one).tolist() == [-128, -7]
    assert (low % one).tolist() == [0, 0]


def test_divmod_is_floor_division_and_remainder() -> None:
    x = lt.tensor([3.0, -0.25])
    for left, right in [(x, 2), (2, x), (x, lt.tensor([2.0, 3.0])), (N, 2)]:
        quotients, rest = divmod(left, right)
        assert quotients.tolist() == (left // right).tolist() and rest.tolist() == (left % right).tolist()
