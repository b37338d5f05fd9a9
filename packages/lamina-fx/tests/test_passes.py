"""Passes: text before and after, the same values before and after, and the runner."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from graph_samples import everything
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_operators import resolver

import lamina_fx as fx
from lamina_fx import passes
from lamina_fx.python_operators import python_operator
from lamina_fx.symbolic import ShapeEnv

FOLD = functools.partial(passes.fold_constants, resolver=python_operator)
CSE = passes.eliminate_common_subexpressions
IDENTITIES = passes.fold_identities
CASES = [
    # dead code
    (passes.eliminate_dead_code, "%a = neg(%x)  %b = neg(%a)  return %x", "return %x"),
    (passes.eliminate_dead_code, "%a = neg(%x)  %p = print(%a) !print  return %x", None),
    (passes.eliminate_dead_code, "%a = method f(%x)  return %x", None),
    (passes.eliminate_dead_code, "attribute w = 1  %w = get w  return %x", "return %x"),
    (functools.partial(passes.eliminate_dead_code, keep=lambda n: n.name == "a"), "%a = neg(%x)  return %x", None),
    # common subexpressions
    (
        CSE,
        "%a = neg(%x)  %b = neg(%x)  %c = exp(%a)  %d = exp(%b)  return (%c, %d)",
        "%a = neg(%x)  %c = exp(%a)  return (%c, %c)",
    ),
    (CSE, "%a = add(%x, 1)  %b = add(%x, 1.0)  return (%a, %b)", None),
    (CSE, "%a = add(%x, True)  %b = add(%x, 1)  return (%a, %b)", None),
    (CSE, "%a = add(%x, 0.0)  %b = add(%x, -0.0)  return (%a, %b)", None),
    (CSE, "%a = f(%x, (1,))  %b = f(%x, [1])  return (%a, %b)", None),
    (CSE, "%a = random() !random  %b = random() !random  return (%a, %b)", None),
    (CSE, "%a = neg(%x) in {no_grad}  %b = neg(%x)  return (%a, %b)", None),
    (CSE, "%a = neg(%x)  %w = copy_to(%x, %a) !write  %b = neg(%x)  return (%a, %b)", None),
    (CSE, "%a: float32[] = neg(%x)  %b = neg(%x)  return (%a, %b)", None),
    (CSE, "%a = f(graph { return 1 })  %b = f(graph { return 1 })  return (%a, %b)", None),
    (
        CSE,
        "attribute w = 1  %a = get w  %b = get w  %c = f(%a, slice(1, nan, None), {\"k\": 1})  "
        "%d = f(%b, slice(1, nan, None), {\"k\": 1})  return (%c, %d)",
        "attribute w = 1  %a = get w  %c = f(%a, slice(1, nan, None), {\"k\": 1})  return (%c, %c)",
    ),
    # constants
    (FOLD, "%a = add(2, 3)  %b = mul(%a, 4)  %c = add(%x, %b)  return %c", "%c = add(%x, 20)  return %c"),
    (
        FOLD,
        "attribute w = 5  %w = get w  %n = pow(%w, 2)  %s = pow(%n, 2)  %c = add(%x, [%s])  return (%c, {\"k\": %n})",
        "%c = add(%x, [625])  return (%c, {\"k\": 25})",
    ),
    (FOLD, "attribute w = 1  %w = get w  %a = div(%w, %x)  %b = fly(%w)  return (%a, %b)", None),
    (FOLD, "%r = random(3) !random  %c = add(%x, %r)  return %c", None),
    (FOLD, "%f = full((2,), 1)  %c = add(%x, %f)  return %c", None),
    # identities
    (IDENTITIES, "%a: int64[4] = add(%x, 0)  return %a", None),  # the spec of x is not int64[4]
    (IDENTITIES, "%a: float32[4] = mul(%x, 1)  return %a", "return %x"),
    (IDENTITIES, "%a: float32[4] = mul(1, %x)  return %a", "return %x"),
    (IDENTITIES, "%a: float32[4] = mul(%x, True)  return %a", None),
    (IDENTITIES, "%a: float32[4] = add(%x, 0)  return %a", None),  # -0.0 + 0 is 0.0
    (IDENTITIES, "%a: float32[4] = add(%x, -0.0)  return %a", "return %x"),
    (IDENTITIES, "%a: float32[4] = sub(%x, 0)  return %a", "return %x"),
    (IDENTITIES, "%a: float32[4] = sub(%x, -0.0)  return %a", None),
    (IDENTITIES, "%a: int64[3] = add(%i, 0)  %b: int64[3] = add(0, %a)  return %b", "return %i"),
    (IDENTITIES, "%a: float64[3] = div(%i, 1)  return %a", None),
    (IDENTITIES, "%a: float32[4] = neg(%x)  %b: float32[4] = neg(%a)  return %b", "return %x"),
    (
        IDENTITIES,
        "%a: float32[4] = neg(%x)  %b: float32[4] = neg(%a)  %c: float32[4] = neg(%b)  return (%c, %a)",
        "%a: float32[4] = neg(%x)  %c: float32[4] = neg(%x)  return (%c, %a)",
    ),
    (
        IDENTITIES,
        "%a: float32[4] = neg(%x)  %b: float32[4] = abs(%a)  %c: float32[4] = abs(%b)  return %c",
        "%c: float32[4] = abs(%x)  return %c",
    ),
    (
        IDENTITIES,
        "%a: float32[2, 2] = reshape(%x, (2, 2))  %b: float32[4, 1] = reshape(%a, (4, 1))  return (%a, %b)",
        "%a: float32[2, 2] = reshape(%x, (2, 2))  %b: float32[4, 1] = reshape(%x, (4, 1))  return (%a, %b)",
    ),
    (
        IDENTITIES,
        "%a: float32[2, 2] = reshape(%x, (2, 2))  %b: float32[4] = reshape(%a, (4,))  return %b",
        "return %x",
    ),
    (
        IDENTITIES,
        "%a: float32[5, 2, 3] = permute(%m, (2, 0, 1))  %b: float32[3, 5, 2] = permute(%a, (2, 0, 1))  return %b",
        "%b: float32[3, 5, 2] = permute(%m, (1, 2, 0))  return %b",
    ),
    (
        IDENTITIES,
        "%a: float32[5, 2, 3]@(1, 15, 5) = permute(%m, (2, 0, 1))  "
        "%b: float32[2, 3, 5] = permute(%a, (1, -1, 0))  return %b",
        "return %m",
    ),
    (IDENTITIES, "%a: float32[4] = maximum(%x, %x)  %b: float32[4] = cat([%a])  return %b", "return %x"),
    (IDENTITIES, "%a: float32[4] = cat([%x, %x])  return %a", None),
    (IDENTITIES, "%a: float32[4] = mul(%x, 1)  %w = copy_to(%x, %a) !write  return %a", None),
    (IDENTITIES, "%a = mul(%x, 1)  return %a", None),
    (IDENTITIES, "%a: float32[4] = mul(%x, 1) !random  return %a", None),
    # names
    (passes.canonicalize_names, "%zz = neg(%x)  %q = neg(%zz)  return %q", "NAMES"),
    # order
    (passes.sort_nodes, "%a = neg(%x)  %p = print(1) !print  %b = neg(%a)  return %b", None),
]  # fmt: skip

HEAD = "%x: float32[4] = placeholder  %i: int64[3] = placeholder  %m: float32[2, 3, 5] = placeholder  "


def graph(body):
    return fx.parse("graph { " + HEAD + body + " }")


@pytest.mark.parametrize("case", CASES, ids=[f"{passes.runner._name(c[0])}-{i}" for i, c in enumerate(CASES)])
def test_before_and_after(case):
    function, before, after = case
    g = graph(before)
    result = function(g)
    assert result is g
    g.lint()
    if after == "NAMES":
        assert [n.name for n in g.nodes] == ["input", "input_1", "input_2", "neg", "neg_1", "output"]
    else:
        assert fx.print_graph(g) == fx.print_graph(graph(before if after is None else after))
    text = fx.print_graph(g)
    assert fx.print_graph(function(g)) == text  # once more changes nothing


def test_folding_constants_with_arrays():
    g = graph(
        'attribute w = 3  %w = get w  %f: int64[4] = full((4,), 2)  %a: int64[4] = mul(%f, %w) in {r} at "m.py":3 f  '
        "%n = add(%w, 1)  %r = add(%x, %a)  %s = add(%r, %n)  return (%s, %f)"
    )
    want = fx.Interpreter(g, resolver).run(np.ones(4), None, None)
    passes.fold_constants(g, resolver)
    assert [n.name for n in g.nodes if n.op.startswith("call")] == ["f", "r", "s"]
    folded, number = (n for n in g.nodes if n.op == "get_attr")
    assert (folded.regions, folded.meta["source"], str(folded.spec)) == (("r",), ("m.py", 3, "f"), "int64[4]")
    assert number.spec is None
    assert {name: value.tolist() for name, value in g.attributes.items()} == {"folded_a": [6] * 4, "folded_n": 4}
    got = fx.Interpreter(g, resolver).run(np.ones(4), None, None)
    assert got[0].tolist() == want[0].tolist() == [11] * 4
    g.lint()


def test_large_results_are_not_folded():
    body = "attribute w = 3  %w = get w  %f = full((1000,), 2)  %a = mul(%f, %w)  %r = add(%x, %a)  return %r"
    assert len(passes.fold_constants(graph(body), resolver, max_bytes=100).nodes) == len(graph(body).nodes)
    assert len(passes.fold_constants(graph(body), resolver).nodes) == len(graph(body).nodes) - 2


def test_own_identities():
    v = passes.Variable("v")
    rule = passes.Identity(("exp", ("neg", v)), ("div", 1, ("exp", v)), lambda found: found["v"].name == "x")
    g = graph("%a: float32[4] = neg(%x)  %b: float32[4] = exp(%a)  return %b")
    passes.fold_identities(g, identities=[rule])
    assert [(n.name, n.target) for n in g.nodes][3:-1] == [("exp", "exp"), ("b", "div")]


def test_propagating_specs():
    env = ShapeEnv()
    n = env.create_symbol(8, "n")
    g = graph("%a: float32[4] = neg(%x)  %s = sort(%a)  %j = getitem(%s, 1)  %w = copy_to(%x, %a)  return %j")
    inputs = [fx.TensorSpec((n,), fx.float32), None, None]
    passes.propagate_specs(g, resolver, inputs=inputs)
    assert [str(k.spec) for k in g.nodes][3:6] == ["float32[s0]", "(float32[s0], int64[s0])", "int64[s0]"]
    assert next(k for k in g.nodes if k.name == "w").effect == "write"
    with pytest.raises(ValueError, match="the graph has 3 inputs, got 1 specs"):
        passes.propagate_specs(g, resolver, inputs=inputs[:1])
    bad = graph('%a = add(%x, %i) at "m.py":9 f  return %a')
    with pytest.raises(RuntimeError) as caught:
        passes.propagate_specs(bad, resolver)
    assert caught.value.__notes__ == ["while inferring %a = add(%x, %i), from m.py:9 in f"]


def test_sorting():
    g = graph("%a = neg(%x)  %b = neg(%a)  %p = print(%b) !print  %q = print(1) !print  %c = add(%b, %a)  return %c")
    x, i, m, a, b, p, q, c, out = g.nodes
    g.reorder([out, c, p, q, b, a, m, x, i])
    with pytest.raises(fx.VerificationError):
        g.lint()
    passes.sort_nodes(g)
    g.lint()
    order = list(g.nodes)
    assert order.index(p) < order.index(q)
    assert order[:3] == [m, x, i]
    a.args = (c,)
    with pytest.raises(ValueError, match="depend on each other in a circle"):
        passes.sort_nodes(g)


# -- splitting ----------------------------------------------------------------------------------------------


@st.composite
def programs(draw):
    """A random arithmetic graph and an assignment of its nodes to parts in order."""
    g = fx.Graph()
    values = [g.placeholder("x"), g.placeholder("y")]
    g.attributes["w"] = 7
    values.append(g.get_attr("w"))
    parts = {}
    part = 0
    for _ in range(draw(st.integers(1, 12))):
        part += draw(st.integers(0, 1))
        args = [draw(st.sampled_from(values)) for _ in range(2)]
        node = g.call_function(draw(st.sampled_from(["add", "mul", "maximum"])), tuple(args))
        parts[node.name] = part
        values.append(node)
    g.output(tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))))
    return g, parts


@settings(max_examples=60, deadline=None)
@given(programs())
def test_split_and_inlined_graphs_compute_the_same(program):
    g, parts = program
    text = fx.print_graph(g)
    split = passes.split_graph(g, lambda node: parts[node.name])
    split.lint()
    assert fx.print_graph(g) == text
    want = fx.Interpreter(g, resolver).run(3, 5)
    assert fx.Interpreter(split, resolver).run(3, 5) == want
    assert fx.GraphModule(None, split, resolver)(3, 5) == want
    assert fx.parse(fx.print_graph(split)) == split
    whole = passes.inline_subgraphs(split)
    whole.lint()
    assert fx.Interpreter(whole, resolver).run(3, 5) == want
    assert all(n.op != "call_module" for n in whole.nodes)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_passes_keep_values(program):
    g, _ = program
    every = [
        passes.eliminate_common_subexpressions, functools.partial(passes.fold_constants, resolver=resolver),
        passes.fold_identities, passes.sort_nodes, passes.canonicalize_names, passes.eliminate_dead_code,
    ]  # fmt: skip
    passes.run_passes(g, every, resolver=resolver, examples=(3, 5), check=True)


def test_parts_that_need_each_other():
    g = graph("%a = neg(%x)  %b = neg(%a)  %c = neg(%b)  return %c")
    with pytest.raises(ValueError, match="the parts odd, even need each other"):
        passes.split_graph(g, lambda node: "even" if node.name == "b" else "odd")
    g = graph("%a = print(1) !print  %b = print(2) !print  %c = print(3) !print  return %x")
    with pytest.raises(ValueError, match="need each other"):
        passes.split_graph(g, lambda node: node.name == "b")
    split = passes.split_graph(g, lambda node: node.name == "c")
    assert [n.effect for n in split.nodes if n.op == "call_module"] == ["print", "print"]


def test_inlining_checks_inputs():
    g = fx.parse("graph { attribute f = graph { %a = placeholder return %a }  %r = module f()  return %r }")
    with pytest.raises(ValueError, match="the subgraph 'f' has 1 inputs, got 0"):
        passes.inline_subgraphs(g)


# -- runner -----------------------------------------------------------------------------------------------------


def break_it(g):
    next(n for n in g.nodes if n.name == "a").args = (2,)
    return g


def malform(g):
    g.erase_node(g.output_node)
    return g


def test_report():
    g = graph("%a = neg(%x)  %b = neg(%x)  return %a")
    g, report = passes.run_passes(g, [passes.eliminate_common_subexpressions, FOLD])
    assert [r.name for r in report.runs] == ["eliminate_common_subexpressions", "fold_constants"]
    assert [(r.nodes_before, r.nodes_after) for r in report.runs] == [(6, 5), (5, 5)]
    assert all(r.seconds >= 0 for r in report.runs)
    assert str(report).splitlines()[1].split()[0] == "eliminate_common_subexpressions"
    assert str(passes.Report()).split()[0] == "pass"


def test_disabling(monkeypatch):
    every = [passes.eliminate_dead_code, passes.fold_identities]
    monkeypatch.setenv("LAMINA_DISABLE_PASSES", "fold_identities")
    _, report = passes.run_passes(everything(), every)
    assert [r.name for r in report.runs] == ["eliminate_dead_code"]
    _, report = passes.run_passes(everything(), every, disable=["eliminate_dead_code"])
    assert report.runs == []


def test_checking(monkeypatch):
    good = "%a = neg(%x)  return %a"
    with pytest.raises(fx.VerificationError, match="after the pass malform: the last node is no output"):
        passes.run_passes(graph(good), [malform], check=True)
    passes.run_passes(graph(good), [break_it])
    monkeypatch.setenv("LAMINA_CHECK", "1")
    with pytest.raises(fx.VerificationError, match="after the pass malform"):
        passes.run_passes(graph(good), [malform])
    with pytest.raises(fx.VerificationError, match="the graph that was given: "):
        passes.run_passes(malform(graph(good)), [])
    inputs = (np.float32([1, np.nan]), None, None)
    with pytest.raises(fx.VerificationError, match="the pass break_it changed result 0"):
        passes.run_passes(graph(good), [break_it], examples=inputs, resolver=resolver)
    passes.run_passes(graph(good), [passes.eliminate_dead_code], examples=inputs, resolver=resolver)


def test_dumping(tmp_path, monkeypatch):
    g = graph("%a = neg(%x)  return %x")
    passes.run_passes(g, [passes.eliminate_dead_code, passes.sort_nodes], dump=tmp_path / "d")
    assert [p.name for p in sorted((tmp_path / "d").iterdir())] == [
        "01-eliminate_dead_code-after.txt", "01-eliminate_dead_code-before.txt",
    ]  # fmt: skip
    assert fx.parse((tmp_path / "d" / "01-eliminate_dead_code-before.txt").read_text()) == graph(
        "%a = neg(%x)  return %x"
    )
    seen = []
    passes.run_passes(g, [passes.sort_nodes], dump=lambda name, before, after: seen.append((name, before == after)))
    assert seen == [("sort_nodes", True)]
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path / "e"))
    passes.run_passes(graph("%a = neg(%x)  return %x"), [passes.eliminate_dead_code])
    assert (tmp_path / "e").is_dir()
