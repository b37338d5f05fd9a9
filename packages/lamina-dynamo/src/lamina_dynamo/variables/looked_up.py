"""A method of an array, looked up but not called: what calling it does depends on which it is."""

from __future__ import annotations

from types import MethodType
from typing import Any

from .base import VariableTracker
from .constant import ConstantVariable

__all__ = ["LookedUpMethodVariable"]


class LookedUpMethodVariable(VariableTracker):
    """``owner.name``; subclasses say what a call does. Behind the graph it is looked up again."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.source = None
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return MethodType

    def truth(self, tx: Any) -> bool:
        return True

    def children(self) -> list[Any]:
        return [self.owner]

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(getattr, [self.owner, ConstantVariable(self.name)])
