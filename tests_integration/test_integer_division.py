"""Integer division by zero raises compiled as it does in eager, and nothing is written then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "floor": lambda a, b: a // b,
    "remainder": lambda a, b: a % b + 1,
    "fmod": lambda a, b: lamina.fmod(a, b),
    "trunc": lambda a, b: lamina.div(a, b, rounding_mode="trunc"),
    "number": lambda a, b: a // 0,
    "number_divided": lambda a, b: 7 % b,
    "fused": lambda a, b: (a // b).sum(-1) * 2,
    "chosen_later": lambda a, b: lamina.where(b == 0, 0, a // b),
    "in_place": lambda a, b: a.add_(1).floor_divide_(b),
}


def said(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(RuntimeError) as raised:
        call(*args)
    return str(raised.value)


@pytest.mark.parametrize("dtype", [lamina.int64, lamina.int32, lamina.uint8])
@pytest.mark.parametrize("name", CASES)
def test_zero_raises(name: str, dtype: Any) -> None:
    a, b = (lamina.tensor(v, dtype=dtype) for v in ([[4, 5, 6], [7, 8, 9]], [[1, 2, 3], [4, 0, 5]]))
    eager = said(CASES[name], a.clone(), b)
    before = a.clone()
    compiled = said(lamina.compile(CASES[name]), a, b)
    assert eager == "ZeroDivisionError: integer division or modulo by zero"
    assert compiled.startswith(f"{eager} (at ") and compiled.rstrip(")").rpartition(":")[2].isdigit()
    assert a.tolist() == before.tolist()


@pytest.mark.parametrize("name", [n for n in CASES if n != "number"])
def test_other_divisors(name: str) -> None:
    a, b = lamina.tensor([[40, -5, 6], [7, -8, 9]]), lamina.tensor([[1, 2, -3], [4, 7, -5]])
    assert lamina.compile(CASES[name])(a.clone(), b).tolist() == CASES[name](a.clone(), b).tolist()


def test_floats_are_not_checked() -> None:
    a, b = lamina.tensor([4.0, -5.0]), lamina.tensor([0.0, 0.0])
    assert lamina.compile(CASES["floor"])(a, b).tolist() == (a // b).tolist() == [float("inf"), float("-inf")]
