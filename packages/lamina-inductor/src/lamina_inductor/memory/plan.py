"""The workspace: where each temporary lies, so that those that are never alive together share memory.

Each temporary has the interval of steps from the one that writes it to the last that reads it. The plan replays the
steps: a temporary takes the smallest gap that is large enough (new memory at the end if there is none) and gives it
back after its last step. Temporaries of symbolic sizes lie behind the others, in slots: one takes a free slot of its
own size, or one that is larger whatever the symbols are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Any

__all__ = ["ALIGNMENT", "Lifetime", "plan_workspace"]

ALIGNMENT = 64
"""Bytes: a cache line, and a vector of 512 bits."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A temporary: name, bytes (``int`` or expression), first and last step."""

    name: str
    size: Any
    first: int
    last: int


def plan_workspace(lifetimes: list[Lifetime]) -> tuple[dict[str, Any], Any]:
    """(offset of each temporary, bytes of the workspace).

    >>> plan_workspace([Lifetime("a", 128, 0, 1), Lifetime("b", 64, 1, 2), Lifetime("c", 128, 2, 3)])
    ({'a': 0, 'b': 128, 'c': 0}, 192)
    """
    memory = _Memory()
    dying: dict[int, list[tuple[int, int]]] = {}
    offsets: dict[str, Any] = {}
    step = 0
    known = [t for t in lifetimes if type(t.size) is int]
    for t in sorted(known, key=lambda t: (t.first, -t.size, t.name)):
        for passed in range(step, t.first):
            for offset, size in dying.pop(passed, ()):
                memory.give_back(offset, size)
        step = max(step, t.first)
        size = max(ALIGNMENT, -(-t.size // ALIGNMENT) * ALIGNMENT)
        offsets[t.name] = offset = memory.take(size)
        dying.setdefault(t.last, []).append((offset, size))
    total: Any = memory.end
    places, sizes = _plan_slots([t for t in lifetimes if type(t.size) is not int])
    begins = []
    for size in sizes:
        begins.append(total)
        total = total + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
    return offsets | {name: begins[slot] for name, slot in places.items()}, total


def _plan_slots(lifetimes: list[Lifetime]) -> tuple[dict[str, int], list[Any]]:
    """(slot of each temporary of a symbolic size, bytes of the slots)."""
    places: dict[str, int] = {}
    sizes: list[Any] = []
    free: dict[Any, list[int]] = {}
    dying: dict[int, list[int]] = {}
    step = 0
    for t in sorted(lifetimes, key=lambda t: (t.first, t.name)):
        for passed in range(step, t.first):
            for slot in dying.pop(passed, ()):
                free.setdefault(sizes[slot], []).append(slot)
        step = max(step, t.first)
        fitting = t.size if free.get(t.size) else _least_above(t.size, [size for size, slots in free.items() if slots])
        if fitting is None:
            sizes.append(t.size)
            places[t.name] = len(sizes) - 1
        else:
            places[t.name] = free[fitting].pop()
        dying.setdefault(t.last, []).append(places[t.name])
    return places, sizes


def _least_above(size: Any, sizes: list[Any]) -> Any:
    """The least of ``sizes`` that is at least ``size`` for all values of the symbols, or None."""
    best = None
    for other in sizes:
        if _is_at_most(size, other) and (best is None or _is_at_most(other, best)):
            best = other
    return best


def _is_at_most(size: Any, other: Any) -> bool:
    lower = (other - size).range()[0]
    return lower is not None and lower >= 0


class _Memory:
    """Gaps in a growing range of bytes: by offset (to join neighbours) and by size (to find the best)."""

    def __init__(self) -> None:
        self.end = 0
        self.by_offset: list[tuple[int, int]] = []
        self.by_size: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Offset of ``size`` bytes that are free now."""
        at = bisect_left(self.by_size, (size, -1))
        if at < len(self.by_size):
            found, offset = self.by_size[at]
            self._remove(offset, found)
            if found > size:
                self._add(offset + size, found - size)
            return offset
        offset = self.end
        if self.by_offset and sum(self.by_offset[-1]) == self.end:  # a gap at the end grows
            offset, last = self.by_offset[-1]
            self._remove(offset, last)
        self.end = offset + size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """These bytes are free again."""
        at = bisect_left(self.by_offset, (offset, 0))
        if at < len(self.by_offset) and self.by_offset[at][0] == offset + size:
            after = self.by_offset[at][1]
            self._remove(offset + size, after)
            size += after
        if at and sum(self.by_offset[at - 1]) == offset:
            begin, before = self.by_offset[at - 1]
            self._remove(begin, before)
            offset, size = begin, size + before
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        insort(self.by_offset, (offset, size))
        insort(self.by_size, (size, offset))

    def _remove(self, offset: int, size: int) -> None:
        del self.by_offset[bisect_left(self.by_offset, (offset, size))]
        del self.by_size[bisect_left(self.by_size, (size, offset))]
