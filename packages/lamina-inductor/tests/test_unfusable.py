"""A group that cannot be one kernel is cut apart, and the rest of the program stays as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tracing import assert_same, trace

from lamina_inductor.ir.interpret_program import run_program
from lamina_inductor.ir.kernel import Let
from lamina_inductor.schedule.emitter import Unfusable
from lamina_inductor.schedule.nests import build_nest
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import CPU_LOOPS
from lamina_prims import decompose, ops


def refuse(*together: str) -> Any:
    """Loops that cannot have these operators in one kernel."""

    def nest(statements: list[Any], *rest: Any) -> Any:
        if {s.op for s in statements if type(s) is Let}.issuperset(together):
            raise Unfusable(f"{together} in one kernel")
        return build_nest(statements, *rest)

    return nest


def two_chains(x: Any, y: Any) -> Any:
    return ops.tanh(ops.exp(ops.sin(x))), ops.mul(ops.tanh(ops.neg(y)), 2.0), ops.sum(ops.cos(y), 1)


def test_only_the_group_that_was_refused_is_cut_apart() -> None:
    x, y = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((5, 7), (9, 11)))
    graph, arrays = trace(two_chains, x, y)
    whole = build_program(graph)
    cut = build_program(graph, loops=replace(CPU_LOOPS, nest=refuse("sin", "exp")))
    origins = [{op for _, op, _ in k.origins} for k in cut.kernels]
    assert len(whole.kernels) == 2 and len(cut.kernels) == 4
    assert {"sin"} in origins and {"exp"} in origins and any({"neg", "tanh", "mul", "cos", "sum"} <= o for o in origins)
    for got, want in zip(run_program(cut, arrays), two_chains(x, y), strict=True):
        assert_same(got, np.asarray(want), 1e-5)


def test_what_no_cut_helps_is_an_error() -> None:
    graph, _ = trace(lambda x: ops.exp(x), np.ones(3, np.float32))
    with pytest.raises(Unfusable, match="exp"):
        build_program(decompose(graph, level="prims"), loops=replace(CPU_LOOPS, nest=refuse("exp")))
