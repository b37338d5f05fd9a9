"""The workspace: where each temporary lies, so that those that are never alive together share memory.

Each temporary has the interval of steps from the one that writes it to the last that reads it. Larger ones are
placed first, each at the
lowest offset where nothing alive at the same time lies. Sizes that are symbolic are laid behind the others without
sharing.
"""

from __future__ import annotations

from bisect import insort
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

    >>> plan_workspace([Lifetime("a", 100, 0, 1), Lifetime("b", 64, 1, 2), Lifetime("c", 128, 2, 3)])
    ({'c': 0, 'a': 0, 'b': 128}, 192)
    """
    known = [t for t in lifetimes if type(t.size) is int]
    offsets: dict[str, Any] = {}
    total: Any = _place(sorted(known, key=lambda t: (-t.size, t.first, t.name)), offsets)
    for t in lifetimes:
        if type(t.size) is not int:
            offsets[t.name] = total
            total = total + (t.size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
    return offsets, total


def _place(lifetimes: list[Lifetime], offsets: dict[str, Any]) -> int:
    """First fit by size; each step of the program keeps the sorted extents of what is alive then."""
    steps: dict[int, list[tuple[int, int]]] = {}
    total = 0
    for t in lifetimes:
        size = max(ALIGNMENT, -(-t.size // ALIGNMENT) * ALIGNMENT)
        busy = sorted({e for step in range(t.first, t.last + 1) for e in steps.get(step, ())})
        offset = 0
        for begin, end in busy:
            if begin >= offset + size:
                break
            offset = max(offset, end)
        offsets[t.name] = offset
        for step in range(t.first, t.last + 1):
            insort(steps.setdefault(step, []), (offset, offset + size))
        total = max(total, offset + size)
    return total
