"""Proxies and builders: Python's operators and methods write nodes."""

from __future__ import annotations

import numpy as np
import pytest
from sample_operators import TABLE, Methods, resolver

import lamina_fx as fx
from lamina_fx.symbolic import ShapeEnv

SPEC = fx.TensorSpec((2, 3), fx.float32)


def builder(res=None, spec=SPEC):
    b = fx.GraphBuilder(fx.Graph(), resolver=res)
    return b, b.input("x", spec)


def line(node):
    return fx.print_graph(node.graph).splitlines()[[n.name for n in node.graph.nodes].index(node.name) + 1].strip()


BARE = [
    (lambda x: x + 1, "%add = add(%x, 1)"),
    (lambda x: 1 + x, "%add = add(1, %x)"),
    (lambda x: x - 1, "%sub = sub(%x, 1)"),
    (lambda x: 1 - x, "%sub = sub(1, %x)"),
    (lambda x: x * x, "%mul = mul(%x, %x)"),
    (lambda x: x / 2, "%div = div(%x, 2)"),
    (lambda x: 2 / x, "%div = div(2, %x)"),
    (lambda x: x // 2, "%floor_divide = floor_divide(%x, 2)"),
    (lambda x: x % 2, "%remainder = remainder(%x, 2)"),
    (lambda x: x**2, "%pow = pow(%x, 2)"),
    (lambda x: 2**x, "%pow = pow(2, %x)"),
    (lambda x: x @ x, "%matmul = matmul(%x, %x)"),
    (lambda x: x & 1, "%bitwise_and = bitwise_and(%x, 1)"),
    (lambda x: x | 1, "%bitwise_or = bitwise_or(%x, 1)"),
    (lambda x: x ^ 1, "%bitwise_xor = bitwise_xor(%x, 1)"),
    (lambda x: x << 1, "%bitwise_left_shift = bitwise_left_shift(%x, 1)"),
    (lambda x: 1 >> x, "%bitwise_right_shift = bitwise_right_shift(1, %x)"),
    (lambda x: x == 1, "%eq = eq(%x, 1)"),
    (lambda x: x != 1, "%ne = ne(%x, 1)"),
    (lambda x: x < 1, "%lt = lt(%x, 1)"),
    (lambda x: x >= 1, "%ge = ge(%x, 1)"),
    (lambda x: -x, "%neg = neg(%x)"),
    (lambda x: +x, "%positive = positive(%x)"),
    (lambda x: ~x, "%bitwise_not = bitwise_not(%x)"),
    (abs, "%abs = abs(%x)"),
    (lambda x: x[0, 1:], "%getitem = getitem(%x, (0, slice(1, None, None)))"),
    (lambda x: x.sum(1, keepdim=True), "%sum = method sum(%x, 1, keepdim=True)"),
    (lambda x: x.T.value, '%getattr = getattr(%x, "T")'),
    (lambda x: np.float32(2) * x, "%mul = mul(2.0, %x)"),
]


@pytest.mark.parametrize(("fn", "text"), BARE, ids=[t for _, t in BARE])
def test_operators_without_a_resolver(fn, text):
    _, x = builder(spec=None)
    result = fn(x)
    written = line(result.node)
    assert written == text or "get constant" in fx.print_graph(result.node.graph)
    assert result.node.spec is None


def test_operators_with_a_resolver():
    _, x = builder(resolver)
    y = (x + 1) * -x
    assert y.spec == SPEC
    assert (y.shape, y.dtype, y.ndim, str(y.device)) == ((2, 3), fx.float32, 2, "cpu")
    assert [n.target for n in y.node.graph.nodes] == ["x", "add", "neg", "mul"]
    with pytest.raises(RuntimeError, match=r"shapes \(2, 3\) and \(4,\) differ"):
        x + np.zeros(4, np.float32)
    with pytest.raises(KeyError, match="no operator 'bitwise_and'"):
        x & x
    with pytest.raises(AttributeError, match="no operator is a method 'sum'"):
        x.sum(1)


def test_methods_of_a_resolver():
    _, x = builder(Methods())
    assert (x + 1).node.target == "add"
    assert (3 - x).node.args == (x.node, 3)  # the resolver's __rsub__
    assert (x * 2).node.args == (x.node, 2)  # by id
    assert x.sum(1).shape == (2,)
    assert x.size().shape == ()  # overloads
    assert [row.shape for row in x] == [(3,), (3,)]
    assert len(x) == 2
    with pytest.raises(AttributeError, match="no operator is a method 'mean'"):
        x.mean()
    assert not hasattr(x, "__array__")


def test_unknown_specs_are_explained():
    _, x = builder(resolver, spec=None)
    with pytest.raises(AttributeError, match="the shape of 'x' is not known"):
        _ = x.shape
    for ask in (bool, len, iter, list):
        with pytest.raises(TypeError, match=r"'x'.*while tracing"):
            ask(x)


def test_several_results():
    b, x = builder(resolver)
    values, order = b.call(TABLE["sort"], (x,), {})
    assert order.dtype is fx.int64
    assert line(order.node) == "%getitem_1: int64[2, 3] = getitem(%sort, 1)"
    assert values.node.args == (values.node.args[0], 0)


def test_arrays_become_constants():
    b, x = builder(resolver)
    w = np.ones((2, 3), np.float32)
    y = w + x
    z = (x - w) * [w, w][0]
    assert [n.op for n in z.node.graph.nodes] == ["placeholder", "get_attr", *["call_function"] * 3]
    assert y.node.args == (z.node.args[1], x.node)
    assert b.graph.attributes["constant0"] is w
    b.graph.output(z.node)
    b.graph.lint(resolver)


def test_symbolic_sizes_through_operators():
    env = ShapeEnv()
    n = env.create_symbol(8, "x")
    _, x = builder(resolver, fx.TensorSpec((n, 4), fx.float32))
    assert repr((x + x).spec) == "float32[s0, 4]"
    assert env.guards == []


def test_an_operator_called_on_a_bare_node_says_what_to_pass() -> None:
    b, x = builder()
    bare = x + 1
    with pytest.raises(TypeError, match=r"value of node 'add' .* give it one, such as GraphBuilder\(graph, resolver="):
        b.call(TABLE["sum"], (bare,), {})
    b, x = builder(resolver)
    assert b.call(TABLE["sum"], (x + 1,), {}).node.target == "sum"


def test_sizes_of_a_bare_node_are_attributes_of_it() -> None:
    _, x = builder()
    assert (x + 1).shape.node.target == "getattr"
