"""Objects of the caller that are the same on every call: what is called or read of them is known while tracing."""

from __future__ import annotations

from typing import Any

from .base import VariableTracker

__all__ = ["KnownVariable"]


class KnownVariable(VariableTracker):
    """One object, guarded by identity: a class, a module, a function. ``value`` is the object itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Any = None) -> None:
        self.source = source
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def as_constant(self) -> Any:
        return self.value

    def key(self) -> Any:
        return self.value

    def truth(self, tx: Any) -> bool:
        return True

    def reconstruct(self, cg: Any) -> None:
        cg.load_object(self.value)
