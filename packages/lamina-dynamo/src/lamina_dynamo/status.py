"""What code can ask about capture."""

from __future__ import annotations

__all__ = ["is_compiling"]


def is_compiling() -> bool:
    """Whether the code that asks is being captured: True inside a compiled function, False in plain Python.

    >>> is_compiling()
    False
    """
    return False
