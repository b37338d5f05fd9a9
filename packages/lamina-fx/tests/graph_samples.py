"""Graphs that between them use everything a graph can hold, and random ones."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from lamina_fx import (
    ArrayConstant,
    Device,
    Graph,
    ScalarSpec,
    TensorSpec,
    bfloat16,
    bool_,
    complex64,
    float8_e4m3fn,
    float32,
    int64,
)
from lamina_fx.symbolic import Max, ShapeEnv, Symbol, SymInt


def everything() -> Graph:
    """Every kind of node, argument, spec, effect, region and meta data."""
    env = ShapeEnv()
    n = env.create_symbol(8, "x.shape[0]", line="model.py:3")
    u = env.create_unbacked(1, 10, "nonzero(x)")
    e = env.create_symbol(16, "y", lower=8, upper=64, divisor=8)
    g = Graph()
    g.attributes["w"] = ArrayConstant(float32, (2,), b"\0\0\x80\x3f\0\0\0\x40")
    g.attributes["layers.0.scale"] = 3
    x = g.placeholder("x", spec=TensorSpec((n, 4), float32))
    y = g.placeholder("y", spec=ScalarSpec(int, e), default=16)
    w = g.get_attr("w", spec=TensorSpec((2,), float32))
    scale = g.create_node("get_attr", "layers.0.scale", name="scale", spec=ScalarSpec(int, 3))
    a = g.call_function("add", (x, 1.5), {"alpha": -2}, spec=TensorSpec((n, 4), float32, (1, n)))
    a.meta["source"] = ("model.py", 12, "forward")
    a.meta["from"] = ("linear", "addmm")
    v = g.call_function("view", (a, [n * 2, 2]), spec=TensorSpec((n * 2, 2), float32, device=Device("cuda:1")))
    s = g.call_function("split.sizes", (v, (1, u + 1)), {"dim": 0}, name="s")
    s.spec = (TensorSpec((1, 2), bfloat16), None, (TensorSpec((u + 1, 2), bool_),))
    first = g.call_function("getitem", (s, 0), spec=s.spec[0])
    g.regions = ("no_grad", "checkpoint:0", "auto cast")
    i = g.call_function("index", (first, (slice(None, u, None), ..., None, True)))
    g.regions = ()
    p = g.call_function("print", ('say "hi"\n\t\u00e9', {"k": [1, (2,), {}]}), effect="print")
    p.meta["source"] = ("dir with space/a.py", 1, "<module>")
    odd = g.call_function("strange id!", (math.inf, -math.inf, 1e-30, -0.0, 1 + 2j, complex64, Device("cuda:0")))
    m = g.call_method("sum", (a, 1), {"keepdim": True})
    c = g.call_module("layers.0", (m,))
    t = g.call_function(
        "typed", (int64, float8_e4m3fn, TensorSpec((n,), float32), Max(n.expr, 3), n >= 3, SymInt(7, env))
    )
    inner = Graph()
    ix = inner.placeholder("x", spec=TensorSpec((n,), float32))
    inner.attributes["deep"] = Graph()
    inner.attributes["deep"].output(None)
    inner.output((inner.call_function("neg", (ix,)),))
    cond = g.call_function("cond", (c, inner, inner.copy(), [x]), effect="random")
    g.call_function("copy_to", (x, cond), effect="write")
    g.output({"r": (y, w, scale, i, p, odd, t), "n": n, "none": None})
    return g


def loops() -> Graph:
    """Indices whose bounds are expressions."""
    n = Symbol("n", 1)
    k = Symbol("k", 0, n - 1)
    g = Graph()
    g.output(g.call_function("load", (k * n + 3, n // 2)))
    return g


def empty() -> Graph:
    g = Graph()
    g.output(None)
    return g


SAMPLES = {"everything": everything, "loops": loops, "empty": empty}

_names = st.sampled_from(["x", "add", "x_1", "if", "input", "graph", "s", "at", "in_", "meta", "method", "output_"])
_leaves = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=5), st.just(...), st.just(float32),
    st.complex_numbers(allow_nan=False),
)  # fmt: skip
_values = st.recursive(
    _leaves,
    lambda v: st.one_of(
        st.lists(v, max_size=3),
        st.lists(v, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), v, max_size=2),
        st.builds(slice, v, v, v),
    ),
    max_leaves=5,
)
_shapes = st.lists(st.integers(0, 5), max_size=3)
_tensors = st.builds(TensorSpec, _shapes, st.sampled_from([float32, bool_, bfloat16]))
_specs = st.recursive(st.one_of(st.none(), _tensors, st.just(ScalarSpec(int))), lambda s: st.tuples(s, s), max_leaves=3)


_KINDS = ("placeholder", "call_function", "call_function", "call_method", "call_module", "get_attr")


@st.composite
def random_graphs(draw, depth: int = 0):
    """Graphs of up to ten nodes with random arguments, specs, effects, regions and sources."""
    g = Graph()
    nodes = []
    for _ in range(draw(st.integers(0, 10))):
        op = draw(
            st.sampled_from(["placeholder", "call_function", "call_function", "call_method", "call_module", "get_attr"])
        )
        target = draw(st.one_of(_names, st.sampled_from(["a.b", "x y", "", "placeholder", "return"])))
        args, kwargs = [], {}
        if op.startswith("call"):
            args = [
                draw(st.one_of(_values, st.sampled_from(nodes)) if nodes else _values)
                for _ in range(draw(st.integers(0, 3)))
            ]
            if nodes and draw(st.booleans()):
                kwargs = {draw(_names): [nodes[-1], draw(_values)]}
            if depth == 0 and draw(st.integers(0, 4)) == 0:
                args.append(draw(random_graphs(depth=1)))
        elif op == "get_attr":
            g.attributes[target] = draw(_values)
        elif draw(st.booleans()):
            args = [draw(_values)]
        node = g.create_node(op, target, tuple(args), kwargs, name=draw(_names))
        node.spec = draw(_specs)
        node.effect = draw(st.sampled_from([None, None, "write", "a b"]))
        node.regions = draw(st.sampled_from([(), (), ("no_grad",), ("checkpoint:0", "x y")]))
        if draw(st.booleans()):
            node.meta["source"] = (draw(st.text(max_size=4)), draw(st.integers(0, 99)), draw(_names))
        nodes.append(node)
    g.output(draw(st.one_of(_values, st.sampled_from(nodes), st.lists(st.sampled_from(nodes)))) if nodes else None)
    return g
