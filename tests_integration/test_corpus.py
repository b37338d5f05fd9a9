"""Graphs that were stored by earlier versions still parse, verify and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lamina_fx import Graph, Interpreter, TensorSpec, from_json, parse, print_graph, verify
from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype

FILES = sorted((Path(__file__).parent / "corpus").glob("*.graph"))
IMPERATIVE = "captured"


def values(graph: Graph) -> list[np.ndarray]:
    specs = [node.spec for node in graph.placeholders]
    assert all(isinstance(s, TensorSpec) for s in specs)
    return [np.ones(s.shape, numpy_dtype(s.dtype)) for s in specs]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_text_and_json_are_read_as_one_graph(path: Path) -> None:
    graph = parse(path.read_text())
    assert graph == from_json(path.with_suffix(".json").read_text())
    assert parse(print_graph(graph)) == graph


@pytest.mark.parametrize("path", [p for p in FILES if IMPERATIVE not in p.stem], ids=lambda p: p.stem)
def test_functional_graphs_verify_and_run(path: Path) -> None:
    graph = parse(path.read_text())
    verify(graph, operator)
    results = Interpreter(graph, operator).run(*values(graph))
    for result, node in zip(results, graph.output_node.args[0], strict=True):
        assert tuple(result.shape) == tuple(node.spec.shape)


def test_the_corpus_is_there() -> None:
    assert len(FILES) >= 12
