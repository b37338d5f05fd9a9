"""The report names what was captured and generated, with its figures, and fetches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lamina


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    lamina.compiler.reset()
    yield
    lamina.compiler.reset()


class Balance(HTMLParser):
    """Counts open tags that have to be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "html", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(tmp_path: Path, measure: bool) -> str:
    @lamina.compile
    def f(x: lamina.Tensor, w: lamina.Tensor) -> lamina.Tensor:
        return lamina.softmax(x @ w, dim=-1)

    f(lamina.ones(8, 16), lamina.ones(16, 32))
    text = lamina.compiler.write_report(tmp_path / "report.html", measure=measure).read_text()
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    return text


def test_page_shows_stages_kernels_and_code(tmp_path: Path) -> None:
    text = page(tmp_path, measure=False)
    for expected in ("captured graph", "joint graph", "softmax", "fused operators", "lm_exp", "test_report.py:"):
        assert expected in text
    assert "http" not in text and "<script" not in text


def test_measured_page_says_where_time_goes(tmp_path: Path) -> None:
    text = page(tmp_path, measure=True)
    assert "workspace, one for all temporaries" in text and "Gflop/s" in text and "product 1 of 8x16x32" in text
