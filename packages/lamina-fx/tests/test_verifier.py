"""What the verifier finds, and what it accepts."""

from __future__ import annotations

import pytest
from graph_samples import SAMPLES
from sample_operators import resolver

import lamina_fx as fx


def chain(text="graph { %x = placeholder  %a = neg(%x)  %b = add(%a, %x)  return %b }"):
    return fx.parse(text)


def node(graph, name):
    return next(n for n in graph.nodes if n.name == name)


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
