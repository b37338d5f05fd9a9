"""Random operators: reproducible, in range, distributed as they say, and counted right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import float32, float64
from lamina_prims import operator

STATE = np.array([2024, 11], np.int64)
COUNT = 40_000


def test_uniform_lies_in_the_unit_interval() -> None:
    for dtype in (float32, float64):
        x = operator("random_uniform")(STATE, (COUNT,), dtype)
        assert x.min() >= 0.0 and x.max() < 1.0
        assert abs(x.mean() - 0.5) < 0.01 and abs(x.var() - 1 / 12) < 0.005


def test_float64_uniforms_use_53_bits() -> None:
    x = operator("random_uniform")(STATE, (1000,), float64)
    assert (x * 2.0**53 % 1 == 0).all() and (x * 2.0**32 % 1 != 0).mean() > 0.99


def test_normal_has_the_moments_of_a_normal() -> None:
    x = operator("random_normal")(STATE, (COUNT,)).astype(np.float64)
    assert abs(x.mean()) < 0.02 and abs(x.var() - 1) < 0.03 and abs((x**4).mean() - 3) < 0.2


@pytest.mark.parametrize(("low", "high"), [(0, 7), (-3, 4), (0, 2**40)])
def test_integers_cover_their_range_evenly(low: int, high: int) -> None:
    x = operator("random_randint")(STATE, low, high, (COUNT,))
    assert x.min() >= low and x.max() < high
    counts = np.histogram(x, 7, (low, high))[0]
    assert abs(counts - COUNT / 7).max() < 5 * np.sqrt(COUNT / 7)


def test_dropout_keeps_the_mean_and_repeats_for_one_state() -> None:
    dropout = operator("dropout_with_state")
    x = np.ones((200, 200), np.float32)
    y = dropout(x, 0.25, STATE)
    assert set(np.unique(y).tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert abs((y == 0).mean() - 0.25) < 0.01
    np.testing.assert_array_equal(y, dropout(x, 0.25, STATE.copy()))
    later = STATE + np.array([0, dropout.counters(x, 0.25)])
    assert (y != dropout(x, 0.25, later)).mean() > 0.3


@pytest.mark.parametrize("shape", [(7,), (3, 5), ()])
def test_counters_are_what_the_next_draw_needs(shape: Any) -> None:
    """Two draws in a row, the second from the advanced state, do not share a block of words."""
    for id in ("random_uniform", "random_normal"):
        op = operator(id)
        used = op.counters(shape)
        words = int(np.prod((*shape, 2 if id == "random_normal" else 1)))
        assert used == -(-words // 4)


def test_permutation_is_one() -> None:
    order = operator("random_permutation")(STATE, 1000)
    assert sorted(order.tolist()) == list(range(1000)) and order.tolist() != list(range(1000))


def test_multinomial_follows_the_weights() -> None:
    weights = np.array([1.0, 2.0, 5.0], np.float32)
    drawn = operator("multinomial_with_state")(weights, COUNT, True, STATE)
    np.testing.assert_allclose(np.bincount(drawn) / COUNT, weights / 8, atol=0.01)
    rows = np.tile(weights, (COUNT // 4, 1))
    first = operator("multinomial_with_state")(rows, 2, False, STATE)
    assert (first[:, 0] != first[:, 1]).all()
    np.testing.assert_allclose(np.bincount(first[:, 0]) / len(rows), weights / 8, atol=0.02)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = operator("random_normal")(STATE, (COUNT,))
    y = operator("alpha_dropout_with_state")(x, 0.3, STATE + 1)
    assert abs(y.mean()) < 0.03 and abs(y.var() - 1) < 0.05
