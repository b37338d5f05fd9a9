"""Iterators over known values, and the lazy iterators of builtins."""

from __future__ import annotations

import itertools
from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .constant import ConstantVariable, is_none

__all__ = [
    "CountIterator", "EnumerateIterator", "FixedIterator", "IteratorVariable", "MapIterator", "ZipIterator",
]  # fmt: skip


class IteratorVariable(VariableTracker):
    """Base: an iterator is its own ``iter()``."""

    __slots__ = ()

    def iterator(self, tx: Any) -> VariableTracker:
        return self

    def truth(self, tx: Any) -> bool:
        return True

    def python_type(self) -> type:
        return type(iter([]))

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__next__":
            return self.next(tx)
        if name == "__iter__":
            return self
        raise Unsupported(f"method {name!r} of an iterator")

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("__next__", "__iter__"):
            return tx.bound_native(self, name)
        if not hasattr(self.python_type(), name):
            raise tx.attribute_error(self, name)
        raise Unsupported(f"attribute {name!r} of an iterator")

    def remaining(self, tx: Any) -> list[VariableTracker]:
        """Everything that is left; the iterator is used up."""
        found = []
        while True:
            try:
                found.append(self.next(tx))
            except tx.Observed as error:
                if not tx.is_exception(error, StopIteration):
                    raise
                return found


class FixedIterator(IteratorVariable):
    """An iterator over values that cannot change any more."""

    __slots__ = ("position", "values")

    def __init__(self, values: list[VariableTracker]) -> None:
        self.source = None
        self.values = values
        self.position = 0

    def next(self, tx: Any) -> VariableTracker:
        if self.position >= len(self.values):
            raise tx.stop_iteration()
        value = self.values[self.position]
        self.position += 1
        return value

    def remaining(self, tx: Any) -> list[VariableTracker]:
        rest = self.values[self.position :]
        self.position = len(self.values)
        return rest

    def children(self) -> list[Any]:
        return self.values[self.position :]

    def reconstruct(self, cg: Any) -> None:
        rest = self.values[self.position :]
        numbers = _arithmetic(rest)
        if numbers is not None:
            cg.call_constant(iter, [ConstantVariable(numbers)])
        else:
            cg.call_constant(iter, [cg.tx.tuple_of(rest)])


class ZipIterator(IteratorVariable):
    """``zip``."""

    __slots__ = ("parts", "strict")

    def __init__(self, parts: list[VariableTracker], strict: bool = False) -> None:
        self.source = None
        self.parts = parts
        self.strict = strict

    def python_type(self) -> type:
        return zip

    def next(self, tx: Any) -> VariableTracker:
        if not self.parts:
            raise tx.stop_iteration()
        found: list[VariableTracker] = []
        for number, part in enumerate(self.parts):
            try:
                found.append(part.next(tx))
            except tx.Observed as error:
                if self.strict and tx.is_exception(error, StopIteration):
                    self._check_strict(tx, number)
                raise
        return tx.tuple_of(found)

    def _check_strict(self, tx: Any, number: int) -> None:
        if number:
            words = "argument 1" if number == 1 else f"arguments 1-{number}"
            raise tx.error(ValueError, f"zip() argument {number + 1} is shorter than {words}")
        for other, part in enumerate(self.parts[1:], 2):
            try:
                part.next(tx)
            except tx.Observed as error:
                if not tx.is_exception(error, StopIteration):
                    raise
                continue
            words = "argument 1" if other == 2 else f"arguments 1-{other - 1}"
            raise tx.error(ValueError, f"zip() argument {other} is longer than {words}")

    def children(self) -> list[Any]:
        return list(self.parts)

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(zip, self.parts, {"strict": ConstantVariable(True)} if self.strict else {})


class EnumerateIterator(IteratorVariable):
    """``enumerate``."""

    __slots__ = ("count", "inner")

    def __init__(self, inner: VariableTracker, start: int) -> None:
        self.source = None
        self.inner = inner
        self.count = start

    def python_type(self) -> type:
        return enumerate

    def next(self, tx: Any) -> VariableTracker:
        value = self.inner.next(tx)
        self.count += 1
        return tx.tuple_of([ConstantVariable(self.count - 1), value])

    def children(self) -> list[Any]:
        return [self.inner]

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(enumerate, [self.inner, ConstantVariable(self.count)])


class MapIterator(IteratorVariable):
    """``map`` (``keep`` False) and ``filter``."""

    __slots__ = ("function", "keep", "parts")

    def __init__(self, function: VariableTracker, parts: list[VariableTracker], keep: bool = False) -> None:
        self.source = None
        self.function = function
        self.parts = parts
        self.keep = keep

    def python_type(self) -> type:
        return filter if self.keep else map

    def next(self, tx: Any) -> VariableTracker:
        while True:
            values = [part.next(tx) for part in self.parts]
            if not self.keep:
                return self.function.call(tx, values, {})
            verdict = values[0] if is_none(self.function) else self.function.call(tx, values, {})
            if tx.truth(verdict):
                return values[0]

    def children(self) -> list[Any]:
        return [self.function, *self.parts]

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(self.python_type(), [self.function, *self.parts])


class CountIterator(IteratorVariable):
    """``itertools.count``, also of floats; and ``itertools.repeat`` (``step`` None)."""

    __slots__ = ("current", "step", "times")

    def __init__(self, current: VariableTracker, step: VariableTracker | None, times: int | None = None) -> None:
        self.source = None
        self.current = current
        self.step = step
        self.times = times

    def next(self, tx: Any) -> VariableTracker:
        if self.times is not None:
            if self.times <= 0:
                raise tx.stop_iteration()
            self.times -= 1
        value = self.current
        if self.step is not None:
            self.current = tx.binary("+", value, self.step)
        return value

    def children(self) -> list[Any]:
        return [self.current] + ([] if self.step is None else [self.step])

    def python_type(self) -> type:
        return itertools.repeat if self.step is None else itertools.count

    def reconstruct(self, cg: Any) -> None:
        if self.step is not None:
            cg.call_constant(itertools.count, [self.current, self.step])
        else:
            times = [] if self.times is None else [ConstantVariable(self.times)]
            cg.call_constant(itertools.repeat, [self.current, *times])


def _arithmetic(values: list[VariableTracker]) -> range | None:
    """The range with these ints, when they are one; kept as a range so that ``for`` goes on at range's speed."""
    if len(values) < 2 or not all(isinstance(v, ConstantVariable) and type(v.value) is int for v in values):
        return None
    numbers = [v.as_constant() for v in values]
    step = numbers[1] - numbers[0]
    if step == 0:
        return None
    candidate = range(numbers[0], numbers[-1] + (1 if step > 0 else -1), step)
    return candidate if list(candidate) == numbers else None
