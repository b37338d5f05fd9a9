"""Handles of registered hooks."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

__all__ = ["RemovableHandle"]

_IDS = itertools.count()


class RemovableHandle:
    """Returned when a hook is registered; ``remove()`` takes the hook away. Also a context manager."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.id = next(_IDS)
        self._hooks = weakref.ref(hooks) if hasattr(hooks, "__weakref__") else lambda: hooks

    def remove(self) -> None:
        """Remove the hook; doing it twice is no error."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
