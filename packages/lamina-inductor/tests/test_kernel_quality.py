"""What kernels must not do: store what is cheap to make again, sum a one-hot row, divide per element, sum twice."""

from __future__ import annotations

import numpy as np

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32, int64
from lamina_inductor import CppBackend
from lamina_inductor.backends.cpp.prepare import prepare_kernel
from lamina_inductor.ir.kernel import Let, Loop, walk
from lamina_prims import ops


def _statements(program, kind, op=None):
    found = [s for k in program.kernels for s in walk(prepare_kernel(k).body) if type(s) is kind]
    return found if op is None else [s for s in found if s.op == op]


def _cross_entropy_gradient(rows=8, columns=4096):
    graph = Graph()
    build = GraphBuilder(graph)
    x = build.proxy(graph.placeholder("x", spec=TensorSpec((rows, columns), float32)))
    target = build.proxy(graph.placeholder("y", spec=TensorSpec((rows,), int64)))

    def spread(row):
        return ops.broadcast_in_dim(row, (rows, columns), (0,))

    shifted = ops.sub(x, spread(ops.amax(x, (1,))))
    logp = ops.sub(shifted, spread(ops.log(ops.sum(ops.exp(shifted), (1,)))))
    steps = graph.call_function("iota", (columns,), {"dtype": int64}, spec=TensorSpec((columns,), int64))
    place = ops.broadcast_in_dim(build.proxy(steps), (rows, columns), (1,))
    count = ops.sum(ops.convert_element_type(ops.ne(target, -100), float32), (0,))
    weight = ops.broadcast_in_dim(ops.neg(ops.reciprocal(count)), (rows, columns), ())
    picked = ops.where(ops.eq(spread(target), place), weight, 0.0)
    gradient = ops.sub(picked, ops.mul(ops.exp(logp), spread(ops.sum(picked, (1,)))))
    graph.output((gradient.node,))
    return graph


def test_gradient_of_cross_entropy_keeps_row_values_only():
    program = CppBackend().program(_cross_entropy_gradient())
    assert len(program.kernels) == 2
    assert program.workspace < 8 * 4096 * 4, "logarithms of probabilities are computed again, not stored"
    sums = [a for loop in _statements(program, Loop) for a in loop.accumulators if loop.extent == 4096]
    assert [a.kind for a in sums] == ["max", "sum"], "the sum of a one-hot row is one element"


def test_gradient_of_cross_entropy_is_right_with_targets_outside():
    graph = _cross_entropy_gradient()
    x = np.random.default_rng(0).standard_normal((8, 4096)).astype(np.float32)
    y = np.array([0, 4095, 17, -100, 4096, -1, 1 << 40, 5])
    (made,) = CppBackend().compile(graph)(x, y)
    e = np.exp(x - x.max(1, keepdims=True))
    hot = (y[:, None] == np.arange(4096)) * (-1 / 7)
    wanted = hot - e / e.sum(1, keepdims=True) * hot.sum(1, keepdims=True)
    np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-4, atol=1e-6)


def test_columns_are_summed_once_and_divided_once():
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((512, 512), float32)))

    def spread(column):
        return ops.broadcast_in_dim(column, (512, 512), (1,))

    mean = ops.div(ops.sum(x, (0,), False), 512.0)
    again = ops.reshape(ops.div(ops.reshape(ops.sum(x, (0,)), (1, 512)), 512.0), (512,))
    centred = ops.sub(x, spread(again))
    deviation = ops.sqrt(ops.div(ops.sum(ops.mul(centred, centred), (0,)), 511.0))
    graph.output((ops.div(ops.sub(x, spread(mean)), spread(deviation)).node,))
    program = CppBackend().program(graph)
    assert len(program.kernels) == 1
    sweeps = [s for s in _statements(program, Loop) if s.kind == "serial"]
    assert len(sweeps) == 3, "sum, sum of squares, result"
    assert not [s for sweep in sweeps for s in walk(sweep.body) if type(s) is Let and s.op == "div"]
    data = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    (made,) = CppBackend().compile(graph)(data)
    np.testing.assert_allclose(np.asarray(made), (data - data.mean(0)) / data.std(0, ddof=1), rtol=1e-4, atol=1e-5)


def _one(shape, function, dtype=float32):
    graph = Graph()
    x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec(shape, dtype)))
    graph.output(tuple(r.node for r in function(x)))
    return CppBackend().compile(graph)


def _scaled_rows(x):
    rows, columns = x.node.spec.shape
    return (ops.div(x, ops.broadcast_in_dim(ops.amax(x, (1,)), (rows, columns), (0,))),)


def test_large_results_are_streamed_and_right():
    rng = np.random.default_rng(0)
    flat = rng.random((1 << 21) + 77, np.float32)
    artifact = _one(flat.shape, lambda x: (ops.add(ops.mul(x, 2.0), 1.0),))
    assert "lm_stream(" in artifact.source
    np.testing.assert_allclose(np.asarray(artifact(flat)[0]), flat * 2 + 1, rtol=1e-6)
    for shape in ((1100, 2053), (32, 66000), (30000, 77)):
        rows = rng.random(shape, np.float32) + 0.5
        artifact = _one(shape, _scaled_rows)
        assert "lm_stream(" in artifact.source
        np.testing.assert_allclose(np.asarray(artifact(rows)[0]), rows / rows.max(1, keepdims=True), rtol=1e-5)


def test_small_results_and_those_read_again_are_not_streamed():
    assert "lm_stream(" not in _one((1 << 20,), lambda x: (ops.add(x, 1.0),)).source
    shape = (2048, 2048)

    def product(x):
        y = ops.add(x, 1.0)
        return y, ops.dot_general(y, y, contract=((1,), (0,)), batch=((), ()))

    source = _one(shape, product).source
    assert "lm_stream(" not in source
