"""Graphs run node by node, and copied node by node with changes."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from graph_samples import everything
from sample_modules import Block
from sample_operators import resolver

import lamina_fx as fx
from lamina_fx.interpreter import read_attribute
from lamina_fx.python_operators import python_operator
from lamina_fx.symbolic import ShapeEnv


def test_hooks_and_initial_values():
    g = fx.parse("graph { %x = placeholder  %a = neg(%x)  %b = add(%a, %a)  return %b }")
    seen = []
    run = fx.Interpreter(
        g,
        before=lambda node, given: seen.append((node.name, given[0])),
        after=lambda node, value: seen.append((node.name, value)),
    )
    assert run.run(3) == -6
    assert seen[2:6] == [("a", (3,)), ("a", -3), ("b", (-3, -3)), ("b", -6)]
    a = next(n for n in g.nodes if n.name == "a")
    assert fx.Interpreter(g).run(3, initial={a: 100}) == 200


def test_errors_name_node_and_line():
    g = fx.parse('graph { %x = placeholder  %a = add(%x, "b", k=1) at "model.py":12 forward  return %a }')
    with pytest.raises(TypeError) as caught:
        fx.Interpreter(g).run(3)
    assert caught.value.__notes__ == ["while running %a = add(%x, 'b', k=1), from model.py:12 in forward"]
    with pytest.raises(TypeError, match=r"the graph takes 1 inputs \(x\), got 0"):
        fx.Interpreter(g).run()
    with pytest.raises(TypeError, match=r"got 2"):
        fx.Interpreter(g).run(1, 2)


def test_attributes():
    g = fx.Graph()
    with pytest.raises(AttributeError, match=r"the graph has no attribute 'w' \(it has: none\)"):
        read_attribute(g, None, "w")
    block = Block()
    assert read_attribute(g, block, "first.weight") is block.first.weight
    assert read_attribute(g, {"a": 0}, "keys") is not None
    with pytest.raises(AttributeError, match=r"Block has no attribute 'first\.bias'"):
        read_attribute(g, block, "first.bias")


def test_values_are_dropped_after_their_last_use():
    g = fx.parse("graph { %x = placeholder  %a = neg(%x)  %b = neg(%a)  %u = neg(%b)  return %b }")
    sizes = []
    run = fx.Interpreter(g, after=lambda node, value: sizes.append(len(run.env)))
    run.run(1)
    assert sizes == [0, 1, 1, 1, 1]
    assert run.env == {}


SIZED = """graph {
  symbol s0 in [0,] hint 8
  symbol s1 in [0,] hint 4
  %x: float32[s0, 3] = placeholder
  %max: int(sym(s1)) = placeholder
  %r = reshape(%x, (3, sym(s0)))
  %f = full([sym(s0*2), sym(max(s1, s0))], 1)
  return (%r, %f, {"n": sym(s0 + 1)}, slice(None, sym(s1), None))
}"""


def test_symbolic_sizes_are_those_of_the_inputs():
    env = ShapeEnv()
    g = fx.parse(SIZED, shape_env=env)
    module = fx.GraphModule(None, g, resolver)
    assert module.code.splitlines()[3:5] == ["    s0 = x.shape[0]", "    s1 = max_"]
    assert "ops.full([2*s0, max(s0, s1)], 1)" in module.code
    for run in (fx.Interpreter(g, resolver).run, module):
        for rows in (8, 5):
            r, f, n, s = run(np.zeros((rows, 3), np.float32), 7)
            assert r.shape == (3, rows)
            assert f.shape == (2 * rows, max(rows, 7))
            assert n == {"n": rows + 1}
            assert s == slice(None, 7, None)
    assert env.guards == []


def test_graph_without_output():
    g = fx.Graph()
    g.placeholder("x")
    assert fx.Interpreter(g).run(1) is None


def test_python_operators():
    assert python_operator("matmul")(np.eye(2), np.ones(2)).tolist() == [1, 1]
    with pytest.raises(KeyError, match="give a resolver"):
        python_operator("softmax")


def test_transformer_copies():
    graph = everything()
    assert fx.Transformer(graph).transform() == graph


def test_transformer_changes():
    class Swap(fx.Transformer):
        def call_function(self, node, args, kwargs):
            if node.target == "sub":
                return args[0] + -args[1]
            return super().call_function(node, args, kwargs)

    g = fx.parse(
        """graph {
          %x: float32[2] = placeholder
          %y: float32[2] = placeholder
          %s: float32[2] = sub(%x, %y) in {no_grad} at "m.py":3 f
          return {"r": [%s, slice(%s, 1, None)]} }"""
    )
    new = Swap(g, resolver).transform()
    new.lint(resolver)
    neg, add = (n for n in new.nodes if n.op == "call_function")
    assert (neg.target, add.args) == ("neg", (new.placeholders[0], neg))
    assert neg.regions == add.regions == ("no_grad",)
    assert add.meta["source"] == ("m.py", 3, "f")
    assert add.spec == fx.TensorSpec((2,), fx.float32)
    x, y = np.array([5.0, 6.0], np.float32), np.array([1.0, 2.0], np.float32)
    assert fx.Interpreter(new, resolver).run(x, y)["r"][0].tolist() == [4, 4]


def test_specs_and_dtypes():
    spec = fx.TensorSpec((2, 3), fx.float32)
    assert spec.replace(shape=(3,)) == fx.TensorSpec((3,), fx.float32)
    assert spec.replace(strides=(1, 2)).is_contiguous() is False
    gpu = fx.Device("cuda")
    assert spec.replace(dtype=fx.int64, device=gpu) == fx.TensorSpec((2, 3), fx.int64, None, gpu)
    assert spec.numel() == 6
    assert fx.TensorSpec((1, 0, 3), fx.float32, (9, 3, 1)).is_contiguous()
    assert not fx.TensorSpec((2, 3), fx.float32, (4, 1)).is_contiguous()
    assert len({spec, fx.TensorSpec((2, 3), fx.float32)}) == 1
    assert spec != 3
    with pytest.raises(TypeError, match="has no field colour"):
        spec.replace(colour=1)
    assert fx.ScalarSpec(int, 3) != fx.ScalarSpec(float, 3)
    assert repr(fx.ScalarSpec(float)) == "float"
    for d in fx.DTYPES:
        assert fx.dtype_of(d.name) is d
        assert pickle.loads(pickle.dumps(d)) is copy.deepcopy(d) is copy.copy(d) is d
        assert fx.DTYPES[d.code] is d
    with pytest.raises(ValueError, match="no dtype named 'float31'"):
        fx.dtype_of("float31")
    assert fx.complex64.is_complex
    assert fx.bfloat16.is_floating_point
    assert math.prod(d.itemsize for d in (fx.bool_, fx.int16, fx.complex128)) == 32
    assert fx.Device("cuda", 1) == fx.Device(fx.Device("cuda:1")) == pickle.loads(pickle.dumps(fx.Device("cuda:1")))
    for bad in ("tpu", "cuda:x", "cuda:"):
        if bad != "cuda:":
            with pytest.raises(ValueError, match="device"):
                fx.Device(bad)
    with pytest.raises(ValueError, match="bad device index -1: devices are numbered from 0"):
        fx.Device("cuda", -1)
    with pytest.raises(AttributeError):
        fx.CPU.type = "cuda"
