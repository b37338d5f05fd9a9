"""The text and JSON forms: what is written reads back as the same graph; what is wrong is located."""

from __future__ import annotations

import json

import numpy as np
import pytest
from graph_samples import SAMPLES, everything, random_graphs
from hypothesis import HealthCheck, given, settings
from work import count_calls

import lamina_fx as fx
from lamina_fx.json_format import SCHEMA, GraphFormatError, from_object, to_object
from lamina_fx.structure import difference
from lamina_fx.symbolic import ShapeEnv

QUICK = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("name", SAMPLES)
def test_text_reads_back(name):
    graph = SAMPLES[name]()
    text = fx.print_graph(graph)
    again = fx.parse(text)
    assert difference(again, graph) is None
    assert again == graph
    assert fx.print_graph(again) == text
    assert [n.meta for n in again.nodes] == [n.meta for n in graph.nodes]


@pytest.mark.parametrize("name", SAMPLES)
def test_json_reads_back(name):
    graph = SAMPLES[name]()
    text = fx.to_json(graph)
    again = fx.from_json(text)
    assert difference(again, graph) is None
    assert fx.to_json(again) == text
    assert fx.print_graph(again) == fx.print_graph(graph)


@QUICK
@given(random_graphs())
def test_random_graphs_read_back(graph):
    assert difference(fx.parse(fx.print_graph(graph)), graph) is None
    assert difference(fx.from_json(fx.to_json(graph)), graph) is None


def test_text_of_everything():
    assert fx.print_graph(everything()) == EVERYTHING


EVERYTHING = """\
graph {
  symbol s0 in [0,] hint 8 source "x.shape[0]"
  symbol s1 in [8, 64] step 8 hint 16 source "y"
  symbol u0 in [1, 10] source "nonzero(x)"
  attribute w = array(float32, [2], "AACAPwAAAEA=")
  attribute layers.0.scale = 3
  %x: float32[s0, 4] = placeholder
  %y: int(sym(s1)) = placeholder(16)
  %w: float32[2] = get w
  %scale: int(3) = get layers.0.scale
  %add: float32[s0, 4]@(1, s0) = add(%x, 1.5, alpha=-2) at "model.py":12 forward meta {"from": ("linear", "addmm")}
  %view: float32[2*s0, 2] cuda:1 = view(%add, [sym(2*s0), 2])
  %s: (bfloat16[1, 2], ?, (bool[u0 + 1, 2],)) = split.sizes(%view, (1, sym(u0 + 1)), dim=0)
  %getitem: bfloat16[1, 2] = getitem(%s, 0)
  %index = index(%getitem, (slice(None, sym(u0), None), ..., None, True)) in {no_grad, checkpoint:0, "auto cast"}
  %print = print("say \\"hi\\"\\n\\t\\u00e9", {"k": [1, (2,), {}]}) !print at "dir with space/a.py":1 "<module>"
  %strange_id = "strange id!"(inf, -inf, 1e-30, -0.0, complex(1.0, 2.0), complex64, device("cuda:0"))
  %sum = method sum(%add, 1, keepdim=True)
  %layers_0 = module layers.0(%sum)
  %typed = typed(int64, float8_e4m3fn, spec(float32[s0]), expr(max(s0, 3)), sym(3 <= s0), sym(7))
  %cond = cond(%layers_0, graph {
    attribute deep = graph {
      return None
    }
    %x: float32[s0] = placeholder
    %neg = neg(%x)
    return (%neg,)
  }, graph {
    attribute deep = graph {
      return None
    }
    %x: float32[s0] = placeholder
    %neg = neg(%x)
    return (%neg,)
  }, [%x]) !random
  %copy_to = copy_to(%x, %cond) !write
  return {"r": (%y, %w, %scale, %index, %print, %strange_id, %typed), "n": sym(s0), "none": None}
}"""


