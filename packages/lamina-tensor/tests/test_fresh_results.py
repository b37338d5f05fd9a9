"""Operators that arrange elements anew give memory of their own, also where nothing moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina_tensor as lt

CASES: dict[str, Callable[[Any], Any]] = {
    "roll a dimension of one": lambda x: x.roll(1, 0),
    "roll by nothing": lambda x: x.roll(0, 1),
    "roll round": lambda x: x.roll((3, 1), (1, 0)),
    "flip nothing": lambda x: x.flip(()),
    "repeat once": lambda x: x.repeat(1, 1),
    "repeat each once": lambda x: x.repeat_interleave(1, 0),
    "no rotation": lambda x: x.rot90(0),
}


@pytest.mark.parametrize("name", CASES)
def test_writing_the_result_leaves_the_argument(name: str) -> None:
    x = lt.zeros(1, 3)
    CASES[name](x).add_(1)
    assert not x.any()
