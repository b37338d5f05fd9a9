"""Who makes tensors from nothing: bodies of composites and gradient rules call ``full`` or ``iota``.

While tracing (or faking) that is the tracer; otherwise an ordinary tensor over a new array is made.
"""

from __future__ import annotations

from typing import Any

from lamina_prims.modes import MODES

__all__ = ["calling_user_code", "creating_tensors"]


class creating_tensors:
    """Inside, an operator called without any tensor makes a tensor instead of an array."""

    __slots__ = ("saved",)

    def __enter__(self) -> None:
        self.saved = MODES.creator
        if self.saved is None:
            from .dispatch import create

            MODES.creator = create

    def __exit__(self, *error: Any) -> None:
        MODES.creator = self.saved


class calling_user_code:
    """Inside, operators called without any tensor do what they did outside of the engine: arrays, unless traced."""

    __slots__ = ("saved",)

    def __enter__(self) -> None:
        from .dispatch import create

        self.saved = MODES.creator
        if self.saved is create:
            MODES.creator = None

    def __exit__(self, *error: Any) -> None:
        MODES.creator = self.saved
