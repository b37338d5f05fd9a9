"""Switches of a CPU library that is not used here."""

from __future__ import annotations

__all__ = ["enabled", "is_available"]

enabled = False


def is_available() -> bool:
    """False."""
    return False