def test_reading_makes_symbols():
    env = ShapeEnv()
    graph = fx.parse(EVERYTHING, shape_env=env)
    (x, y) = graph.placeholders
    assert x.spec.shape[0].hint == 8
    assert y.spec.value.hint == 16
    assert env.sources[env.symbol("u0")] == "nonzero(x)"
    assert env.create_symbol(3, "z").expr.name == "s2"
    again = fx.parse(EVERYTHING, shape_env=env)
    assert again.placeholders[0].spec == x.spec


def test_layout_is_free_and_comments_are_skipped():
    graph = fx.parse(
        """
        graph{ # a comment
          %x :float32[2]=placeholder # another
        %y: float32[2] = add( %x ,1 , )
        return( %y, )}""".replace("%x :float32[2]=", "%x: float32[2] = ")
    )
    assert str(graph.output_node.args) == "((y,),)"


def test_arrays():
    graph = fx.Graph()
    graph.attributes["w"] = np.arange(6, dtype=">i4").reshape(2, 3)
    graph.output(graph.get_attr("w"))
    text = fx.print_graph(graph)

    def to_numpy(constant):
        return np.frombuffer(constant.data, constant.dtype.name).reshape(constant.shape)

    again = fx.parse(text, array=to_numpy)
    assert again.attributes["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert again == graph
    assert fx.parse(text) == graph
    assert fx.from_json(fx.to_json(graph), array=to_numpy) == graph
    again.attributes["w"] = again.attributes["w"] + 1
    assert again != graph
    with pytest.raises(ValueError, match=r"float32\[3\] has 12 bytes, got 4"):
        fx.ArrayConstant(fx.float32, (3,), b"abcd")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected 'graph'"),
        ("graph {\n  %x = placeholder\n  %y = add(%z)\n}", "line 3, column 12: no node 'z' before"),
        ("graph {\n  %x = placeholder\n  %y = add(%x, [%z])\n}", "line 3, column 17: no node 'z' before"),
        ("graph { %x = placeholder  %x = placeholder }", "a second node 'x'"),
        ("graph { %x: float31[2] = placeholder }", "bad spec 'float31[2]'"),
        ("graph { %x: float32[2 = placeholder }", "bad spec 'float32[2'"),
        ("graph { %x: float32[2]@(1, 2) = placeholder }", "bad spec"),
        ("graph { %x: float32[s9] = placeholder }", "bad size 's9'"),
        ("graph { %x = add(1 2) }", "line 1, column 20: expected ')' at '2) }'"),
        ("graph { %x = add(a=1, 2) }", "a positional argument behind a keyword argument"),
        ("graph { %x = add(foo) }", "expected a value at 'foo) }'"),
        ("graph { %x = jump }", "expected an operator call"),
        ("graph { %if = add() }", "the node name 'if' is no identifier or taken"),
        ("graph { %x = add()", "expected a node, 'return'"),
        ("graph { return None } more", "expected the end at 'more'"),
        ("graph { return $ }", "cannot read at '$ }'"),
        ("graph { %x = add() in {a b} }", "expected a region"),
        ("graph { symbol s0 in [a,] }", "expected an integer at 'a,] }'"),
        ("graph { %x = index(slice(1)) }", "slice takes three values"),
        ("graph { %x = f(sym(2 }", "no ')' follows"),
    ],
)
def test_parse_errors(text, message):
    with pytest.raises(fx.ParseError) as caught:
        fx.parse(text)
    assert message in str(caught.value)


def test_what_cannot_be_written():
    graph = fx.Graph()
    x = graph.call_function("f", (object,), name="here")
    graph.output(x)
    with pytest.raises(fx.UnprintableError, match="node 'here': a value of type type has no text form"):
        fx.print_graph(graph)
    with pytest.raises(fx.UnprintableError, match="node 'here': a value of type type has no JSON form"):
        fx.to_json(graph)
    assert "f(<<class 'object'>>)" in str(graph)
    assert repr(graph) == "<Graph of 2 nodes>"
    graph = fx.Graph()
    graph.attributes["bad"] = object
    with pytest.raises(fx.UnprintableError, match="attribute 'bad': a value"):
        fx.print_graph(graph)


def test_sources_can_be_left_out():
    assert " at " not in fx.print_graph(everything(), sources=False)
    assert fx.parse(fx.print_graph(everything(), sources=False)) != everything()


