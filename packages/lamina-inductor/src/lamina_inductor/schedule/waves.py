"""When a kernel's phases follow each other over slabs, in one launch (``backends/triton/wave_printer``)."""

from __future__ import annotations

from typing import Any

__all__ = ["BYTES", "ROWS", "WIDTH", "makes_wave"]

WIDTH, ROWS = 256, 32
"""Columns, or rows, of a slab."""

BYTES = 32 << 20
"""What one phase reads is in the second cache still when the next launch reads it, if it is less than this."""


def makes_wave(kept: Any, columns: bool, read: Any) -> bool:
    """Do ``kept`` rows (or ``columns``) make enough slabs, and are the bytes that are read too many for the cache?"""
    if type(kept) is not int or type(read) is not int:
        return False
    return read >= BYTES and kept >= 4 * (WIDTH if columns else ROWS)
