"""Graph and Node: links, insertion points, order, names."""

from __future__ import annotations

import pytest

import lamina_fx as fx


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


def test_a_copy_names_its_own_nodes_in_meta():
    graph = fx.Graph()
    first, second = graph.placeholder("first"), graph.placeholder("second")
    first.meta["grad_of"], second.meta["grad_of"] = second, first
    copy = graph.copy()
    assert [node.meta["grad_of"] for node in copy.placeholders] == copy.placeholders[::-1]
    assert first.meta["grad_of"] is second
