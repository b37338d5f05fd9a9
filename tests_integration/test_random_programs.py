"""Random Python functions: eager = compiled, results, gradients and written inputs.

A few hundred in CI, several to a function because compiling takes most of the time. The long mode:
``LAMINA_RANDOM_PROGRAMS=5000 LAMINA_RANDOM_SEED=7 pytest tests_integration/test_random_programs.py``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from random_programs import Program, join, random_program

import lamina

TOGETHER = 8
COUNT = int(os.environ.get("LAMINA_RANDOM_PROGRAMS", "240"))
SEED = int(os.environ.get("LAMINA_RANDOM_SEED", "0"))


def run(function: Any, program_groups: list[Program], device: str = "cpu") -> list[tuple[Any, ...]]:
    """For each program: its results, what its inputs hold afterwards, and the gradients of its leaves."""
    inputs = [p.tensors(device) for p in program_groups]
    results = function(*(t for group in inputs for t in group))
    roots = [r for group in results for r in group if r.requires_grad and not r.is_leaf]
    if roots:
        sum((r * 0.7).sum() for r in roots).backward()
    return [
        (
            [r.detach().cpu().numpy() for r in group],
            [(r.requires_grad, r.dtype) for r in group],
            [t.detach().cpu().numpy() for t in given],
            [None if not t.is_leaf or t.grad is None else t.grad.cpu().numpy() for t in given],
        )
        for group, given in zip(results, inputs, strict=True)
    ]


def differences(eager: tuple[Any, ...], compiled: tuple[Any, ...]) -> list[str]:
    """What differs, in words."""
    found = [] if eager[1] == compiled[1] else [f"results are {compiled[1]}, in eager {eager[1]}"]
    for what, place in (("result", 0), ("input", 2), ("gradient", 3)):
        for k, (a, b) in enumerate(zip(eager[place], compiled[place], strict=True)):
            if a is None and b is not None and not b.any():
                continue  # a leaf that reaches no used result: one node for all of a graph's results gives zeros
            if (a is None) != (b is None):
                found.append(f"{what} {k} is {b}, in eager {a}")
            elif a is not None and not np.allclose(a, b, rtol=2e-3, atol=2e-3, equal_nan=True):
                found.append(f"{what} {k} is\n{b}\nin eager\n{a}")
    return found


def compiled_of(programs: list[Program], backend: str | None, **how: Any) -> tuple[Any, Any]:
    """One function of these programs, plain and compiled."""
    space: dict[str, Any] = {"lamina": lamina}
    exec(compile(join(programs), "<random programs>", "exec"), space)
    return space["program"], lamina.compile(space["program"], backend=backend, **how)


@pytest.mark.filterwarnings("error::lamina_dynamo.capture.CaptureWarning")
@pytest.mark.parametrize("batch", range(-(-COUNT // TOGETHER)))
def test_random_programs(batch: int) -> None:
    rng = np.random.default_rng([SEED, batch])
    programs = [random_program(rng, k) for k in range(TOGETHER)]
    backend = "cpp" if batch % 3 == 0 else "reference"
    plain, compiled = compiled_of(programs, backend)
    for want, have, program in zip(run(plain, programs), run(compiled, programs), programs, strict=True):
        found = differences(want, have)
        assert not found, f"{backend}, seed {SEED}, batch {batch}:\n{program}\n" + "\n".join(found)
