"""Graph, Node, verifier, equality, hash, copying, drawing."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest
from graph_samples import SAMPLES, everything, random_graphs
from hypothesis import HealthCheck, given, settings
from sample_operators import resolver

import lamina_fx as fx
from lamina_fx.structure import difference
from lamina_fx.symbolic import ShapeEnv


def chain(text="graph { %x = placeholder  %a = neg(%x)  %b = add(%a, %x)  return %b }"):
    return fx.parse(text)


def names(graph):
    return [n.name for n in graph.nodes]


def node(graph, name):
    return next(n for n in graph.nodes if n.name == name)


def test_nodes_link_both_ways():
    g = chain()
    assert names(g) == ["x", "a", "b", "output"]
    assert [n.name for n in reversed(g.nodes)] == ["output", "b", "a", "x"]
    assert len(g.nodes) == 4
    a = node(g, "a")
    assert (a.prev.name, a.next.name) == ("x", "b")
    assert list(node(g, "x").users) == [a, node(g, "b")]
    assert a.all_input_nodes == [node(g, "x")]
    assert g.output_node.args == (node(g, "b"),)
    with pytest.raises(ValueError, match="the graph has no output node"):
        _ = fx.Graph().output_node
    with pytest.raises(ValueError, match="unknown node kind 'jump'"):
        g.create_node("jump", "x")


def test_users_follow_arguments():
    g = chain()
    x, a, b = (node(g, n) for n in "xab")
    a.args = ([{"k": slice(x, 1, x)}], (a.graph.placeholders[0],))
    assert list(x.users) == [b, a] or list(x.users) == [a, b]
    a.args = (1,)
    assert list(x.users) == [b]
    a.kwargs = {"other": x}
    assert a in x.users
    a.replace_input_with(x, b)
    assert a.kwargs == {"other": b}
    assert x.replace_all_uses_with(a, keep=lambda user: user is b) == []
    assert x.replace_all_uses_with(a) == [b]
    assert list(x.users) == []


def test_insertion_points():
    g = chain()
    x, b = node(g, "x"), node(g, "b")
    with g.inserting_before(b):
        g.call_function("one", (x,))
        g.call_function("two", (x,))
    with g.inserting_after(x):
        g.call_function("three", (x,))
        g.call_function("four", (x,))
    assert names(g) == ["x", "three", "four", "a", "one", "two", "b", "output"]
    g.lint()


def test_changing_and_moving():
    g = chain()
    x, a, b = (node(g, n) for n in "xab")
    b.update_arg(0, x)
    b.update_kwarg("alpha", 2)
    b.update_kwarg("out", a)
    assert (b.args, b.kwargs) == ((x, x), {"alpha": 2, "out": a})
    assert list(a.users) == [b]
    b.update_kwarg("out", None)
    assert list(a.users) == []
    b.append(a)
    assert names(g) == ["x", "b", "a", "output"]
    b.prepend(a)
    assert names(g) == ["x", "a", "b", "output"]
    b.prepend(a)
    a.append(a)
    a.prepend(a)
    a.append(b)
    assert names(g) == ["x", "a", "b", "output"]
    assert [n.name for n in reversed(g.nodes)] == ["output", "b", "a", "x"]
    assert len(g.nodes) == 4
    g.lint()


def test_finding():
    g = chain()
    assert g.find_nodes(op="call_function") == [node(g, "a"), node(g, "b")]
    assert g.find_nodes(op="call_function", target="add") == g.find_nodes(target="add") == [node(g, "b")]
    assert g.find_nodes(target="mul") == []
    assert len(g.find_nodes()) == 4


def test_erasing():
    g = chain()
    with pytest.raises(RuntimeError, match="cannot erase a: used by b"):
        g.erase_node(node(g, "a"))
    for n in g.nodes:  # removal while iterating
        if n.name == "output":
            g.erase_node(n)
    for n in reversed(g.nodes):
        g.erase_node(n)
    assert names(g) == []
    assert len(g.nodes) == 0
    assert g.placeholder("x").name == "x"


def test_unique_names():
    g = fx.Graph()
    made = [g.placeholder(n).name for n in ("x", "x", "x_1", "x", "a.b", "1", "", "if", "é")]
    assert made == ["x", "x_1", "x_1_1", "x_2", "a_b", "_1", "node", "if_", "é"]
    renamed = node(g, "x_2")
    g.rename(renamed, "x_2")
    assert renamed.name == "x_2"
    g.rename(renamed, "x")
    assert renamed.name == "x_3"
    assert len(set(names(g))) == len(made)


def test_regions_are_stamped():
    g = fx.Graph()
    g.regions = ("no_grad",)
    assert g.placeholder("x").regions == ("no_grad",)


def test_reorder():
    g = chain("graph { %x = placeholder  %y = placeholder  return (%x, %y) }")
    x, y, out = g.nodes
    g.reorder([y, x, out])
    assert names(g) == ["y", "x", "output"]
    g.lint()
    with pytest.raises(ValueError, match="each node of the graph once"):
        g.reorder([x, y])


# -- verifier --------------------------------------------------------------------------------------------


def broken_use_before():
    g = chain()
    a, b = node(g, "a"), node(g, "b")
    g.reorder([node(g, "x"), b, a, g.output_node])
    return g


def broken_other_graph():
    g, other = chain(), chain()
    node(g, "a").args = (node(other, "x"),)
    return g


def broken_users():
    g = chain()
    node(g, "x").users.clear()
    return g


def broken_names():
    g = chain()
    node(g, "a").name = "x"
    return g


def broken_name():
    g = chain()
    node(g, "a").name = "a b"
    return g


def broken_output():
    g = chain()
    g.erase_node(g.output_node)
    return g


def broken_behind_output():
    g = chain()
    g.call_function("neg", ())
    return g


def broken_placeholder():
    g = chain()
    with g.inserting_before(g.output_node):
        g.placeholder("late")
    return g


def broken_attribute():
    g = chain()
    with g.inserting_before(g.output_node):
        g.get_attr("w")
    return g


def broken_target():
    g = chain()
    node(g, "a").target = len
    return g


def broken_subgraph():
    g = chain()
    node(g, "a").args = (node(g, "x"), [broken_output()])
    return g


def broken_attribute_subgraph():
    g = chain()
    g.attributes["body"] = broken_output()
    return g


def broken_method():
    return chain("graph { %m = method f()  return %m }")


def broken_kind():
    g = chain()
    node(g, "a").op = "jump"
    return g


BROKEN = [
    (broken_use_before, "node 'b': uses 'a' before it is defined"),
    (broken_other_graph, "node 'a': uses 'x', a node of another graph"),
    (broken_users, "node 'x': users are [], but [a, b] use it"),
    (broken_names, "node 'x': a second node of this name"),
    (broken_name, "node 'a b': its name is no identifier"),
    (broken_output, "the last node is no output"),
    (broken_behind_output, "node 'neg': stands behind the output"),
    (broken_placeholder, "node 'late': a placeholder behind other nodes"),
    (broken_attribute, "node 'w': no attribute 'w'"),
    (broken_target, "node 'a': its target must be a string, not builtin_function_or_method"),
    (broken_subgraph, "node 'a', subgraph: the last node is no output"),
    (broken_attribute_subgraph, "attribute 'body': the last node is no output"),
    (broken_method, "node 'm': a method call needs the object as its first argument"),
    (broken_kind, "node 'a': unknown kind 'jump'"),
    (fx.Graph, "the graph is empty"),
]


@pytest.mark.parametrize(("make", "message"), BROKEN, ids=[m.__name__ for m, _ in BROKEN])
def test_verifier_finds(make, message):
    with pytest.raises(fx.VerificationError) as caught:
        make().lint()
    assert message in str(caught.value)
    assert message in caught.value.problems or any(message in p for p in caught.value.problems)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%a: float32[2] = add(%x, %y)", "node 'a': add rejects its arguments: shapes (2,) and (3,) differ"),
        ("%a: float32[3] = neg(%x)", "has the spec float32[3], but neg gives float32[2]"),
        ("%a = jump(%x)", "node 'a': no operator 'jump'"),
        ("%a: float32[2] = neg(%x) !write", "has the effect write, but neg has None"),
        ('%a: float32[3] = neg(%x) at "m.py":7 f', "node 'a' (m.py:7): has the spec"),
    ],
)
def test_verifier_checks_specs(body, message):
    g = fx.parse(f"graph {{ %x: float32[2] = placeholder  %y: float32[3] = placeholder  {body}  return %a }}")
    g.lint() if "jump" not in body else None
    with pytest.raises(fx.VerificationError) as caught:
        g.lint(resolver)
    assert message in str(caught.value)


def test_verifier_accepts():
    for make in SAMPLES.values():
        make().lint()
    fx.parse(
        """graph {
          %x: float32[2] = placeholder
          %s: (float32[2], int64[2]) = sort(%x)
          %i: int64[2] = getitem(%s, 1)
          %u = neg(%x)
          %p = print(%u) !print
          return %i }"""
    ).lint(resolver)


def test_many_problems_are_cut_off():
    g = chain("graph { %x = placeholder " + " ".join(f"%n{i} = neg(%x)" for i in range(20)) + " return %x }")
    node(g, "x").users.clear()
    for i in range(20):
        node(g, f"n{i}").target = None
    with pytest.raises(fx.VerificationError, match=r"and 11 more"):
        g.lint()


# -- equality and hash -------------------------------------------------------------------------------------


def test_differences():
    base = everything()
    assert difference(base, everything()) is None
    for change, words in [
        (lambda g: setattr(node(g, "add"), "target", "sub"), "add: target 'add' and 'sub'"),
        (lambda g: setattr(node(g, "add"), "spec", None), "add: spec"),
        (lambda g: setattr(node(g, "add"), "effect", "write"), "add: effect"),
        (lambda g: setattr(node(g, "add"), "regions", ("a",)), "add: regions"),
        (lambda g: node(g, "add").meta.update(source=("b.py", 1, "f")), "names or sources of 'add'"),
        (lambda g: setattr(node(g, "add"), "kwargs", {"alpha": 2}), "add: arguments"),
        (lambda g: setattr(node(g, "add"), "args", (node(g, "x"), 1.0)), "add: arguments"),
        (lambda g: g.attributes.update(extra=1), "attributes"),
        (lambda g: g.attributes.update({"layers.0.scale": 4}), "attribute 'layers.0.scale'"),
        (lambda g: g.call_function("neg", ()), "nodes and"),
        (lambda g: node(g, "cond").args[1].output_node.args[0][0].__setattr__("target", "exp"), "cond: arguments"),
    ]:
        other = everything()
        change(other)
        assert words in difference(base, other)
        assert base != other
    assert base != 3
    assert len({base, base}) == 1


def test_one_and_true_are_different_arguments():
    texts = ["1", "1.0", "True", "0.0", "-0.0", "nan", "(1,)", "[1]", "None"]
    graphs = [chain(f"graph {{ %a = f({t})  return %a }}") for t in texts]
    hashes = [fx.content_hash(g) for g in graphs]
    for i, left in enumerate(graphs):
        for j, right in enumerate(graphs):
            assert (left == right) == (i == j)
            assert (hashes[i] == hashes[j]) == (i == j)


def test_hash_does_not_see_names():
    g = everything()
    renamed = everything()
    for index, n in enumerate(renamed.nodes):
        renamed.rename(n, f"other{index}")
        n.meta.clear()
    assert fx.content_hash(g) == fx.content_hash(renamed)
    assert fx.graphs_equal(g, renamed, names=False)
    assert not fx.graphs_equal(g, renamed)


def sized(names, product=False):
    env = ShapeEnv()
    for _ in range(names):
        env.create_symbol(3, "unused")
    n, m = env.create_symbol(8, "x"), env.create_symbol(9, "y")
    g = fx.Graph()
    x = g.placeholder("x", spec=fx.TensorSpec((n, m), fx.float32))
    g.output(g.call_function("view", (x, (n * m,)), spec=fx.TensorSpec((n * m if product else n + m,), fx.float32)))
    return g


def test_hash_does_not_see_symbol_names():
    assert fx.content_hash(sized(0)) == fx.content_hash(sized(9)) != fx.content_hash(sized(0, product=True))


def test_hash_is_the_same_in_every_process():
    folder = os.path.dirname(__file__)
    code = "import graph_samples, lamina_fx; print(lamina_fx.content_hash(graph_samples.everything()))"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == fx.content_hash(everything())


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, fx.Graph.copy, lambda g: pickle.loads(pickle.dumps(g))]
)
@pytest.mark.parametrize("name", SAMPLES)
def test_copies(duplicate, name):
    graph = SAMPLES[name]()
    other = duplicate(graph)
    assert other == graph
    other.lint()
    assert not set(other.nodes) & set(graph.nodes)
    assert [n.meta for n in other.nodes] == [n.meta for n in graph.nodes]
    for inner in (n for n in other.nodes if n.name == "cond"):
        inner.args[1].output_node.args = (None,)
        inner.args[1].attributes["deep"].output_node.args = (3,)
        assert other != graph
        assert graph == SAMPLES[name]()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(random_graphs())
def test_random_copies(graph):
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert fx.content_hash(graph.copy()) == fx.content_hash(graph)


def test_large_graphs_can_be_pickled():
    g = fx.Graph()
    x = g.placeholder("x")
    for _ in range(5000):
        x = g.call_function("neg", (x,))
    g.output(x)
    assert pickle.loads(pickle.dumps(g)) == g


def test_drawing():
    text = fx.to_dot(everything(), name="pic")
    assert text.startswith("digraph pic {")
    assert 'add [label="add(1.5, alpha=-2)\\nfloat32[s0, 4]@(1, s0)"];' in text
    assert "x -> add;" in text
    assert "penwidth=3" in text
    assert 'subgraph cluster_0 { label="no_grad / checkpoint:0 / auto cast"; index; }' in text


def test_import_is_fast_and_needs_nothing():
    code = "import sys; before = {*sys.modules}; import lamina_fx; print(*sys.modules.keys() - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {module.partition(".")[0] for module in run.stdout.split()}
    assert loaded <= {"lamina_fx", *sys.stdlib_module_names}
    assert not loaded & {"inspect", "dataclasses", "pathlib"}, "slow to import"
    code = "import time; s = time.process_time(); import lamina_fx; print(time.process_time() - s)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1.0, "budget: 0.05 s on a quiet machine with compiled modules"


def test_public_names():
    for name in fx.__all__:
        assert getattr(fx, name) is not None
    assert set(fx.__all__) <= set(dir(fx))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fx.nothing
