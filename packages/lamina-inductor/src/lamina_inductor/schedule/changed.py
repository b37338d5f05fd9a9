"""Scatters that change what they are given instead of a copy of it.

The input of a scatter that nothing else reads lies where the result will: with a chain of scatters (the gradient of a
tensor that is read by index several times), all lie in one place, and each writes its updates there. What a kernel
computes for a scatter only is stored there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.loops import Value
from ..lower.externs import dense_strides
from ..lower.scatters import ScatterPlan
from .groups import Group
from .order import readers_of
from .trace import base_of, chain_to_base

__all__ = ["changed_values", "may_wait", "viewed_results"]


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


def viewed_results(fusion: Any, place: Mapping[Value, Any]) -> dict[Value, Any]:
    """Scatter -> the group that only copies its result, reshaped, to a place of its own (``place``) of the same size:
    the scatter may write there."""
    readers = readers_of(fusion)
    found: dict[Value, Any] = {}
    for group in fusion.groups:
        if len(group.members) != 1 or len(group.stored) != 1 or len(group.sources) != 1:
            continue
        (value,), (source,) = group.stored, group.sources
        reshaped = value.kind == "map" and all(item.op == "reshape" for item in chain_to_base(value))
        if not reshaped or base_of(value) is not source or type(source.attrs) is not ScatterPlan:
            continue
        target = place.get(value)
        if readers.get(source) == [group] and target is not None and target.strides == dense_strides(value):
            found[source] = group
    return found


TOGETHER = 16
"""Scatters of one kernel, at most: the places that a cubic function of two dimensions reads."""


def may_wait(fusion: Any, value: Value, following: Value, before: int) -> bool:
    """May one kernel do this scatter together with the one that changes its result? Both add up as many updates, in no
    certain order; and nothing that the first one reads is written in between."""
    if before + 1 >= TOGETHER or value.attrs.mode != "add" or following.attrs.mode != "add":
        return False
    if type(following.attrs) is not ScatterPlan or value.inputs[1].shape != following.inputs[1].shape:
        return False
    overwritten = {fusion.lowered.inputs[number] for number, _ in fusion.lowered.writes}
    step = fusion.where[value]
    return overwritten.isdisjoint((*fusion.roots_of(value), *step.sources))
