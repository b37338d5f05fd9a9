"""Philox 4x32-10 against the known-answer vectors that its authors publish (Random123, kat_vectors)."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_prims import operator
from lamina_prims.operators.random_bits import counters, philox_block

VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_known_answers(counter: str, key: str, expected: str) -> None:
    words = [np.array([int(w, 16)], np.uint64) for w in counter.split()]
    out = philox_block(np, tuple(words), tuple(int(w, 16) for w in key.split()))
    assert " ".join(f"{int(w[0]):08x}" for w in out) == expected


def test_words_follow_counters() -> None:
    philox = operator("philox")
    whole = philox(np.array([5, 10], np.int64), (20,))
    later = philox(np.array([5, 12], np.int64), (12,))
    np.testing.assert_array_equal(whole[8:], later)
    assert counters((20,)) == 5 and counters((3, 3)) == 3 and counters((0,)) == 0


def test_offset_carries_into_the_third_word() -> None:
    out = operator("philox")(np.array([0, -1], np.int64), (8,))
    zero, one = np.zeros(1, np.uint64), np.ones(1, np.uint64)
    expected = philox_block(np, (zero, zero, one, zero), (0, 0))
    np.testing.assert_array_equal(out[4:], [int(w[0]) for w in expected])
