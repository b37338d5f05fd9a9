"""Iterators over containers that may still change: they see it as Python's own do, also behind a break."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from .base import VariableTracker
from .constant import ConstantVariable
from .iterators import IteratorVariable

__all__ = ["DictIterator", "ReversedIterator", "SequenceIterator"]


_USED_UP = 1 << 60
_GROWN = "an iterator over a container of the caller that has changed its size before it"


def _size_at_entry(tx: Any, owner: Any, otherwise: int) -> int:
    """How many items a container of the caller has when the iterator is made: changes of it come after that."""
    before = tx.side_effects.before.get(owner)
    return otherwise if owner.source is None or before is None else len(before)


class SequenceIterator(IteratorVariable):
    """An iterator over a list or tuple that sees later changes of it."""

    __slots__ = ("birth", "owner", "position")

    def __init__(self, owner: Any, birth: list[int]) -> None:
        self.source = None
        self.owner = owner
        self.birth = birth
        self.position = 0

    def next(self, tx: Any) -> VariableTracker:
        if self.position >= len(self.owner.elements):
            self.position = _USED_UP
            raise tx.stop_iteration()
        self.position += 1
        return self.owner.at(tx, self.position - 1)

    def children(self) -> list[Any]:
        return [self.owner]

    def reconstruct(self, cg: Any) -> None:
        if _size_at_entry(cg.tx, self.owner, self.position) < self.position < _USED_UP:
            cg.tx.break_at(self.birth, _GROWN)
        cg.call_constant(_iterator_at, [self.owner, ConstantVariable(self.position)])


class ReversedIterator(IteratorVariable):
    """``reversed`` of a list or tuple: it sees later changes of it."""

    __slots__ = ("birth", "owner", "position")

    def __init__(self, owner: Any, birth: list[int]) -> None:
        self.source = None
        self.owner = owner
        self.birth = birth
        self.position = len(owner.elements) - 1

    def python_type(self) -> type:
        return type(reversed([])) if self.owner.python_type() is list else reversed

    def next(self, tx: Any) -> VariableTracker:
        if not 0 <= self.position < len(self.owner.elements):
            self.position = -1
            raise tx.stop_iteration()
        self.position -= 1
        return self.owner.at(tx, self.position + 1)

    def children(self) -> list[Any]:
        return [self.owner]

    def reconstruct(self, cg: Any) -> None:
        if _size_at_entry(cg.tx, self.owner, self.position + 1) <= self.position:
            cg.tx.break_at(self.birth, _GROWN)
        cg.call_constant(_reversed_at, [self.owner, ConstantVariable(self.position)])


class DictIterator(IteratorVariable):
    """An iterator over a dict or one of its views (``keys``, ``values``, ``items``): values are those at each step."""

    __slots__ = ("birth", "order", "owner", "position", "view")

    def __init__(self, owner: Any, view: str, birth: list[int]) -> None:
        self.source = None
        self.owner = owner
        self.birth = birth
        self.view = view
        self.order = list(owner.entries)
        self.position = 0

    def python_type(self) -> type:
        return type(iter(getattr({}, self.view)()))

    def next(self, tx: Any) -> VariableTracker:
        owner, position = self.owner, self.position
        if position > len(self.order):
            raise tx.stop_iteration()
        if len(owner.entries) != len(self.order):
            raise tx.error(RuntimeError, "dictionary changed size during iteration")
        self.position += 1
        if position == len(self.order):
            raise tx.stop_iteration()
        key = self.order[position]
        if key not in owner.entries:
            raise Unsupported("a dict whose keys changed during iteration")
        if self.view == "keys":
            return owner.keys[key]
        value = owner.get(tx, key)
        return value if self.view == "values" else tx.tuple_of([owner.keys[key], value])

    def children(self) -> list[Any]:
        return [self.owner]

    def reconstruct(self, cg: Any) -> None:
        if self.position > len(self.order):
            cg.call_constant(iter, [cg.tx.tuple_of([])])
            return
        if list(self.owner.entries) != self.order:
            raise Unsupported("an iterator over a dict whose keys changed during iteration")
        if _size_at_entry(cg.tx, self.owner, len(self.order)) != len(self.order):
            cg.tx.break_at(self.birth, _GROWN)
        cg.call_constant(_dict_iterator_at, [self.owner, ConstantVariable(self.view), ConstantVariable(self.position)])


def _iterator_at(values: Any, position: int) -> Any:
    iterator = iter(values)
    if position > len(values):
        return iter(())
    iterator.__setstate__(position)
    return iterator


def _reversed_at(values: Any, position: int) -> Any:
    iterator = reversed(values)
    iterator.__setstate__(position)
    return iterator


def _dict_iterator_at(values: Any, view: str, position: int) -> Any:
    iterator = iter(getattr(values, view)())
    for _ in range(position):
        next(iterator)
    return iterator
