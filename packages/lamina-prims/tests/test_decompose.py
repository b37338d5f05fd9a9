"""decompose: levels, the keep set, strict forms as text, provenance, effects, subgraphs, speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph, GraphBuilder, Interpreter, TensorSpec, bfloat16, float32, int32, int64
from lamina_prims import decompose, operator, ops
from lamina_testing.work import count_calls

F = TensorSpec((2, 3), float32)
I = TensorSpec((2, 3), int64)  # noqa: E741
ROW = TensorSpec((3,), float32)


def graph_of(run: Callable[..., Any], *specs: TensorSpec) -> Graph:
    builder = GraphBuilder(Graph(), resolver=operator)
    inputs = [builder.input("xyzw"[k], spec) for k, spec in enumerate(specs)]
    result = run(*inputs)
    builder.graph.output(tuple(r.node for r in result) if isinstance(result, tuple) else result.node)
    return builder.graph


def text(graph: Graph) -> list[str]:
    """Calls as ``target(args)``, nodes by name."""
    return [
        f"{n.target}({', '.join(str(a) for a in n.args)}{''.join(f', {k}={v}' for k, v in n.kwargs.items())})"
        for n in graph.nodes
        if n.op == "call_function"
    ]


STRICT: list[tuple[Callable[..., Any], tuple[TensorSpec, ...], list[str]]] = [
    (lambda x: ops.add(x, 1), (F,), ["add(x, 1.0)"]),
    (lambda x: ops.add(x, 1), (I,), ["add(x, 1)"]),
    (lambda x, y: ops.mul(x, y), (F, ROW), ["broadcast_in_dim(y, (2, 3), (1,))", "mul(x, broadcast_in_dim)"]),
    (
        lambda x, y: ops.add(x, y),
        (F, I),
        ["convert_element_type(y, float32)", "add(x, convert_element_type)"],
    ),
    (lambda x: ops.exp(x), (I,), ["convert_element_type(x, float32)", "exp(convert_element_type)"]),
    (
        lambda x, y: ops.where(ops.gt(x, 0), y, 0),
        (F, ROW),
        ["gt(x, 0.0)", "broadcast_in_dim(y, (2, 3), (1,))", "where(gt, broadcast_in_dim, 0.0)"],
    ),
    (lambda x: ops.sum(x), (F,), ["sum(x, (0, 1))"]),
    (lambda x: ops.sum(x, -1, True), (F,), ["sum(x, (1,))", "reshape(sum, (2, 1))"]),
    (
        lambda x: ops.sum(x, 0),
        (TensorSpec((2, 3), int32),),
        ["convert_element_type(x, int64)", "sum(convert_element_type, (0,))"],
    ),
    (lambda x: ops.any(x, 1), (F,), ["ne(x, 0.0)", "any(ne, (1,))"]),
    (lambda x: ops.argmax(x), (F,), ["reshape(x, (6,))", "argmax(reshape, 0)"]),
    (lambda x: ops.reshape(x, -1), (F,), ["reshape(x, (6,))"]),
    (lambda x: ops.transpose(x, 0, -1), (F,), ["permute(x, (1, 0))"]),
    (lambda x: ops.select(x, 0, -1), (F,), ["slice(x, 0, 1, 2, 1)", "reshape(slice, (3,))"]),
    (lambda x: ops.unsqueeze(x, -1), (F,), ["reshape(x, (2, 3, 1))"]),
    (lambda x: ops.expand(x, 4, -1, -1), (F,), ["broadcast_in_dim(x, (4, 2, 3), (1, 2))"]),
    (lambda x: ops.flip(x, -1), (F,), ["flip(x, (1,))"]),
    (
        lambda x, y: ops.matmul(x, y),
        (F, TensorSpec((3, 4), float32)),
        ["dot_general(x, y, ((1,), (0,)), ((), ()))"],
    ),
    (
        lambda x, y: ops.matmul(x, y),
        (TensorSpec((5, 2, 3), float32), TensorSpec((5, 3, 4), float32)),
        ["dot_general(x, y, ((2,), (1,)), ((0,), (0,)))"],
    ),
    (lambda x, y: ops.cat([x, y], -1), (F, F), ["cat([x, y], 1)"]),
    (lambda x: ops.clone(x), (F,), ["clone(x)"]),
    (lambda x: ops.contiguous(x), (F,), []),
    (lambda x: ops.detach(x), (F,), []),
    (lambda x: ops.zeros_like(x), (F,), ["full((2, 3), 0, dtype=float32, device=cpu)"]),
    (
        lambda x: ops.softmax(x, -1),
        (F,),
        [
            "amax(x, (1,))", "broadcast_in_dim(amax, (2, 3), (0,))", "sub(x, broadcast_in_dim)",
            "exp(sub)", "sum(exp, (1,))", "broadcast_in_dim(sum, (2, 3), (0,))", "div(exp, broadcast_in_dim_1)",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("run", "specs", "want"), STRICT)
def test_strict_forms(run: Callable[..., Any], specs: tuple[TensorSpec, ...], want: list[str]) -> None:
    lowered = decompose(graph_of(run, *specs), level="prims")
    assert text(lowered) == want
    assert text(decompose(lowered, level="prims")) == want, "a strict graph stays as it is"


def test_core_keeps_what_has_a_derivative_of_its_own() -> None:
    graph = graph_of(lambda x: ops.softmax(ops.square(ops.transpose(x, 0, 1)), -1), F)
    assert text(decompose(graph, level="core")) == ["permute(x, (1, 0))", "mul(permute, permute)", "softmax(mul, -1)"]


def test_keep() -> None:
    graph = graph_of(lambda x: ops.mul(ops.softmax(x, -1), ops.logical_not(x)), F)
    lowered = decompose(graph, level="prims", keep=frozenset({"softmax", "logical_not"}))
    assert [n.target for n in lowered.nodes][1:-1] == ["softmax", "logical_not", "convert_element_type", "mul"]


def test_several_results() -> None:
    graph = graph_of(lambda x: ops.add(operator("max.dim")(x, 1)[0], 1), F)
    lowered = decompose(graph, level="prims")
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    np.testing.assert_array_equal(Interpreter(lowered, operator).run(x), [6, 8])
    kept = decompose(graph, level="prims", keep=frozenset({"max.dim"}))
    assert text(kept) == ["max.dim(x, 1)", "getitem(max_dim, 0)", "add(getitem, 1.0)"]


def test_what_nothing_uses_goes_but_effects_stay() -> None:
    builder = GraphBuilder(Graph(), resolver=operator)
    x = builder.input("x", F)
    ops.softmax(x, -1)
    ops.copy_to(x, ops.neg(x))
    builder.graph.output(())
    assert text(decompose(builder.graph)) == ["neg(x)", "copy_to(x, neg)"]


def test_source_regions_and_provenance_are_carried() -> None:
    graph = graph_of(lambda x: ops.layer_norm(x, (3,)), F)
    node = next(n for n in graph.nodes if n.op == "call_function")
    node.meta["source"] = ("model.py", 7, "forward")
    node.regions = ("checkpoint:0",)
    made = [n for n in decompose(graph).nodes if n.op == "call_function"]
    assert len(made) > 5
    assert all(n.meta["source"] == ("model.py", 7, "forward") and n.regions == ("checkpoint:0",) for n in made)
    assert all(n.meta["from"][0] == "layer_norm" for n in made)
    assert any(len(n.meta["from"]) > 1 for n in made), "composites inside composites are named too"


def test_subgraphs_are_decomposed() -> None:
    inner = graph_of(lambda x: ops.square(x), F)
    graph = Graph()
    x = graph.placeholder("x", spec=F)
    graph.output(graph.call_function("add", (x, 1.0), {"body": inner}, spec=F))
    call = next(n for n in decompose(graph, level="core").nodes if n.op == "call_function")
    assert text(call.kwargs["body"]) == ["mul(x, x)"]
    assert text(inner) == ["square(x)"], "the given graph is not changed"


def test_half_precision_is_accumulated_in_float32() -> None:
    lowered = decompose(graph_of(lambda x: ops.softmax(x, -1), TensorSpec((2, 3), bfloat16)))
    dtypes = {n.target: n.spec.dtype for n in lowered.nodes if n.op == "call_function"}
    assert dtypes["sum"] is float32 and lowered.output_node.args[0].spec.dtype is bfloat16


def test_errors() -> None:
    with pytest.raises(ValueError, match="level must be 'core' or 'prims', not 'low'"):
        decompose(Graph(), level="low")
    graph = Graph()
    graph.call_function("no_such_operator")
    with pytest.raises(KeyError, match="no operator 'no_such_operator'"):
        decompose(graph)


def chain(length: int) -> Graph:
    def body(x: Any) -> Any:
        h = x
        for _ in range(length):
            h = ops.add(ops.mul(ops.softmax(ops.layer_norm(h, (16,)), -1), 2), x)
        return h

    return graph_of(body, TensorSpec((4, 8, 16), float32))


def test_work_is_proportional_to_nodes() -> None:
    short, long = chain(10), chain(100)
    made = len(decompose(long).nodes) - len(decompose(short).nodes)
    few, many = count_calls(lambda: decompose(short)), count_calls(lambda: decompose(long))
    assert many < 11 * few
    assert (many - few) / made < 140, f"{(many - few) / made:.0f} calls a node"
