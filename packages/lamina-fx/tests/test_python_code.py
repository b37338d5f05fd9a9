"""Generated Python, and graphs as modules."""

from __future__ import annotations

import pickle
import traceback

import pytest
from graph_samples import everything

import lamina_fx as fx
from lamina_fx.codegen import python_code


def test_code_is_readable():
    graph = fx.parse(
        """graph {
          %x: float32[2] = placeholder
          %self: int = placeholder(3)
          %w = get layer.w
          %ops = "a b"(%x, [1, (2,)], k={"a": None}) at "model.py":3 f
          %d = full((2,), dtype=float32) !random in {no_grad}
          %t = getitem(%ops, slice(1, None, 2))
          %e = method sum(%t, 1, keepdim=True)
          return (%self, %e, inf)
        }"""
    )
    assert python_code(graph).source == (
        "def forward(self, x, self_=3):\n"
        "    # x: float32[2]\n"
        "    # self_: int\n"
        "    w = self.layer.w\n"
        "    # model.py:3 in f\n"
        "    ops_ = ops['a b'](x, [1, (2,)], k={'a': None})\n"
        "    d = ops.full((2,), dtype=dtype.float32)  # effect: random; in no_grad\n"
        "    t = ops_[_slice(1, None, 2)]\n"
        "    e = t.sum(1, keepdim=True)\n"
        "    return (self_, e, _float0)"
    )


def test_code_of_everything_compiles():
    code = python_code(everything(), free=True)
    compile(code.source, "x", "exec")
    assert {type(v).__name__ for v in code.constants.values()} >= {"SymInt", "Graph", "Device", "float"}


def test_traceback_shows_the_code_and_the_user_line():
    m = fx.symbolic_trace(lambda x: x * 2 + "a")
    with pytest.raises(TypeError) as caught:
        m(3)
    text = "".join(traceback.format_exception(caught.value))
    assert "add = ops.add(mul, 'a')" in text
    assert 'lambda x: x * 2 + "a"' in m.code


def test_unknown_operator_in_code():
    m = fx.GraphModule(None, fx.parse("graph { %a = fly()  return %a }"))
    with pytest.raises(AttributeError, match="no Python operator has the id 'fly'; give a resolver"):
        m()


class Counted:
    """Knows how many of its kind are alive, and the most there ever were."""

    alive = most = 0

    def __init__(self):
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self):
        Counted.alive -= 1

    def __neg__(self):
        return Counted()


CHAIN = "%n0 = neg(%x) " + " ".join(f"%n{i + 1} = neg(%n{i})" for i in range(20)) + " return %n20 "


def test_values_are_freed():
    m = fx.GraphModule(None, fx.parse("graph { %x = placeholder " + CHAIN + "}"))
    assert isinstance(m(Counted()), Counted)
    assert Counted.most <= 3
    assert Counted.alive == 0


def test_graph_module():
    g = fx.parse("graph { %x = placeholder  %w = get a.b.w  %m = mul(%x, %w)  return %m }")
    m = fx.GraphModule({"a.b.w": 10}, g, class_name="Scale")
    assert m(4) == m.forward(4) == 40
    assert m.a.b.w == 10
    assert repr(m).startswith("Scale(\ndef forward(self, x):")
    with pytest.raises(AttributeError):
        _ = m.a.c
    with pytest.raises(AttributeError):
        _ = m.other
    m.graph = fx.parse("graph { %x = placeholder  return (%x, %x) }")
    assert m(4) == (4, 4)
    next(iter(m.graph.nodes)).graph.output_node.args = (7,)
    assert m(4) == (4, 4)
    m.recompile()
    assert m(4) == 7
    assert pickle.loads(pickle.dumps(m))(1) == 7
    assert "return 7" in m.code


def test_print_readable(capsys):
    m = fx.symbolic_trace(lambda x: x)
    assert m.print_readable() in capsys.readouterr().out
