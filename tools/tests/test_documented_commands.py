"""The commands that the documentation names select tests, and the sessions and files are there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("packages/*/README.md"))]
PACKAGES = [path.name for path in ROOT.glob("packages/*")]


def found(pattern: str) -> list[str]:
    return sorted({text for page in PAGES for text in re.findall(pattern, page.read_text(), re.MULTILINE)})


COMMANDS = found(r"(?:^\.venv/bin/python -m |`)(pytest .+?)(?:`|\s+#|$)")


def test_there_are_some() -> None:
    assert len(COMMANDS) > 3


@pytest.mark.parametrize("command", COMMANDS)
def test_pytest_selects_something(command: str) -> None:
    listing = [sys.executable, "-m", *shlex.split(command), "--collect-only", "-q"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]


@pytest.mark.parametrize("session", found(r"nox -s (\w+)"))
def test_the_session_is_there(session: str) -> None:
    assert re.search(rf"^def {session}\(", (ROOT / "noxfile.py").read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", found(r"\b((?:tools|tests_integration|packages|docs|tests)/[\w/.-]+\.(?:py|md|sh))\b"))
def test_the_file_is_there(path: str) -> None:
    assert (ROOT / path).exists() or any((ROOT / "packages" / package / path).exists() for package in PACKAGES)
