"""Random graphs: the program, run by the IR's interpreter, equals the references. ``LAMINA_RANDOM_GRAPHS`` sets how
many."""

from __future__ import annotations

import os

import numpy as np
import pytest
from random_graphs import draw
from tracing import assert_same, compiled

COUNT = int(os.environ.get("LAMINA_RANDOM_GRAPHS", "200"))
START = int(os.environ.get("LAMINA_RANDOM_START", "0"))
BATCH = 20


@pytest.mark.parametrize("first", range(START, START + COUNT, BATCH))
def test_program_equals_references(first: int) -> None:
    for seed in range(first, first + BATCH):
        rng = np.random.default_rng(seed)
        fn, arrays, steps = draw(rng, int(rng.integers(3, 13)))
        want = fn(*arrays)
        try:
            _, got = compiled(fn, *arrays)
            for have, wanted in zip(got, want, strict=True):
                assert_same(have, np.asarray(wanted), 1e-3)
        except BaseException as problem:
            problem.add_note(f"seed {seed}: {[a.shape for a in arrays]} {steps}")
            raise
