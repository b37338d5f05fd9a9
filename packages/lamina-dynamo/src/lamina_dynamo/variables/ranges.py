"""Ranges and slices."""

from __future__ import annotations

from typing import Any

from .base import Args, Kwargs, VariableTracker
from .constant import ConstantVariable

__all__ = ["RangeVariable", "SliceVariable"]


class RangeVariable(VariableTracker):
    """A range with known bounds."""

    __slots__ = ("value",)

    def __init__(self, value: range, source: Any = None) -> None:
        self.source = source
        self.value = value

    def python_type(self) -> type:
        return range

    def as_constant(self) -> Any:
        return self.value

    def truth(self, tx: Any) -> bool:
        return bool(self.value)

    def length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.value))

    def iterator(self, tx: Any) -> VariableTracker:
        return tx.iterator_over([ConstantVariable(v) for v in self.value])

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        return tx.call_native(lambda r, i: r[i], [self, index], {})

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        return tx.call_native(lambda r, i: i in r, [self, item], {})

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return tx.native_attribute(self, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.call_native(getattr(self.value, name), args, kwargs)

    def key(self) -> Any:
        return self.value

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(range, [ConstantVariable(getattr(self.value, n)) for n in ("start", "stop", "step")])


class SliceVariable(VariableTracker):
    """A slice of trackers."""

    __slots__ = ("parts",)

    def __init__(self, start: Any, stop: Any, step: Any, source: Any = None) -> None:
        self.source = source
        self.parts = (start, stop, step)

    def python_type(self) -> type:
        return slice

    def as_constant(self) -> Any:
        return slice(*[p.as_constant() for p in self.parts])

    def children(self) -> list[Any]:
        return list(self.parts)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return tx.native_attribute(self, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.call_native(getattr(self.as_constant(), name), args, kwargs)

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(slice, list(self.parts))