# -- JSON ---------------------------------------------------------------------------------------------------


def test_unknown_keys_are_ignored():
    data = to_object(everything())
    data["later"] = {"anything": 1}
    for node in data["nodes"]:
        node["colour"] = "red"
    assert from_object(json.loads(json.dumps(data))) == everything()


def graph_json(**changes):
    return json.dumps({"format": "lamina.graph", "version": 0, "nodes": []} | changes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("[]", "no Lamina graph"),
        ("{", "not JSON"),
        (graph_json(version=99), "version 99 cannot be read; this release reads 0 to 0"),
        (graph_json(version="0"), "version 0 cannot be read"),
        (graph_json(nodes=3), "malformed graph: TypeError"),
        (graph_json(nodes=[{"name": "x", "op": "jump", "target": "x"}]), "unknown kind 'jump'"),
        (graph_json(nodes=[{"name": "if", "op": "placeholder", "target": "x"}]), "no identifier"),
        (graph_json(nodes=[{"name": "o", "op": "output", "target": "o", "args": [{"node": "x"}]}]), "malformed"),
        (
            graph_json(nodes=[{"name": "o", "op": "output", "target": "o", "args": [{"what": "x"}]}]),
            "malformed",
        ),
    ],
)
def test_json_errors(data, message):
    with pytest.raises(GraphFormatError) as caught:
        fx.from_json(data)
    assert message in str(caught.value)


def _conforms(data, schema):
    """A small validator: type, required, properties, items, enum, const, $ref."""
    while "$ref" in schema:
        schema = SCHEMA if schema["$ref"] == "#" else SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert not kinds or any(data is None if k == "null" else isinstance(data, types[k]) for k in kinds), (data, schema)
    assert data in schema.get("enum", [data])
    assert data == schema.get("const", data)
    if isinstance(data, dict):
        assert set(schema.get("required", ())) <= data.keys()
        for key, value in data.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                _conforms(value, inner)
    elif isinstance(data, list) and "items" in schema:
        for value in data:
            _conforms(value, schema["items"])


def test_json_conforms_to_the_schema():
    data = json.loads(fx.to_json(everything()))
    data["nodes"][0]["spec"]["tensor"]["shape"] = [1, "s0"]
    _conforms(data, SCHEMA)
    with pytest.raises(AssertionError):
        _conforms({**data, "version": "0"}, SCHEMA)


def long_graph(length):
    graph = fx.Graph()
    spec = fx.TensorSpec((128, 256), fx.float32)
    a, b = graph.placeholder("x", spec=spec), graph.placeholder("y", spec=spec)
    for _ in range(length):
        a, b = graph.call_function("add", (a, b), spec=spec), a
        a = graph.call_function("sum", (a, (0, 1)), {"keepdim": True}, spec=spec)
    graph.output((a, b))
    return graph


@pytest.mark.parametrize(
    ("stage", "limit"),
    [
        (long_graph, 30),
        (lambda length, graph={}: fx.print_graph(graph.setdefault(length, long_graph(length))), 60),
        (lambda length, text={}: fx.parse(text.setdefault(length, fx.print_graph(long_graph(length)))), 160),
    ],
    ids=["build", "print", "parse"],
)
def test_work_is_proportional_to_nodes(stage, limit):
    for length in (100, 1000):
        stage(length)  # what the first call loads and caches, and the input of the stage
    few, many = count_calls(lambda: stage(100)), count_calls(lambda: stage(1000))
    assert (many - few) / 1800 < limit, f"{(many - few) / 1800:.1f} calls a node"
    assert many < 11 * few


def test_a_long_graph_parses_back():
    graph = long_graph(5000)
    assert fx.parse(fx.print_graph(graph)) == graph


def test_classes_of_array_libraries_are_no_constants():
    graph = fx.Graph()
    graph.output(graph.call_function("cast", (graph.placeholder("x"), np.float64)))
    assert "numpy.float64" in str(graph)  # its dtype, shape and tobytes are descriptors
