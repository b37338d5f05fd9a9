"""tools/pythons.py: which interpreter stands for a version."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pythons
import wheelhouse


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH and home."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    return tmp_path


def fake(path: Path, answer: str, status: int = 0) -> str:
    """An interpreter that says it is what ``answer`` says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}'\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_nothing_is_found_on_an_empty_machine(machine: Path) -> None:
    assert pythons.find_python("3.99") is None


def test_the_running_interpreter_stands_for_its_version(machine: Path) -> None:
    assert pythons.find_python(f"{sys.version_info.major}.{sys.version_info.minor}") == sys.executable


def test_path_comes_before_pyenv_and_the_newest_release_before_older_ones(machine: Path) -> None:
    fake(machine / ".pyenv/versions/3.99.9/bin/python", "cpython 3.99 ")
    newer = fake(machine / ".pyenv/versions/3.99.10/bin/python", "cpython 3.99 ")
    assert pythons.find_python("3.99") == newer
    on_path = fake(machine / "bin/python3.99", "cpython 3.99 ")
    assert pythons.find_python("3.99") == on_path


@pytest.mark.parametrize(
    ("answer", "status"), [("pyenv: not found", 127), ("cpython 3.98 ", 0), ("cpython 3.99 t", 0), ("pypy 3.99 ", 0)]
)
def test_what_is_no_such_python_is_passed_over(machine: Path, answer: str, status: int) -> None:
    fake(machine / "bin/python3.99", answer, status)
    assert pythons.find_python("3.99") is None
    uv = fake(machine / ".local/share/uv/python/cpython-3.99.0-linux-x86_64-gnu/bin/python3.99", "cpython 3.99 ")
    assert pythons.find_python("3.99") == uv


def test_every_chosen_test_exists() -> None:
    assert all((pythons.ROOT / path).exists() for tests in pythons.TESTS for path in tests)


def test_the_copy_that_a_wheel_is_built_from_has_nothing_built(tmp_path: Path) -> None:
    package = tmp_path / "package"
    for name in (
        "pyproject.toml",
        "src/p/a.py",
        "src/p/b.cpython-39.so",
        "src/p.egg-info/PKG-INFO",
        "build/lib/old.py",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    copy = wheelhouse.copy_sources(package, tmp_path / "copy")
    found = {str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()}
    assert found == {"pyproject.toml", os.path.join("src", "p", "a.py")}
