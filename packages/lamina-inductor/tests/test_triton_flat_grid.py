"""Templates over more matrices than a grid's second dimension takes, or an unknown number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float32
from lamina_fx.symbolic import ShapeEnv, Symbol
from lamina_inductor.backends.triton import TritonBackend, TritonKernel, TritonLaunch
from lamina_inductor.backends.triton.templates import flat_grid
from lamina_inductor.backends.triton.templates.flat_grid import with_flat_grid
from lamina_inductor.backends.triton.tiles import Tile
from lamina_prims import decompose, ops


def launches(heads: int | None, masked: bool = False) -> tuple[TritonLaunch, ...]:
    env, graph = ShapeEnv(), Graph()
    builder = GraphBuilder(graph)
    lead: Any = env.create_symbol(64, "heads", lower=2) if heads is None else heads
    q, k, v = (
        builder.proxy(graph.placeholder(name, spec=TensorSpec((lead, 4, 64, 32), bfloat16))) for name in ("q", "k", "v")
    )
    mask = builder.proxy(graph.placeholder("mask", spec=TensorSpec((lead, 1, 64, 64), float32))) if masked else None
    graph.output(tuple(r.node for r in ops.attention_with_lse(q, k, v, mask, False, 0.25, 0.0, None)))
    return TritonBackend().emit(decompose(graph, level="prims", keep=TritonBackend.keep)).launches


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("heads", [64, 20_000, None])
def test_no_dimension_but_the_first_is_long(heads: int | None, masked: bool) -> None:
    for launch in launches(heads, masked):
        for programs in launch.grid[1:]:
            assert type(programs) is int and programs <= flat_grid.MOST
        names = [name for name, _ in launch.kernel.parameters]
        assert len(names) == len(launch.buffers) + len(launch.sizes)
        assert all(f"{name}, " in launch.kernel.source.partition(":\n")[0] for name in names)


@pytest.mark.parametrize("grid", [(3, 70_000), (2, 3, 70_000), (5, 70_000, 70_000), (Symbol("a", 1), Symbol("b", 1))])
def test_programs_are_numbered_in_the_order_in_which_they_run(grid: tuple[Any, ...]) -> None:
    last = len(grid) - 1
    text = ", ".join(f"tl.program_id({d})" for d in range(len(grid)))
    source = f"def k(x, XBLOCK: tl.constexpr):\n    ({text}, tl.num_programs({last - 1}))\n"
    kernel = TritonKernel("k", source, (("x", "*fp32"),), Tile(1), frozenset(), ())
    flat = with_flat_grid(TritonLaunch(kernel, ("x",), (), grid))
    sides = {"a": 4, "b": 9}
    known = [sides.get(getattr(n, "name", ""), n) for n in grid]
    expression = flat.kernel.source.partition(":\n")[2].strip()
    given = dict(zip([n for n, kind in flat.kernel.parameters if kind == "i32"], known, strict=False))
    assert len(flat.grid) == 1 and "XBLOCK: tl.constexpr):" in flat.kernel.source
    for number in (0, 1, 17, int(np.prod(known[:-1], dtype=object)) * 2 + 1):
        found = eval(expression.replace("tl.program_id(0)", str(number)), given)
        wanted = np.unravel_index(number, known[::-1])[::-1]
        assert found == (*map(int, wanted), known[last - 1])
