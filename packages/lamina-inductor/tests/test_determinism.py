"""The same graph gives the same program in every process, whatever the seed of Python's hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib
import numpy as np
from lamina_inductor.inspect import format_kernel, format_program
from random_graphs import draw
from tracing import compiled, trace
from lamina_inductor.schedule.program import build_program
digest = hashlib.sha256()
for seed in range(40):
    rng = np.random.default_rng(seed)
    fn, arrays, _ = draw(rng, 12)
    graph, _ = trace(fn, *arrays)
    program = build_program(graph)
    digest.update(format_program(program).encode())
    for kernel in program.kernels:
        digest.update(format_kernel(kernel).encode())
print(digest.hexdigest())
"""


def digest(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    folder = Path(__file__).parent
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_programs_do_not_depend_on_hashes() -> None:
    assert digest("1") == digest("2")
