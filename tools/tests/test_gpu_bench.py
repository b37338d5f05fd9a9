"""The table of ``tools/gpu/bench.py``, its rows, and the script that builds from source."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

GPU = Path(__file__).resolve().parents[1] / "gpu"


def load(name: str) -> Any:
    sys.path.insert(0, str(GPU))
    try:
        spec = importlib.util.spec_from_file_location(f"gpu_{name}", GPU / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(GPU))


def test_the_table_has_a_line_for_each_row_and_says_what_failed() -> None:
    found = {
        "softmax|lamina compiled": {
            "us": 70.0, "first_s": 0.5, "moved": 268435456, "formula": "x, out", "operations": 0, "target": 69,
            "right": False,
        },
        "softmax|torch compiled": {"us": 160.0, "first_s": 2.0},
        "mlp|lamina compiled": {"failed": "RuntimeError: no"},
    }  # fmt: skip
    lines = load("bench").table(found, ["softmax", "mlp"]).splitlines()
    assert len(lines) == 4
    assert "70.0 BAD us" in lines[1] and "160.0 us" in lines[1] and "3.83 TB/s (x, out)" in lines[1]
    assert "2.29," in lines[1] and "-" in lines[2].split("mlp")[1]
    assert lines[3].endswith("geometric mean 2.29, least 2.29")


def test_a_ceiling_has_no_ratio() -> None:
    found = {"copy|lamina compiled": {"us": 70.0, "ceiling": True}, "copy|torch compiled": {"us": 160.0}}
    assert len(load("bench").table(found, ["copy"]).splitlines()) == 2


def test_the_set_up_script_is_a_shell_script() -> None:
    subprocess.run(["sh", "-n", str(GPU / "setup.sh")], check=True)
    subprocess.run(["bash", "-n", str(GPU / "setup.sh")], check=True)


def test_every_row_says_how_its_bytes_or_operations_are_counted() -> None:
    assert len(load("rows").ROWS) >= 16
