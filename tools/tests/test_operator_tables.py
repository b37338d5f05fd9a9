"""The operator tables say what the registry says."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import operator_tables

from lamina_prims import operator


def test_the_page_is_up_to_date() -> None:
    assert operator_tables.main(["--check"]) == 0


def test_rows_say_where_gradients_come_from_and_what_is_in_place() -> None:
    named = [operator("tanh"), operator("softplus"), operator("matmul")]
    header, _, tanh, softplus, matmul = operator_tables.rows(named)
    assert header.startswith("| names | operator | kind")
    assert "| `tanh` | primitive | rule | `tanh_` |" in tanh
    assert "`nn.functional.softplus`" in softplus and "| composite |" in softplus
    assert matmul.endswith("| composite | body |  |  |") or matmul.endswith("rule |  |  |")
