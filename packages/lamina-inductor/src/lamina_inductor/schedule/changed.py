"""Scatters that change what they are given instead of a copy of it.

The input of a scatter that nothing else reads lies where the result will: with a chain of scatters (the gradient of a
tensor that is read by index several times), all lie in one place, and each writes its updates there. What a kernel
computes for a scatter only is stored there, too.
"""

from __future__ import annotations

from typing import Any

from ..ir.loops import Value
from ..lower.scatters import ScatterPlan
from .groups import Group
from .order import readers_of

__all__ = ["changed_values"]


def changed_values(fusion: Any) -> dict[Value, Value]:
    """Input of a scatter -> the scatter that changes it."""
    readers = readers_of(fusion)
    kept = {v for v in fusion.lowered.outputs if type(v) is Value} | fusion.written()
    found: dict[Value, Value] = {}
    for step in fusion.steps:
        value = step.value
        if type(value.attrs) is not ScatterPlan:
            continue
        input = value.inputs[0]
        home = fusion.where.get(input)
        if home is None or input in kept or input.dtype is not value.dtype or input.shape != value.shape:
            continue
        is_made = input in home.stored if type(home) is Group else type(input.attrs) is ScatterPlan
        if is_made and readers.get(input) == [step] and fusion.roots.get((value, input)) is input:
            found[input] = value
    return found
