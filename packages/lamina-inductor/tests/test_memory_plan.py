"""The plan of the workspace: nothing alive at the same time overlaps, and it is close to what is alive at most."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_fx.symbolic import Symbol, as_expr
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
    assert total <= 1.1 * max(alive)


def test_symbolic_sizes_come_last() -> None:
    n = Symbol("n", 1)
    offsets, total = plan_workspace([Lifetime("a", 4 * n, 0, 1), Lifetime("b", 100, 0, 1), Lifetime("c", 8 * n, 2, 3)])
    assert offsets["b"] == 0 and offsets["a"] == 128
    assert total.evaluate({n: 16}) == 128 + 64 + 128


@pytest.mark.parametrize("seed", range(10))
def test_symbolic_sizes_share_slots(seed: int) -> None:
    n, m = Symbol("n", 1), Symbol("m", 1)
    rng = np.random.default_rng(seed)
    kinds = [4 * n, 256 * n * m, 4 * n * m, 64 * m, 4 * n * m * m, 100 * n + 4]
    temporaries = [
        Lifetime(t.name, kinds[rng.integers(len(kinds))] if rng.random() < 0.8 else t.size, t.first, t.last)
        for t in lifetimes(seed, 60)
    ]
    offsets, total = plan_workspace(temporaries)
    for values in ({n: 1, m: 1}, {n: 7, m: 300}, {n: 300, m: 7}):
        at = {t.name: as_expr(offsets[t.name]).evaluate(values) for t in temporaries}
        size = {t.name: as_expr(t.size).evaluate(values) for t in temporaries}
        assert max(at[name] + size[name] for name in at) <= total.evaluate(values)
        for i, a in enumerate(temporaries):
            for b in temporaries[i + 1 :]:
                if a.first <= b.last and b.first <= a.last:
                    assert at[a.name] + size[a.name] <= at[b.name] or at[b.name] + size[b.name] <= at[a.name]


def test_a_chain_of_one_symbolic_size_takes_two_slots() -> None:
    n = Symbol("n", 1)
    _, total = plan_workspace([Lifetime(f"t{k}", (64 - k) * 64 * n, k, k + 1) for k in range(50)])
    assert total.evaluate({n: 1}) == 64 * 64 + 63 * 64


def test_work_of_many_temporaries() -> None:
    few, many = lifetimes(0, 400), lifetimes(0, 4000)
    assert count_calls(lambda: plan_workspace(many)) < 20 * count_calls(lambda: plan_workspace(few))
