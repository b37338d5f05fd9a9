"""Random programs on the stub device, their Triton kernels interpreted: results, gradients and written inputs.

``LAMINA_RANDOM_PROGRAMS`` says how many, ``LAMINA_RANDOM_SEED`` which. Needs triton; `nox -s triton` runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")
HERE = Path(__file__).resolve().parent
COUNT = int(os.environ.get("LAMINA_RANDOM_PROGRAMS", "120"))
SEED = os.environ.get("LAMINA_RANDOM_SEED", "0")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++ to build the stub with")
    target = tmp_path_factory.mktemp("stub") / "libcuda_stub.so"
    source = HERE.parent / "packages" / "lamina" / "tests" / "gpu" / "stub_cuda.cpp"
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return target


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
@pytest.mark.parametrize("tiles", ["usual", "small"])
def test_random_programs_on_cuda_tensors(tiles: str, sizes: str, library: Path) -> None:
    command = [sys.executable, str(HERE / "interpreted_programs.py"), str(library), str(-(-COUNT // 24)), SEED]
    result = subprocess.run([*command, tiles, sizes], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    report: dict[str, str] = json.loads(result.stdout.splitlines()[-1])
    assert not report, f"seed {SEED}, batches {', '.join(report)}:\n" + "\n".join(report.values())
