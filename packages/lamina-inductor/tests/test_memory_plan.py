"""The plan of the workspace: nothing alive at the same time overlaps, and it is close to what is alive at most."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_fx.symbolic import Symbol
from lamina_inductor.memory.plan import ALIGNMENT, Lifetime, plan_workspace
from lamina_testing.work import count_calls


def lifetimes(seed: int, count: int) -> list[Lifetime]:
    rng = np.random.default_rng(seed)
    result = []
    for k in range(count):
        length = int(rng.choice([0, 1, 2, 3, count - k]))
        result.append(Lifetime(f"t{k}", int(rng.integers(1, 100_000)), k, min(count, k + length)))
    return result


@pytest.mark.parametrize("seed", range(20))
def test_nothing_alive_overlaps(seed: int) -> None:
    temporaries = lifetimes(seed, 40)
    offsets, total = plan_workspace(temporaries)
    for i, a in enumerate(temporaries):
        assert offsets[a.name] % ALIGNMENT == 0
        assert offsets[a.name] + a.size <= total
        for b in temporaries[i + 1 :]:
            if a.first <= b.last and b.first <= a.last:
                first, second = sorted((a, b), key=lambda t: offsets[t.name])
                assert offsets[first.name] + first.size <= offsets[second.name]


@pytest.mark.parametrize("seed", range(5))
def test_close_to_the_least_possible(seed: int) -> None:
    temporaries = lifetimes(seed, 200)
    _, total = plan_workspace(temporaries)
    alive = [sum(t.size for t in temporaries if t.first <= step <= t.last) for step in range(201)]
    assert total <= 1.2 * max(alive)


def test_symbolic_sizes_come_last() -> None:
    n = Symbol("n", 1)
    offsets, total = plan_workspace([Lifetime("a", 4 * n, 0, 1), Lifetime("b", 100, 0, 1), Lifetime("c", 8 * n, 2, 3)])
    assert offsets["b"] == 0 and offsets["a"] == 128
    assert total.evaluate({n: 16}) == 128 + 64 + 128


def test_work_of_many_temporaries() -> None:
    few, many = lifetimes(0, 400), lifetimes(0, 4000)
    assert count_calls(lambda: plan_workspace(many)) < 20 * count_calls(lambda: plan_workspace(few))
