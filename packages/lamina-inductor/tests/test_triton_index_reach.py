"""Bounds, by sizes, of indices and of what is computed on the way to them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
from lamina_fx.symbolic import Expr, Max, Min, ShapeEnv, Symbol, as_expr
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.backends.triton.index_reach import most_of, reached
from lamina_prims import decompose, ops

SIZES = Symbol("s0", 1), Symbol("s1", 1)
AXES = Symbol("i0", 0, SIZES[0] * SIZES[1] - 1), Symbol("i1", 0, SIZES[1] - 1), Symbol("i2", 0, 6)


def random_index(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([*AXES, *SIZES, as_expr(rng.randint(-9, 9))])
    a, b = random_index(rng, depth - 1), random_index(rng, rng.randrange(depth))
    divisor: Any = rng.choice([*SIZES, 3, 8])
    return as_expr(
        rng.choice([a + b, a - b, a * rng.randint(-4, 40), a * rng.choice(SIZES), a // divisor, a % divisor,
                    Min(a, b), Max(a, b), a * b])
    )  # fmt: skip


def parts(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in expr.children():
        yield from parts(child)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_on_the_way_to_an_index_reaches_further(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_index(rng, 3)
    bounds = reached(expr)
    for _ in range(30):
        sizes: dict[Any, int] = {s: rng.choice([1, 2, 17, 64, 1000]) for s in SIZES}
        values = sizes | {a: rng.randint(0, as_expr(a.upper).evaluate(sizes)) for a in AXES}
        limit = max([400, *[bound.evaluate(sizes) for bound in bounds]])  # numbers alone reach no further
        assert all(abs(p.evaluate(values)) <= limit for p in parts(expr) if None in p.range())


def test_what_another_bound_covers_is_left_out() -> None:
    a, b = SIZES
    assert most_of([a, b, a * b * 4, a * 3 + 1, Max(a * b, a * 7), a * a]) == (a * b * 4, a * a, a * 7, b)


def test_of_a_program() -> None:
    env, graph = ShapeEnv(), Graph()
    rows = env.create_symbol(8, "rows", lower=2)
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((rows, 1000), float32)))
    graph.output((ops.add(ops.exp(x), 1.0).node, ops.sum(ops.mul(x, x), (1,)).node))
    program = TritonBackend().emit(decompose(graph, level="prims"))
    assert program.below == (1000 * rows.expr,)
    assert TritonBackend().emit(decompose(graph, level="prims"), index_bits=64).below == ()
