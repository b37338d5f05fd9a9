"""Gradient modes of the current thread, as context managers and decorators.

>>> with no_grad():
...     is_grad_enabled()
False
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._C import is_grad_enabled, is_inference
from .._C import set_grad_enabled as _set_grad
from .._C import set_inference as _set_inference

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """A gradient mode; usable as ``with mode():``, ``@mode()`` and ``@mode``."""

    __slots__ = ("previous",)

    def __new__(cls, function: Any = None) -> Any:
        self = object.__new__(cls)
        if callable(function):
            self.__init__()
            return self(function)
        return self

    def __init__(self, function: Any = None) -> None:
        self.previous: list[Any] = []

    def clone(self) -> _Mode:
        """An equal mode for one call of a decorated function."""
        return type(self)()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        _set_grad(self.previous.pop())

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return _wrap_generator(self, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]


def _wrap_generator(mode: _Mode, function: Callable[..., Any]) -> Callable[..., Any]:
    """The mode holds while the generator runs, not between its values."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        reply = None
        while True:
            with mode.clone():
                try:
                    value = generator.send(reply)
                except StopIteration as stop:
                    return stop.value
            reply = yield value

    return run


class no_grad(_Mode):
    """Nothing is recorded inside."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.previous.append(_set_grad(False))


class enable_grad(_Mode):
    """Recording is on inside, also within ``no_grad``."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.previous.append(_set_grad(True))


class set_grad_enabled(_Mode):
    """Switch recording at once; as a context manager, back at its end."""

    __slots__ = ("mode",)

    def __new__(cls, mode: bool) -> Any:  # noqa: D102
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.previous = [_set_grad(self.mode)]

    def clone(self) -> set_grad_enabled:
        """An equal mode for one call of a decorated function."""
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        if not self.previous:
            self.previous.append(_set_grad(self.mode))

    def __call__(self, function: F) -> F:  # noqa: D102
        _set_grad(self.previous.pop())  # a decorator changes nothing where it stands
        return super().__call__(function)


class inference_mode(_Mode):
    """Nothing is recorded inside, and what is made inside can never be: its tensors refuse to be saved later."""

    __slots__ = ("mode",)

    def __init__(self, mode: Any = True) -> None:
        self.mode = True if callable(mode) else bool(mode)
        self.previous = []

    def clone(self) -> inference_mode:
        """An equal mode for one call of a decorated function."""
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        before = is_grad_enabled()
        self.previous.append((_set_inference(self.mode), before))
        _set_grad(not self.mode)

    def __exit__(self, *error: object) -> None:
        inference, enabled = self.previous.pop()
        _set_inference(inference)
        _set_grad(enabled)


def is_inference_mode_enabled() -> bool:
    """True inside ``inference_mode``."""
    return is_inference()
