"""Sums of tensors that are added up by index: which of them become one, and that the values stay."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_fx import Graph, Interpreter, parse
from lamina_prims import operator
from lamina_prims.chained_scatters import chain_scatters

HEAD = """graph {
  %i: int64[3] = placeholder
  %a: float32[3] = placeholder
  %b: float32[3] = placeholder
  %z: float32[9] = full((9,), 0.0)
  %n: float32[9] = full((9,), -0.0)
"""
BODIES = {
    "two": ("%s: float32[9] = scatter_add(%z, 0, %i, %a) %t: float32[9] = scatter_add(%z, 0, %i, %b) "
            "%u: float32[9] = add(%s, %t) return %u", 0),
    "three, nested to the right": (
        "%s: float32[9] = scatter_add(%z, 0, %i, %a) %t: float32[9] = scatter_add(%z, 0, %i, %b) "
        "%u: float32[9] = add(%s, %t) %v: float32[9] = scatter_add(%z, 0, %i, %b) "
        "%w: float32[9] = add(%v, %u) return %w", 0),
    "rows": ("%s: float32[9] = index_put(%z, [%i], %a, True) %t: float32[9] = index_put(%z, [%i], %b, True) "
             "%u: float32[9] = add(%s, %t) return %u", 0),
    "stored, not added": (
        "%s: float32[9] = scatter_add(%z, 0, %i, %a) %t: float32[9] = index_put(%z, [%i], %b, False) "
        "%u: float32[9] = add(%s, %t) return %u", 1),
    "used elsewhere": (
        "%s: float32[9] = scatter_add(%z, 0, %i, %a) %t: float32[9] = scatter_add(%z, 0, %i, %b) "
        "%u: float32[9] = add(%s, %t) return (%u, %s, %t)", 1),
    "from negative zeros": (
        "%s: float32[9] = scatter_add(%n, 0, %i, %a) %t: float32[9] = scatter_add(%z, 0, %i, %b) "
        "%u: float32[9] = add(%s, %t) return %u", 1),
    "to a product": ("%s: float32[9] = mul(%z, 2.0) %t: float32[9] = scatter_add(%z, 0, %i, %b) "
                     "%u: float32[9] = add(%s, %t) return %u", 1),
    "twice itself": ("%s: float32[9] = scatter_add(%z, 0, %i, %a) %u: float32[9] = add(%s, %s) return %u", 1),
}  # fmt: skip


def count(graph: Graph, target: str) -> int:
    return sum(node.target == target for node in graph.nodes)


@pytest.mark.parametrize("name", BODIES)
def test_sums_by_index(name: str) -> None:
    body, sums = BODIES[name]
    graph = parse(f"{HEAD}  {body} }}")
    inputs = np.array([1, 4, 1]), np.array([1.5, -2.0, 0.25], np.float32), np.array([2.0, 2.0, -1.0], np.float32)
    want = Interpreter(graph, operator).run(*inputs)
    changed = chain_scatters(graph.copy())
    changed.lint(operator)
    assert count(changed, "add") == sums
    got = Interpreter(changed, operator).run(*inputs)
    for a, b in zip(
        got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
