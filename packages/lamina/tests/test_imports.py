"""What importing ``lamina`` loads."""

from __future__ import annotations

import os
import subprocess
import sys

FOREIGN = ("cupy", "cupyx", "cupy_backends", "cuda", "triton", "torch", "pynvml")


def test_no_library_for_gpus_before_a_device_is_used() -> None:
    program = (
        "import sys, lamina\n"
        "lamina.ones(2).add(1), lamina.cuda.is_available(), lamina.manual_seed(0)\n"
        f"found = [m for m in sys.modules if m.partition('.')[0] in {FOREIGN!r}]\n"
        "assert not found, found\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "LAMINA_CUDA_PROVIDER"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
