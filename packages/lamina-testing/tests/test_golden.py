"""Golden files: compared, written on request only, never in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina_testing.golden import compare_golden


def test_missing_then_written_then_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    path = tmp_path / "golden" / "a.txt"
    with pytest.raises(AssertionError, match="--update-golden"):
        compare_golden(path, "one")
    compare_golden(path, "one", update=True)
    compare_golden(path, "one")
    with pytest.raises(AssertionError, match=r"-one\n\+two"):
        compare_golden(path, "two")


def test_ci_never_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(RuntimeError, match="CI"):
        compare_golden(tmp_path / "a.txt", "one", update=True)
    assert not (tmp_path / "a.txt").exists()
