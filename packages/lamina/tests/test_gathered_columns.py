"""Rows picked by number whose columns are reduced in tiles: each part of the kernel knows the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina

CASES: dict[str, Callable[..., Any]] = {
    "sum": lambda x, i: x.index_select(0, i).sum(1),
    "windows": lambda x, i: x.index_select(0, i).unfold(1, 2, 1).sum(2),
    "read again behind the sum": lambda x, i: x[i].sum(1) * x[i, 0] + x[i].amax(1),
    "softmax": lambda x, i: x[i].softmax(1),
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_rows_of_a_transposed_matrix(function: Callable[..., Any]) -> None:
    x, i = lamina.arange(40.0).sin().reshape(4, 10).t(), lamina.tensor([3, 0, 9, 7])
    lamina.testing.assert_close(lamina.compile(function, backend="cpp", fullgraph=True)(x, i), function(x, i))
