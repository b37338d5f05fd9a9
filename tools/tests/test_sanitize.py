"""tools/sanitize.py: what is copied, what is loaded first, and that nothing else is tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sanitize


def test_copies_have_sources_and_nothing_built(tmp_path: Path) -> None:
    folders = sanitize.copy(tmp_path)
    assert (tmp_path / "lamina-tensor" / "setup.py").exists()
    assert (tmp_path / "lamina-tensor" / "src" / "lamina_tensor" / "csrc" / "tensor.c").exists()
    assert not list(tmp_path.rglob("*.so")) and {f.parent.name for f in folders} >= set(sanitize.TESTS)


def test_a_compiler_without_the_libraries_is_named(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')
    compiler.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"has no libasan\.so"):
        sanitize.preloaded(str(compiler))


def test_other_extensions_are_not_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "HOME", tmp_path)
    with pytest.raises(RuntimeError, match="would be tested instead"):
        sanitize.check_what_is_loaded(dict(os.environ))


def test_the_tests_that_it_runs_exist() -> None:
    for dist, names in sanitize.TESTS.items():
        assert all((sanitize.ROOT / "packages" / dist / "tests" / name).exists() for name in names)
