"""Modes: a stack of interceptors that see every operator call of the current thread first.

>>> class Count(Mode):
...     calls = 0
...     def handle(self, operator, args, kwargs):
...         self.calls += 1
...         return operator(*args, **kwargs)
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["MODES", "Mode"]


class Mode:
    """A context manager; while active, operator calls go to ``handle`` (with this mode switched off inside)."""

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the call; calling ``operator`` from here goes to the next mode outwards."""
        return operator(*args, **kwargs)

    def __enter__(self) -> Mode:
        MODES.stack.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        popped = MODES.stack.pop()
        assert popped is self, "modes must be left in the opposite order of entering"


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Mode] = []

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mode = self.stack.pop()
        try:
            return mode.handle(operator, args, kwargs)
        finally:
            self.stack.append(mode)


MODES = _Modes()
"""The current thread's stack."""
