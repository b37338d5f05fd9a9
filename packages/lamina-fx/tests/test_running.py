"""Proxies and builders, tracing, generated Python, GraphModule, Interpreter, Transformer."""

from __future__ import annotations

import copy
import linecache
import math
import pickle
import traceback

import numpy as np
import pytest
from graph_samples import everything
from sample_operators import TABLE, Methods, resolver

import lamina_fx as fx
from lamina_fx.codegen import python_code
from lamina_fx.interpreter import read_attribute
from lamina_fx.python_operators import WRAPPED, python_operator
from lamina_fx.symbolic import ShapeEnv

SPEC = fx.TensorSpec((2, 3), fx.float32)


def builder(res=None, spec=SPEC):
    b = fx.GraphBuilder(fx.Graph(), resolver=res)
    return b, b.input("x", spec)


def line(node):
    return fx.print_graph(node.graph).splitlines()[[n.name for n in node.graph.nodes].index(node.name) + 1].strip()


# -- proxies -------------------------------------------------------------------------------------------------

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


# -- tracing ---------------------------------------------------------------------------------------------------


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


class Module:
    def __call__(self, *args):
        return self.forward(*args)

    def forward(self, x):
        raise NotImplementedError

    def named_children(self):
        return [(k, v) for k, v in vars(self).items() if isinstance(v, Module)]

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self, prefix=""):
        for path, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, np.ndarray):
                    yield f"{path}.{name}" if path else name, value


class Linear(Module):
    def __init__(self, size):
        self.weight = np.arange(size * size, dtype=np.float64).reshape(size, size)

    def forward(self, x):
        return x @ self.weight


class Block(Module):
    def __init__(self):
        self.first, self.second = Linear(3), Linear(3)
        self.scale = np.array([1.0, 2.0, 3.0])

    def forward(self, x):
        return self.second(self.first(x) + 1) * self.scale


Block.__module__ = "user_code"


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


# -- generated Python ------------------------------------------------------------------------------------------


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


# -- interpreter ---------------------------------------------------------------------------------------------------


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


# -- transformer -------------------------------------------------------------------------------------------------------


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
    with pytest.raises(AttributeError):
        fx.CPU.type = "cuda"
