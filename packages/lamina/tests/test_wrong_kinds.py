"""Public functions given values of wrong kinds: a TypeError that says what they take and what they got."""

from __future__ import annotations

import pytest

import lamina
import lamina_aot as aot
import lamina_fx as fx
import lamina_prims as prims

GRAPH = fx.Graph()
JOINT = "a JointGraph (trace_joint gives one)"
CASES = [
    (fx.print_graph, "a Graph"),
    (fx.to_json, "a Graph"),
    (fx.content_hash, "a Graph"),
    (fx.python_code, "a Graph"),
    (fx.to_dot, "a Graph"),
    (fx.verify, "a Graph"),
    (fx.Transformer, "a Graph"),
    (fx.Interpreter, "a Graph"),
    (lambda bad: fx.graphs_equal(bad, GRAPH), "a Graph"),
    (lambda bad: fx.graphs_equal(GRAPH, bad), "a Graph"),
    (lambda bad: fx.GraphModule({}, bad), "a root and a Graph"),
    (lambda bad: fx.ArrayConstant(bad, (1,), b"\0"), "a dtype, a shape and bytes"),
    (lambda bad: fx.TensorSpec((2,), bad), "a dtype of lamina_fx"),
    (lambda bad: fx.TensorSpec((2,), fx.float32, device=bad), "a Device"),
    (fx.ScalarSpec, "the type"),
    (prims.decompose, "a Graph"),
    (lambda bad: prims.decompose(GRAPH, keep=bad), "a set of operator ids"),
    (aot.partition, JOINT),
    (lambda bad: aot.trace_joint(bad, []), "a Graph"),
    (lambda bad: aot.gradient_graph(bad, bad), "a Graph"),
    (lambda bad: aot.gradient_graph(GRAPH, bad), JOINT),
    (lambda bad: aot.compile_captured(bad, [], lambda graph, name: None), "a Graph"),
    (lambda bad: aot.compile_captured(GRAPH, [], bad), "a function compile_graph(graph, name)"),
    (lamina.compiler.explain, "a function or a module"),
]
NO_TEXT = [
    (fx.from_json, "JSON text"),
    (fx.wrap, "a function or the name of one"),
    (prims.operator, "an operator's id"),
    (lambda bad: prims.resolve(bad, (), {}), "an operator's name"),
    (lambda bad: fx.TensorSpec(bad, fx.float32), "a shape"),
]
"""Functions that take text, too."""


def _check(function, words: str, bad: object) -> None:
    with pytest.raises(TypeError) as caught:
        function(bad)
    message = str(caught.value)
    assert words in message and repr(bad) in message


@pytest.mark.parametrize("bad", [3, "nope", None], ids=repr)
@pytest.mark.parametrize(("function", "words"), CASES)
def test_a_wrong_kind_is_named(function, words: str, bad: object) -> None:
    _check(function, words, bad)


@pytest.mark.parametrize(("function", "words"), NO_TEXT)
def test_a_number_where_text_is_taken_is_named(function, words: str) -> None:
    _check(function, words, 3)


def test_a_device_is_named_or_numbered() -> None:
    assert str(fx.Device(1)) == "cuda:1"
    _check(fx.Device, "a device's name", 1.5)


def test_names_that_mean_nothing_are_named() -> None:
    with pytest.raises(KeyError, match="no operator 'nope'"):
        prims.operator("nope")
    with pytest.raises(NameError, match="no function 'nope'"):
        fx.wrap("nope")
    with pytest.raises(ValueError, match="unknown device type 'nope'"):
        fx.Device("nope")


def test_as_many_inputs_as_placeholders() -> None:
    with pytest.raises(TypeError, match="0 placeholders, but 1 inputs"):
        aot.trace_joint(GRAPH, [lamina.ones(2)])
