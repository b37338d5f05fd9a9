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
from lamina_prims import ops

def columns(x, y):
    a, b, c, d = ops.sum(x, 0), ops.sum(y, 0), ops.amax(x, 0), ops.amin(y, 0)
    return ops.div(ops.sub(x, a), ops.exp(b)), ops.div(ops.mul(y, c), d), ops.div(ops.add(x, ops.tanh(c)), ops.cos(a))

digest = hashlib.sha256()
x = np.ones((40, 5000), np.float32)
drawn = [draw(np.random.default_rng(seed), 12)[:2] for seed in range(40)]
for fn, arrays in [*drawn, (columns, (x, x + 1))]:
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
