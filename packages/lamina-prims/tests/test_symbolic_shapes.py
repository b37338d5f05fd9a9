"""Meta functions on symbolic sizes: the shapes that come out, and that no needless guard is added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, TensorSpec, float32, int64
from lamina_fx.symbolic import ShapeEnv
from lamina_prims import decompose, operator, ops, resolve, sizing


class Sizes:
    def __init__(self) -> None:
        self.env = ShapeEnv()
        self.n = self.env.create_symbol(8, "n")
        self.m = self.env.create_symbol(5, "m")
        self.x = TensorSpec((self.n, self.m, 16), float32)


CASES: list[tuple[str, Callable[[Sizes], Any], str]] = [
    ("add", lambda s: ops.add(s.x, TensorSpec((16,), float32)), "float32[s0, s1, 16]"),
    ("add to 1", lambda s: ops.add(s.x, TensorSpec((s.n, 1, 16), float32)), "float32[s0, s1, 16]"),
    ("join", lambda s: ops.reshape(s.x, (s.n * s.m, 16)), "float32[s0*s1, 16]"),
    ("join by -1", lambda s: ops.reshape(s.x, (-1, 16)), "float32[s0*s1, 16]"),
    (
        "heads",
        lambda s: ops.transpose(ops.view(s.x, (s.n, s.m, 4, 4)), 1, 2),
        "float32[s0, 4, s1, 4]@(16*s1, 4, 16, 1)",
    ),
    ("flatten", lambda s: ops.flatten(s.x, 1), "float32[s0, 16*s1]"),
    ("unsqueeze", lambda s: ops.unsqueeze(s.x, 1), "float32[s0, 1, s1, 16]"),
    ("matmul", lambda s: ops.matmul(s.x, TensorSpec((16, 8), float32)), "float32[s0, s1, 8]"),
    ("scores", lambda s: ops.matmul(s.x, ops.mT(s.x)), "float32[s0, s1, s1]"),
    ("mean", lambda s: ops.mean(s.x, (0, 1)), "float32[16]"),
    ("softmax", lambda s: ops.softmax(s.x, 1), "float32[s0, s1, 16]"),
    ("cat", lambda s: ops.cat([s.x, s.x]), "float32[2*s0, s1, 16]"),
    ("stack", lambda s: ops.stack([s.x, s.x], -1), "float32[s0, s1, 16, 2]"),
    ("expand", lambda s: ops.expand(TensorSpec((1, s.m), float32), (s.n, -1)), "float32[s0, s1]@(0, 1)"),
    ("chunk", lambda s: ops.chunk(s.x, 2, -1)[1], "float32[s0, s1, 8]@(16*s1, 16, 1)"),
    ("arange", lambda s: resolve("arange", (1, s.m), {}).infer((1, s.m), {}), "int64[s1 - 1]"),
    ("tril", lambda s: ops.tril(TensorSpec((s.m, s.m), float32)), "float32[s1, s1]"),
    (
        "take rows",
        lambda s: ops.index(TensorSpec((9, 4), float32), [TensorSpec((s.n, s.m), int64)]),
        "float32[s0, s1, 4]",
    ),
    ("var", lambda s: ops.var(s.x, -1), "float32[s0, s1]"),
    ("argmax", lambda s: ops.argmax(s.x, -1), "int64[s0, s1]"),
    ("where", lambda s: ops.where(ops.gt(s.x, 0), s.x, 0), "float32[s0, s1, 16]"),
]


@pytest.mark.parametrize(("run", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_symbolic_results_without_guards(run: Callable[[Sizes], Any], want: str) -> None:
    sizes = Sizes()
    assert str(run(sizes)) == want
    assert [str(g) for g in sizes.env.guards] == []


def test_a_question_that_has_to_be_asked_is_a_guard() -> None:
    s = Sizes()
    assert str(ops.slice(TensorSpec((64,), float32), 0, 0, s.m)) == "float32[s1]"
    assert [str(g) for g in s.env.guards] == ["s1 <= 64"]


def test_decompose_keeps_symbolic_sizes() -> None:
    s = Sizes()
    graph = Graph()
    x = graph.placeholder("x", spec=s.x)
    graph.output(graph.call_function("layer_norm", (x, (16,)), spec=operator("layer_norm").infer((s.x, (16,)), {})))
    lowered = decompose(graph, level="prims")
    assert str(lowered.output_node.args[0].spec) == "float32[s0, s1, 16]"
    assert not s.env.guards


def test_a_size_that_depends_on_values_is_unbacked() -> None:
    with sizing(ShapeEnv()):
        spec = ops.masked_select(TensorSpec((3, 4), float32), ops.gt(TensorSpec((4,), float32), 0))
        assert spec.dtype is float32 and len(spec.shape) == 1 and type(spec.shape[0]) is not int
    with pytest.raises(RuntimeError, match="nonzero: the size of the result depends on values"):
        ops.nonzero(TensorSpec((3,), float32))


DYNAMIC = [
    (lambda x: ops.nonzero(x), [[0, 1], [1, 0]]),
    (lambda x: ops.argwhere(x), [[0, 1], [1, 0]]),
    (lambda x: np.stack(operator("nonzero.tuple")(x, as_tuple=True)), [[0, 1], [1, 0]]),
    (lambda x: ops.masked_select(x, x > 0), [5]),
    (lambda x: ops.bincount(np.array([1, 1, 3])), [0, 2, 0, 1]),
    (lambda x: ops.bincount(np.array([1, 1]), np.array([0.5, 2.0]), 3), [0, 2.5, 0]),
    (lambda x: operator("repeat_interleave.tensor")(x, np.array([0, 2]), 0), [[-3, 0], [-3, 0]]),
    (lambda x: ops.empty_strided((2, 2), (1, 2)).strides, (4, 8)),
    (lambda x: ops.empty_like(x).shape, (2, 2)),
    (lambda x: ops.new_empty(x, (4,)).dtype.name, "float32"),
]


@pytest.mark.parametrize(("run", "want"), DYNAMIC)
def test_results_that_specs_do_not_determine(run: Callable[[Any], Any], want: Any) -> None:
    np.testing.assert_array_equal(run(np.array([[0, 5], [-3, 0]], np.float32)), want)


def test_copy_to_writes_into_memory() -> None:
    base = np.zeros((2, 3), np.int64)
    assert ops.copy_to(base[:, 1], np.array([1.7, -2.0])) is None
    np.testing.assert_array_equal(base, [[0, 1, 0], [0, -2, 0]])
    with pytest.raises(RuntimeError, match=r"copy_to: \[4\] does not broadcast to \[3\]|do not broadcast"):
        ops.copy_to(np.zeros(3), np.zeros(4))
