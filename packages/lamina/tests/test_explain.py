"""``explain`` and ``summary``: what they print, and that explaining leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import lamina
from lamina.records import LIMIT, new_record
from lamina.wiring import _identifier


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    lamina.compiler.reset()
    yield
    lamina.compiler.reset()


def prints_a_number(x: Any) -> Any:
    total = x.sum()
    print("total", total.item())
    return x * 2 + x * 3


def test_a_short_summary_first_and_full_graphs_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    told = lamina.explain(prints_a_number)(lamina.ones(3))
    assert capsys.readouterr().out == "total 3.0\n"
    lines = str(told).splitlines()
    assert lines[0] == "2 graphs, 1 break, 2 kernels"
    assert "test_explain.py:24 in prints_a_number: str() needs the number that .item() gives" in lines[1]
    assert lines[2].startswith("graph 0: prints_a_number_")
    assert "(test_explain.py:23)" in lines[2]
    (second,) = [line for line in lines if line.startswith("graph 1: ")]
    assert "(test_explain.py:25): 3 operators: mul x2, add" in second
    assert any(line.startswith("  kernel ") and "mul" in line for line in lines)
    assert "%x" not in str(told)
    assert "%x: float32[3] = placeholder" in str(told.graphs[0])
    assert "%x" not in repr(told.graphs[0])


def test_one_of_each_is_singular() -> None:
    assert str(lamina.explain(lambda x: x * 2)(lamina.ones(3))).startswith("1 graph, 0 breaks, 1 kernel\n")


def test_explaining_is_not_counted() -> None:
    lamina.compile(lambda x: x + 1)(lamina.ones(2))
    before, kept = lamina.compiler.summary(), lamina.compiler.records()
    lamina.explain(prints_a_number)(lamina.ones(3))
    assert lamina.compiler.summary() == before
    assert lamina.compiler.records() == kept
    with pytest.raises(RuntimeError, match="do not broadcast"):
        lamina.explain(lambda x: x + lamina.ones(7))(lamina.ones(3))
    assert lamina.compiler.summary() == before


def test_the_summary_prints_lines() -> None:
    lamina.compile(prints_a_number)(lamina.ones(3))
    lines = str(lamina.compiler.summary()).splitlines()
    assert lines[0] == "2 graphs, 1 break, 0 recompiles, 2 kernels"
    assert lines[1].startswith("break: ")
    assert len(lines) == 2


def test_times_of_parts_are_within_the_total() -> None:
    w = lamina.ones(3).requires_grad_()
    lamina.compile(lambda x: (x * w).sin().sum())(lamina.ones(3)).backward()
    (record,) = lamina.compiler.records()
    assert set(record.artifacts) >= {record.name, f"{record.name}_backward"}
    assert record.seconds["total"] >= record.seconds["backend"] + record.seconds["decompose"]


@pytest.mark.parametrize(
    ("qualname", "name"),
    [("make.<locals>.step", "step"), ("Net.forward", "Net_forward"), ("f.<locals>.<lambda>", "lambda"), ("", "graph")],
)
def test_graphs_are_called_as_the_user_calls_the_function(qualname: str, name: str) -> None:
    assert _identifier(qualname) == name


def test_counts_go_on_where_records_make_way() -> None:
    lamina.compiler.reset()
    for _ in range(LIMIT + 3):
        new_record("graph")
    assert lamina.compiler.summary().graphs == LIMIT + 3
    assert len(lamina.compiler.records()) == LIMIT
    lamina.compiler.reset()
    assert lamina.compiler.summary().graphs == 0
