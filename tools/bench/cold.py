"""First-call times: a new process, empty caches (cold), then a new process with the caches kept (warm)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["CASES", "cold_starts"]

CASES = ("sin(x*2+1).sum", "GPT block forward + backward", "4 transformer layers forward + backward")
HERE = Path(__file__).resolve().parent


def cold_starts(interpreters: dict[str, str]) -> int:
    """Print a table of seconds from calling ``compile`` to the end of the first call."""
    print("seconds from compile() to the end of the first call: empty caches / caches kept, in a new process")
    for case in CASES:
        print(case, flush=True)
        for engine in ("lamina", "torch.compile", "jax.jit"):
            if engine in interpreters:
                cold, warm = measure(engine, interpreters[engine], case)
                print(f"  {engine:14} {cold:>8} / {warm:>8}", flush=True)
    return 0


def measure(engine: str, python: str, case: str) -> tuple[str, str]:
    """Cold and warm seconds as text, or "failed"."""
    folder = tempfile.mkdtemp(prefix="lamina-bench-")
    environment = {
        **os.environ,
        "LAMINA_CACHE_DIR": f"{folder}/lamina",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "TRITON_CACHE_DIR": f"{folder}/triton",
        "TMPDIR": folder,
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    try:
        return tuple(_once(engine, python, case, environment) for _ in range(2))  # type: ignore[return-value]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _once(engine: str, python: str, case: str, environment: dict[str, str]) -> str:
    command = [python, str(HERE / "cold_worker.py"), engine, case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return f"{float(lines[-1]):.2f}" if done.returncode == 0 and lines else "failed"
