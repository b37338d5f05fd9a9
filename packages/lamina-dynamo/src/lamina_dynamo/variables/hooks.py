"""Hooks on gradients as values: the method that registers one, and its handle."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .looked_up import LookedUpMethodVariable

__all__ = ["HookHandleVariable", "HookMethodVariable"]


class HookMethodVariable(LookedUpMethodVariable):
    """``x.register_hook`` and its like."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.add_hook(self.owner, self.name, args, kwargs)


class HookHandleVariable(VariableTracker):
    """What registering a hook gives. ``handle`` is the fake's; ``steps``: where the graph ends if this lives on."""

    __slots__ = ("handle", "node", "removed", "steps", "tensor")

    def __init__(self, node: Any, handle: Any, tensor: Any, steps: list[int]) -> None:
        self.source = None
        self.node = node
        self.handle = handle
        self.tensor = tensor
        self.steps = steps
        self.removed = False

    def python_type(self) -> type:
        return type(self.handle)

    def truth(self, tx: Any) -> bool:
        return True

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "remove":
            return HookRemoveVariable(self)
        raise Unsupported(f"attribute {name!r} of the handle of a hook")

    def reconstruct(self, cg: Any) -> None:
        cg.tx.break_at(self.steps, "the handle of a hook, which lives on")


class HookRemoveVariable(VariableTracker):
    """``handle.remove``."""

    __slots__ = ("hook",)

    def __init__(self, hook: HookHandleVariable) -> None:
        self.source = None
        self.hook = hook

    def children(self) -> list[Any]:
        return [self.hook]

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.remove_hook(self.hook)

    def reconstruct(self, cg: Any) -> None:
        cg.load(self.hook)
