"""The programs of tests_integration/programs on a GPU: eager and compiled, against the numbers that PyTorch gave.

``check_program(how, name)`` runs one with everything on the device: tensors are made there by default.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import lamina

__all__ = ["check_program", "names"]

PROGRAMS = Path(__file__).resolve().parents[2] / "tests_integration" / "programs"
LOOSE = {"bfloat16_training": 0.02}
"""Tolerances of programs that compute in half types; otherwise ``TOLERANCE``."""
TOLERANCE = 2e-3
LEFT_OUT = {
    "autocast_training": "autocast('cpu')",
    "graph_network": "the constructor Tensor(...), which is the CPU's",
    "legacy_style": "FloatTensor(...), which is the CPU's",
}
"""Programs about the CPU, and why."""


def names() -> list[str]:
    """The programs that can run on a GPU as they are."""
    return sorted({path.stem for path in PROGRAMS.glob("*.py")} - {"formula"} - set(LEFT_OUT))


def check_program(how: str, name: str) -> str | None:
    """What is wrong with a program's results; None when nothing is. ``how``: ``"eager"`` or ``"compiled"``."""
    from on_device import everything_there

    if str(PROGRAMS) not in sys.path:
        sys.path.append(str(PROGRAMS))
    with everything_there(lamina):
        results = importlib.import_module(name).run(lamina.compile if how == "compiled" else lambda function: function)
        lamina.cuda.synchronize()
        have = [_flat(result) for result in results]
    wanted = json.loads((PROGRAMS / "expected.json").read_text())[name]
    if len(have) != len(wanted):
        return f"{len(have)} results instead of {len(wanted)}"
    allowed = LOOSE.get(name, TOLERANCE)
    for number, (mine, theirs) in enumerate(zip(have, wanted, strict=True)):
        for a, b in zip(mine, theirs, strict=True):
            if not (_near(a, b, allowed) if isinstance(a, float) and isinstance(b, float) else a == b):
                return f"result {number}: {a} instead of {b}"
    return None


def _near(a: float, b: float, allowed: float) -> bool:
    return abs(a - b) <= allowed * (1 + abs(b)) if math.isfinite(b) else a == b or (a != a and b != b)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, lamina.Tensor):
        return value.detach().flatten().tolist()
    return [item for part in value for item in _flat(part)] if isinstance(value, (tuple, list)) else [value]
