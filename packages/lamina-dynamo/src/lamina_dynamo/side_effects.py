"""Which objects the region has changed. The emitted code brings the caller's objects to their final state after the
graph ran.

Objects keep their identity: a list of the caller is changed in place. The order between different objects does not
show, because
every special method of the user's (``__setattr__``, ``__setitem__``, properties) was traced as code and only raw
state is left.
"""

from __future__ import annotations

from typing import Any

from .variables import (
    CellVariable,
    DictVariable,
    SequenceVariable,
    SetVariable,
    TensorVariable,
    UserObjectVariable,
    VariableTracker,
)  # fmt: skip

__all__ = ["SideEffects"]


class SideEffects:
    """Changed trackers in the order of their first change, each with what it was before (for objects of the caller)."""

    def __init__(self) -> None:
        self.before: dict[VariableTracker, Any] = {}
        self.globals: dict[tuple[int, str], tuple[dict[str, Any], str, VariableTracker | None, Any]] = {}

    def mutating(self, variable: VariableTracker) -> None:
        """Say that ``variable`` is about to change."""
        if variable in self.before:
            return
        self.before[variable] = _snapshot(variable)

    def changed(self) -> list[tuple[VariableTracker, Any]]:
        """Objects of the caller that were changed, with their state before."""
        return [(v, state) for v, state in self.before.items() if _is_external(v)]

    def store_global(self, table: dict[str, Any], name: str, value: VariableTracker | None, function: Any) -> None:
        """Remember an assignment to a global (None: deletion); ``function`` is who did it."""
        self.globals[id(table), name] = (table, name, value, function)

    def load_global(self, table: dict[str, Any], name: str) -> tuple[bool, VariableTracker | None]:
        """Whether the region assigned the global, and its value (None: deleted)."""
        entry = self.globals.get((id(table), name))
        return (False, None) if entry is None else (True, entry[2])


def _is_external(variable: VariableTracker) -> bool:
    if isinstance(variable, DictVariable) and variable.owner is not None:
        return variable.owner.source is not None
    return variable.source is not None


def _snapshot(variable: VariableTracker) -> Any:
    if isinstance(variable, SequenceVariable):
        return list(variable.elements)
    if isinstance(variable, DictVariable):
        return dict(variable.entries)
    if isinstance(variable, SetVariable):
        return dict(variable.members)
    if isinstance(variable, CellVariable):
        return variable.content
    if isinstance(variable, UserObjectVariable):
        return dict(variable.slots)
    if isinstance(variable, TensorVariable):
        return None
    return None
