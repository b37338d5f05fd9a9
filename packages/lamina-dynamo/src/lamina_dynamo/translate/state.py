"""What is remembered between translations of one code object: sizes and numbers seen, which decide what becomes
symbolic.

>>> memory = FrameMemory()
>>> memory.is_dynamic("x.size(0)", 4), memory.is_dynamic("x.size(0)", 4), memory.is_dynamic("x.size(0)", 5)
(False, False, True)
>>> memory.is_dynamic("x.size(0)", 4)
True
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any

__all__ = ["FrameMemory", "memory_of"]


class FrameMemory:
    """Values seen under each name; a name with two values is dynamic from then on."""

    __slots__ = ("dynamic", "seen")

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}
        self.dynamic: set[str] = set()

    def is_dynamic(self, name: Any, value: Any) -> bool:
        """Record a value; whether the name has had another one."""
        if name in self.dynamic:
            return True
        known = self.seen.setdefault(name, value)
        if known == value or known != known:
            return False
        self.dynamic.add(name)
        return True


_MEMORIES: dict[int, FrameMemory] = {}


def memory_of(code: CodeType) -> FrameMemory:
    """The memory of a code object, made on first use; it goes with the code object."""
    found = _MEMORIES.get(id(code))
    if found is None:
        found = _MEMORIES[id(code)] = FrameMemory()
        weakref.finalize(code, _MEMORIES.pop, id(code), None).atexit = False
    return found


def forget_all() -> None:
    """Forget every code object."""
    _MEMORIES.clear()
