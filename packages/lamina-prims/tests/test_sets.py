"""unique and its kin: values, inverse, counts, slices; and a size that only running tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import TensorSpec, int64
from lamina_fx.symbolic import ShapeEnv, SymInt
from lamina_prims import operator

X = np.array([[3, 1, 3], [2, 1, 1]])


def test_unique_values_inverse_and_counts() -> None:
    values, inverse, counts = operator("unique")(X, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3] and counts.tolist() == [3, 1, 2]
    np.testing.assert_array_equal(values[inverse], X)


def test_unique_slices() -> None:
    rows = np.array([[1, 2], [0, 5], [1, 2]])
    values, inverse = operator("unique")(rows, return_inverse=True, dim=0)
    assert values.tolist() == [[0, 5], [1, 2]] and inverse.tolist() == [1, 0, 1]


def test_each_nan_is_a_value_of_its_own() -> None:
    assert len(operator("unique")(np.array([np.nan, 1.0, np.nan]))) == 3


@pytest.mark.parametrize(
    ("x", "values", "counts"), [([1, 1, 2, 2, 1], [1, 2, 1], [2, 2, 1]), ([], [], []), ([4], [4], [1])]
)
def test_unique_consecutive(x: Any, values: Any, counts: Any) -> None:
    got = operator("unique_consecutive")(np.array(x, np.int64), return_counts=True)
    assert got[0].tolist() == values and got[1].tolist() == counts


def test_the_size_is_a_new_symbol_while_tracing() -> None:
    with pytest.raises(RuntimeError, match="depends on values"):
        operator("unique").infer((TensorSpec((4, 5), int64),), {})
    rows = ShapeEnv().create_symbol(4, "rows")
    values, inverse = operator("unique").infer((TensorSpec((rows, 5), int64),), {"return_inverse": True})
    assert isinstance(values.shape[0], SymInt) and inverse.shape == (rows, 5)


def test_histogram() -> None:
    x = np.array([0.0, 0.1, 0.5, 1.0, 1.5, -0.2])
    np.testing.assert_array_equal(operator("histc")(x, 4, 0, 1), np.histogram(x, 4, (0, 1))[0])
