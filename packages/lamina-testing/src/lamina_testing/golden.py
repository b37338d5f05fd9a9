"""Golden files: text that a test compares with a file beside it, and that ``--update-golden`` writes anew.

A pytest plugin: put ``pytest_plugins = ["lamina_testing.golden"]`` into the top ``conftest.py``; then

    def test_kernel(golden):
        golden("softmax.cpp", generated_text)

compares with ``golden/softmax.cpp`` in the folder of the test file. In CI (the variable ``CI`` is set) nothing is
ever written.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["compare_golden", "golden", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)`` compares ``text`` with ``golden/<name>`` beside the test's file."""
    folder = Path(request.path).parent / "golden"
    update = bool(request.config.getoption("--update-golden"))
    return lambda name, text: compare_golden(folder / name, text, update=update)


def compare_golden(path: Path, text: str, *, update: bool = False) -> None:
    """Compare ``text`` with the file, or write it.

    Raises:
        AssertionError: they differ (the message is a diff), or there is no such file; says how to update.
        RuntimeError: ``update`` while the variable CI is set.
    """
    if not text.endswith("\n"):
        text += "\n"
    if update:
        if os.environ.get("CI"):
            raise RuntimeError(
                "golden files are not updated in CI; run the test with --update-golden and review the change"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        raise AssertionError(f"there is no golden file {path.name}; run with --update-golden to write it")
    expected = path.read_text(encoding="utf-8")
    if expected != text:
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), path.name, "now", lineterm="")
        raise AssertionError(
            "differs from the golden file; if that is right, run with --update-golden\n" + "\n".join(lines)
        )
