"""Utilities: data loading and checkpointing."""

from __future__ import annotations

from . import checkpoint, data

__all__ = ["checkpoint", "data"]
