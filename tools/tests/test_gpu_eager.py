"""tools/gpu/eager.py on the stub device: it runs, counts, and says what fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/gpu/eager.py"), "--stub", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_operators_are_compared(tmp_path: Path) -> None:
    done = run("--only", "add", "svd", "--log", str(tmp_path / "log.json"))
    assert done.returncode == 0 and "operators 2 of 2" in done.stdout and done.stdout.endswith("all good\n")
    assert {r["id"] for r in json.loads((tmp_path / "log.json").read_text())} == {"add", "svd"}


def test_programs_run() -> None:
    done = run("--programs")
    assert done.returncode == 0, done.stdout
    assert "programs 12" in done.stdout and "FAILED" not in done.stdout


def test_tests_of_tensors_run_on_the_device() -> None:
    sources = [str(ROOT / "packages" / name / "src") for name in ("lamina-fx", "lamina-prims", "lamina-tensor")]
    path = os.pathsep.join([str(ROOT / "tools/gpu"), *sources])
    tests = str(ROOT / "packages/lamina-tensor/tests/test_optim.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "on_device", tests]
    environment = {**os.environ, "PYTHONPATH": path, "LAMINA_CUDA_PROVIDER": "stub"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout
