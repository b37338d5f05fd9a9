"""Random graphs run, and mean the same after decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_fx import Interpreter
from lamina_prims import decompose, operator
from lamina_testing import assert_same
from lamina_testing.random_graphs import random_graph


@pytest.mark.parametrize("seed", range(60))
def test_decomposed_equals_plain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, inputs = random_graph(rng, int(rng.integers(3, 13)))
    expected = Interpreter(graph, operator).run(*inputs)
    lowered = decompose(graph, level="prims")
    assert_same(Interpreter(lowered, operator).run(*inputs), expected, f"seed {seed}", 4.0)
    assert all(np.isfinite(np.asarray(r, np.float64)).all() for r in expected)


def test_equal_seeds_make_equal_graphs() -> None:
    first, _ = random_graph(np.random.default_rng(3), 8)
    second, _ = random_graph(np.random.default_rng(3), 8)
    assert [(n.op, n.target) for n in first.nodes] == [(n.op, n.target) for n in second.nodes]
