"""Equality and hash of graphs; copying, pickling, drawing; what the package exports."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest
from graph_samples import SAMPLES, everything, random_graphs
from hypothesis import HealthCheck, given, settings

import lamina_fx as fx
from lamina_fx.structure import difference
from lamina_fx.symbolic import ShapeEnv


def chain(text="graph { %x = placeholder  %a = neg(%x)  %b = add(%a, %x)  return %b }"):
    return fx.parse(text)


def names(graph):
    return [n.name for n in graph.nodes]


def node(graph, name):
    return next(n for n in graph.nodes if n.name == name)


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


def test_import_needs_nothing_and_nothing_slow():
    code = "import sys; before = {*sys.modules}; import lamina_fx; print(*sys.modules.keys() - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {module.partition(".")[0] for module in run.stdout.split()}
    assert loaded <= {"lamina_fx", *sys.stdlib_module_names}
    assert not loaded & {"inspect", "dataclasses", "pathlib"}, "slow to import"


def test_public_names():
    for name in fx.__all__:
        assert getattr(fx, name) is not None
    assert set(fx.__all__) <= set(dir(fx))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fx.nothing
