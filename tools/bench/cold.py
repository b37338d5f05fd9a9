"""First-call times: a new process, empty caches (cold), then a new process with the caches kept (warm).

Imports of the engine are not counted, and Python's own bytecode files exist: a process that only imports the engine
runs first. Beside wall time stands processor time (this process and its compilers'), which a busy machine disturbs
less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["CASES", "cold_starts"]

CASES = (
    "sin(x*2+1).sum",
    "GPT block forward + backward",
    "4 transformer layers forward + backward",
    "GPT training step",
)
HERE = Path(__file__).resolve().parent


def cold_starts(interpreters: dict[str, str], only: str = "", repeats: int = 1) -> int:
    """Print a table of seconds from calling ``compile`` to the end of the first call; least of ``repeats``."""
    print("seconds from compile() to the end of the first call, in a new process: empty caches / caches kept")
    print("(in brackets: processor seconds of the process and of the compilers that it starts)")
    engines = [name for name in ("lamina", "torch.compile", "jax.jit") if name in interpreters]
    for case in CASES:
        if only not in case:
            continue
        print(case, flush=True)
        for engine in engines:
            if case == "GPT training step" and engine != "lamina":
                continue  # the demo's program; the rivals have none
            cold, warm = measure(engine, interpreters[engine], case, repeats)
            print(f"  {engine:14} {cold:>14} / {warm:>14}", flush=True)
    return 0


def measure(engine: str, python: str, case: str, repeats: int = 1) -> tuple[str, str]:
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
        "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times: tuple[list[tuple[float, float]], ...] = ([], [])
    try:
        _once(engine, python, "imports", environment)
        for _ in range(repeats):
            for name in os.listdir(folder):
                if name != "bytecode":
                    shutil.rmtree(Path(folder, name), ignore_errors=True)
            for kept in times:
                found = _once(engine, python, case, environment)
                if found is None:
                    return "failed", "failed"
                kept.append(found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tuple(f"{min(t[0] for t in kept):.2f} ({min(t[1] for t in kept):.2f})" for kept in times)  # type: ignore[return-value]


def _once(engine: str, python: str, case: str, environment: dict[str, str]) -> tuple[float, float] | None:
    command = [python, str(HERE / "cold_worker.py"), engine, case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        if case != "imports":
            print(done.stderr.strip().rpartition("\n")[2])
        return None
    wall, processor = map(float, lines[-1].split())
    return wall, processor
