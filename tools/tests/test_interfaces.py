"""The dumped interfaces are those of the code; a difference is shown as a diff that says what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import interfaces


@pytest.mark.parametrize(("owner", "name"), interfaces.DUMPS, ids="/".join)
def test_dump_is_the_file(owner: str, name: str) -> None:
    path = interfaces.path_of(owner, name)
    assert path.exists(), f"{path} is missing: run python tools/interfaces.py --update"
    text = interfaces.DUMPS[owner, name]()
    assert path.read_text() == text, interfaces.differences(path, text)


def test_dumps_are_the_same_twice() -> None:
    for dump in interfaces.DUMPS.values():
        assert dump() == dump()


def test_a_difference_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "ROOT", tmp_path)
    path = tmp_path / "graph-v0.txt"
    path.write_text("node kinds: a\n")
    told = interfaces.differences(path, "node kinds: a, b\n")
    assert "-node kinds: a" in told and "+node kinds: a, b" in told and "--update" in told
