"""The README's example and the examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import lamina_fx

ROOT = Path(__file__).parents[3]
MODULES = ["lamina_fx", *[m.name for m in pkgutil.walk_packages(lamina_fx.__path__, "lamina_fx.")]]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_readme():
    text = (ROOT / "packages" / "lamina-fx" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})


def test_page():
    page = ROOT / "docs" / "packages" / "lamina-fx.md"
    if not page.exists():
        pytest.skip("the documentation is not part of an installed package")
    text = page.read_text()
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner()
    runner.run(parser.get_doctest(text, {}, "lamina-fx.md", str(page), 0))
    assert runner.failures == 0
    (graph,) = re.findall(r"^    graph \{.*?^    \}", text, re.DOTALL | re.MULTILINE)
    assert str(lamina_fx.parse(graph)).split() == graph.split()
