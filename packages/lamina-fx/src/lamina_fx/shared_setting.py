"""Settings of the whole process that a block changes and puts back, however many threads are in such blocks at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Generic, TypeVar

__all__ = ["SharedSetting"]

T = TypeVar("T")


class SharedSetting(ContextDecorator, Generic[T]):
    """The first to enter changes the setting, the last to leave puts it back; those between find it changed.

    Args:
        change: makes the change and returns what was before.
        restore: is given that and puts it back.

    >>> import os
    >>> private = SharedSetting(lambda: os.umask(0o077), os.umask)
    >>> before = os.umask(0o022)
    >>> with private, private:
    ...     pass
    >>> os.umask(before) == 0o022
    True
    """

    def __init__(self, change: Callable[[], T], restore: Callable[[T], object]) -> None:
        self._change = change
        self._restore = restore
        self._lock = threading.RLock()  # a signal's handler may compile, too
        self._inside = 0
        self._before: T | None = None

    @property
    def before(self) -> T | None:
        """What was before the change; None outside of blocks."""
        with self._lock:
            return self._before if self._inside else None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._change()
            self._inside += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore(self._before)  # type: ignore[arg-type]
