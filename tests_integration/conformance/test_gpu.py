"""The whole corpus on a GPU, marked ``gpu``: each test a part of ``tools/gpu/conformance.py``; skipped without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lamina

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "gpu" / "conformance.py"
PARTS = ("features", "eager", "compiled", "graphs", "programs", "models")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        "LAMINA_CUDA_PROVIDER" in os.environ or not lamina.cuda.is_available(), reason="there is no GPU"
    ),
]


@pytest.mark.parametrize("part", PARTS)
def test_nothing_differs_on_the_gpu(part: str) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--parts", part], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
