"""The workspace: where each temporary lies, so that those that are never alive together share memory.

Each temporary has the interval of steps from the one that writes it to the last that reads it. Two plans are made
and the smaller one is taken. One replays the steps: a temporary takes the smallest gap that is large enough (new
memory at the end if there is none) and gives it back after its last step. The other places the largest first, each in
the smallest gap between those that are alive with it ("greedy by size": Pisarchyk and Lee 2020, Efficient Memory
Management for Deep Neural Net Inference). Temporaries of symbolic sizes lie behind the others, in slots: one takes a
free slot of its own size, or one that is larger whatever the symbols are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

__all__ = ["ALIGNMENT", "Lifetime", "plan_workspace"]

ALIGNMENT = 64
"""Bytes: a cache line, and a vector of 512 bits."""

MANY = 1000
"""More temporaries than these are placed in the order of steps only: by size, each is compared with all before it."""


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
    known = [(t, max(ALIGNMENT, -(-t.size // ALIGNMENT) * ALIGNMENT)) for t in lifetimes if type(t.size) is int]
    offsets, total = _plan_in_order(known)
    if len(known) <= MANY and total > _least(known):
        offsets, total = min((offsets, total), _plan_by_size(known), key=lambda plan: plan[1])
    places, sizes = _plan_slots([t for t in lifetimes if type(t.size) is not int])
    begins = []
    for size in sizes:
        begins.append(total)
        total = total + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
    return offsets | {name: begins[slot] for name, slot in places.items()}, total


def _least(known: list[tuple[Lifetime, int]]) -> int:
    """The most bytes that are alive in one step: no plan needs less."""
    change: dict[int, int] = {}
    for t, size in known:
        change[t.first] = change.get(t.first, 0) + size
        change[t.last + 1] = change.get(t.last + 1, 0) - size
    return max(accumulate(change[step] for step in sorted(change)), default=0)


def _plan_in_order(known: list[tuple[Lifetime, int]]) -> tuple[dict[str, Any], Any]:
    memory = _Memory()
    dying: dict[int, list[tuple[int, int]]] = {}
    offsets: dict[str, Any] = {}
    step = 0
    for t, size in sorted(known, key=lambda k: (k[0].first, -k[0].size, k[0].name)):
        for passed in range(step, t.first):
            for offset, given in dying.pop(passed, ()):
                memory.give_back(offset, given)
        step = max(step, t.first)
        offsets[t.name] = offset = memory.take(size)
        dying.setdefault(t.last, []).append((offset, size))
    return offsets, memory.end


def _plan_by_size(known: list[tuple[Lifetime, int]]) -> tuple[dict[str, Any], Any]:
    placed: list[tuple[int, int, int, int]] = []  # (offset, end, first step, last step), by offset
    offsets: dict[str, Any] = {}
    total = 0
    for t, size in sorted(known, key=lambda k: (-k[1], k[0].first - k[0].last, k[0].first, k[0].name)):
        best, room, end = None, 0, 0
        for begin, behind, first, last in placed:
            if last < t.first or t.last < first:
                continue
            gap = begin - end
            if gap >= size and (best is None or gap < room):
                best, room = end, gap
            if behind > end:
                end = behind
        offset = end if best is None else best
        offsets[t.name] = offset
        insort(placed, (offset, offset + size, t.first, t.last))
        total = max(total, offset + size)
    return offsets, total


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
