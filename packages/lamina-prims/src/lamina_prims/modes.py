"""Modes: a stack of interceptors that see every operator call of the current thread first.

>>> class Count(Mode):
...     calls = 0
...     def handle(self, operator, args, kwargs):
...         self.calls += 1
...         return operator(*args, **kwargs)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["MODES", "NO_SIZES", "Handler", "Mode", "NeedsValues", "creating", "sizing"]

Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""``handler(operator, args, kwargs)`` does the call."""


class Mode:
    """A context manager; while active, operator calls go to ``handle``, with this mode switched off inside.

    ``stays``: the mode stays on inside ``handle``, which then must not call operators that it does not want to see.
    """

    stays = False

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the call; calling ``operator`` from here goes to the next mode outwards."""
        return operator(*args, **kwargs)

    def __enter__(self) -> Mode:
        MODES.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        popped = MODES.pop()
        assert popped is self, "modes must be left in the opposite order of entering"


class _Modes(threading.local):
    """Class attributes are what a thread has that has set nothing, and the stack is a tuple, which they can share. An
    ``__init__`` would run at a thread's first access, and all that Python runs meanwhile (finalizers, signal handlers,
    tracers) would find an instance without attributes."""

    stack: tuple[Mode, ...] = ()
    creator: Handler | None = None
    shape_env: Any = None

    def push(self, mode: Mode) -> None:
        """Let ``mode`` see calls first."""
        self.stack = (*self.stack, mode)

    def pop(self) -> Mode:
        """Take the last one off, which is returned."""
        *rest, last = self.stack
        self.stack = tuple(rest)
        return last

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stack = self.stack
        mode = stack[-1]
        if mode.stays:
            return mode.handle(operator, args, kwargs)
        self.stack = stack[:-1]
        try:
            return mode.handle(operator, args, kwargs)
        finally:
            self.stack = (*self.stack, mode)


MODES = _Modes()
"""The current thread's stack; its creator: who handles calls that have no tensor among their arguments; and the
``ShapeEnv`` in which results whose size depends on values get symbolic sizes."""


@contextmanager
def creating(handler: Handler | None) -> Iterator[None]:
    """While the block runs, calls without any tensor argument (``full``, ``iota``) go to ``handler``.

    Whoever runs a composite's body on its own kind of tensor sets this, so that tensors which the body
    makes from nothing are of the same kind. None: arrays of NumPy.
    """
    saved, MODES.creator = MODES.creator, handler
    try:
        yield
    finally:
        MODES.creator = saved


class NeedsValues(RuntimeError):
    """A call on tensors without data needs their values: to tell a size, or to give a number."""


class _NoSizes:
    """In place of a ``ShapeEnv``: sizes that depend on values are refused."""

    def create_unbacked(self, lower: int, upper: int | None, source: str) -> Any:
        raise NeedsValues(f"{source}: the size of the result depends on values, which are not known here")


NO_SIZES = _NoSizes()
"""For `sizing`: results whose size depends on values raise `NeedsValues`, also where other sizes are symbolic."""


@contextmanager
def sizing(shape_env: Any) -> Iterator[None]:
    """While the block runs, ``nonzero`` and its like infer sizes made by ``shape_env.create_unbacked``."""
    saved, MODES.shape_env = MODES.shape_env, shape_env
    try:
        yield
    finally:
        MODES.shape_env = saved
