"""Functions and modules traced to graphs."""

from __future__ import annotations

import copy
import linecache

import numpy as np
import pytest
from sample_modules import Block
from sample_operators import resolver

import lamina_fx as fx
from lamina_fx.python_operators import WRAPPED

SPEC = fx.TensorSpec((2, 3), fx.float32)


def scaled(x, y=2, *, flag=False):
    a = x * y
    if flag:
        a = -a
    return {"a": (a, [x])}


def test_tracing_a_function():
    m = fx.symbolic_trace(scaled, {"flag": True})
    assert [n.name for n in m.graph.nodes] == ["x", "y", "mul", "neg", "output"]
    file, number, function = m.graph.output_node.args[0]["a"][0].meta["source"]
    assert (file, function) == (__file__, "scaled")
    assert linecache.getline(file, number).strip() == "a = -a"
    assert m(3) == {"a": (-6, [3])}
    assert m(3, y=5) == {"a": (-15, [3])}
    assert fx.Interpreter(m.graph).run(3) == {"a": (-6, [3])}
    m.graph.lint()


def test_tracing_with_specs():
    graph = fx.Tracer(resolver).trace(lambda x: (x + x).shape[0] * x, specs={"x": SPEC})
    assert [str(n.spec) for n in graph.nodes] == ["float32[2, 3]"] * 3 + ["None"]
    graph.lint(resolver)


def test_tracing_errors():
    with pytest.raises(TypeError, match="has no parameter 'z'; it has x, y, flag"):
        fx.symbolic_trace(scaled, {"z": 1})
    with pytest.raises(TypeError, match=r"cannot trace \*xs of .*: give concrete_args"):
        fx.symbolic_trace(lambda *xs: xs)
    with pytest.raises(TypeError, match="the truth of 'gt' is not known while tracing"):
        fx.symbolic_trace(lambda x: 1 if x > 0 else 2)
    m = fx.symbolic_trace(lambda *xs, **kw: (len(xs), kw), {"xs": (1, 2), "kw": {"k": 3}})
    assert m() == (2, {"k": 3})


@fx.wrap
def branchy(x, bias):
    return x + bias if x > 0 else bias


fx.wrap("ord")


def test_wrapped_functions_are_one_step():
    m = fx.symbolic_trace(lambda x: branchy(x, 1) * 2 + ord("\x01"))
    assert [n.target.rpartition(".")[2] for n in m.graph.nodes][1] == "branchy"
    assert m(5) == 13
    assert m(-5) == 3
    assert branchy(2, 1) == 3
    assert fx.symbolic_trace(lambda c: ord(c) + 1)("a") == 98
    assert ord("b") == 98
    assert any(key.endswith("branchy") for key in WRAPPED)
    with pytest.raises(NameError, match="no function 'nope'"):
        fx.wrap("nope")


def test_tracing_a_module():
    block, x = Block(), np.ones(3)
    m = fx.symbolic_trace(block)
    assert [(n.op, n.target) for n in m.graph.nodes] == [
        ("placeholder", "x"), ("get_attr", "scale"), ("call_module", "first"), ("call_function", "add"),
        ("call_module", "second"), ("call_function", "mul"), ("output", "output"),
    ]  # fmt: skip
    assert m(x).tolist() == block(x).tolist()
    assert fx.Interpreter(m.graph, owner=block).run(x).tolist() == block(x).tolist()
    assert copy.deepcopy(m)(x).tolist() == block(x).tolist()
    m.graph.lint()


def test_tracing_through_modules():
    class All(fx.Tracer):
        def is_leaf_module(self, module, path):
            return False

    block, x = Block(), np.ones(3)
    graph = All().trace(block)
    assert [n.target for n in graph.nodes if n.op == "get_attr"] == ["first.weight", "second.weight", "scale"]
    assert fx.GraphModule(block, graph)(x).tolist() == block(x).tolist()
    assert block(x).tolist() == Block()(x).tolist()  # the class is as before
