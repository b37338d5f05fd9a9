"""Runs generated programs: the compiled launcher and what it needs set up (threads, BLAS, element types)."""

from __future__ import annotations

from .threads import num_threads, set_num_threads

__all__ = ["num_threads", "set_num_threads"]
