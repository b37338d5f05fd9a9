from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from triton_corpus import CASES, OPERATORS
from triton_float8 import FLOAT8_CASES
from triton_tiles import ROW_CASES, TILE_CASES

pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")


@pytest.fixture(scope="module")
def report() -> dict[str, str | None]:
    """What the interpreter says of every case; its patches hold for a whole process, so it has one of its own."""
    script = Path(__file__).parent / "triton_interpreted.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [*CASES, *FLOAT8_CASES, *TILE_CASES, *ROW_CASES, "bad index"])
def test_kernels_compute_what_the_references_do(name: str, report: dict[str, str | None]) -> None:
    assert report[name] is None, report[name]


@pytest.mark.parametrize("id", OPERATORS)
def test_primitives_compute_what_the_references_do(id: str, report: dict[str, str | None]) -> None:
    assert report[id] is None, report[id]
