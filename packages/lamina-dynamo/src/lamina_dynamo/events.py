"""What capture did: one `CompileEvent` per compiled frame, handed to listeners.

>>> with recording() as events:
...     pass  # call compiled functions here
>>> events
[]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .guard import GuardSet

__all__ = ["CompileEvent", "add_listener", "notify", "recording", "remove_listener"]


@dataclass(frozen=True)
class CompileEvent:
    """One frame that was compiled, or that capture gave up.

    Attributes:
        function: qualified name of the frame's function.
        file: where it is defined.
        line: its first line; for a resume function, the line it goes on at.
        resumed: whether the frame is that of a resume function.
        graph: the captured graph (None when nothing was captured).
        breaks: the graph breaks, in words, with the user's line.
        guard_set: the guards (None when nothing was translated); ``guards`` is their text.
        recompile_reasons: for a frame that had entries: why each did not fit.
        skipped: why the frame runs in Python, if it does.
        seconds: time in capture and backend.
        notes: what the translator adds.
    """

    function: str
    file: str
    line: int
    resumed: bool
    graph: object
    breaks: tuple[object, ...]
    guard_set: GuardSet | None
    recompile_reasons: tuple[str, ...]
    skipped: str | None
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards, as text, in the order they are evaluated."""
        return tuple(map(str, self.guard_set or ()))


Listener = Callable[[CompileEvent], object]
_listeners: list[Listener] = []
_lock = threading.Lock()


def add_listener(listener: Listener) -> None:
    """Call `listener(event)` after each compilation, on the thread that compiled."""
    with _lock:
        _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    """Stop calling it."""
    with _lock:
        _listeners.remove(listener)


def notify(event: CompileEvent) -> None:
    """Tell the listeners."""
    for listener in list(_listeners):
        listener(event)


@contextmanager
def recording() -> Iterator[Sequence[CompileEvent]]:
    """Collect the events of a block in a list (those of all threads)."""
    events: list[CompileEvent] = []
    add_listener(events.append)
    try:
        yield events
    finally:
        remove_listener(events.append)
