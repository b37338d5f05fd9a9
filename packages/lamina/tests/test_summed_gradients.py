"""Gradients of a tensor that is read by index several times are added up in one tensor."""

from __future__ import annotations

from typing import Any

import pytest

import lamina
from lamina.nn import functional as F

FIRST, SECOND, GRID = (
    lamina.tensor([1, 4, 1, 0]),
    lamina.tensor([4, 4, 2, 6]),
    lamina.linspace(-1.1, 1.2, 24).reshape(2, 3, 2, 2),
)

CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "embeddings": (lambda w: (F.embedding(FIRST, w) * F.embedding(SECOND, w)).sum(), (7, 5)),
    "rows": (lambda w: (w[FIRST] * w[SECOND] + w[FIRST, 0:1].exp()).sum(), (7, 5)),
    "gathers": (lambda w: (w.gather(0, FIRST[:, None]) * w.gather(0, SECOND[:, None])).sum(), (7, 1)),
    "images": (lambda x: F.grid_sample(x, GRID, align_corners=False).sin().sum(), (2, 3, 5, 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_one_tensor_for_all(case: str) -> None:
    function, shape = CASES[case]
    x = lamina.arange(float(lamina.Size(shape).numel())).reshape(shape).sin().requires_grad_()
    (want,) = lamina.autograd.grad(function(x), x)
    (got,) = lamina.autograd.grad(lamina.compile(function, fullgraph=True)(x), x)
    lamina.testing.assert_close(got, want)
    stages = lamina.compiler.records()[-1].stages
    (graph,) = [g for name, g in stages.items() if name.startswith("prims:") and name.endswith("backward")]
    by_index = [n for n in graph.nodes if n.target in ("scatter_add", "index_put")]
    sums = [n for n in graph.nodes if n.target == "add" and all(a in by_index for a in n.args)]
    assert len(by_index) > 1 and not sums
