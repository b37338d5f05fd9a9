"""When a kernel's phases follow each other over slabs, in one launch (``backends/triton/wave_printer``)."""

from __future__ import annotations

from typing import Any

__all__ = ["BLOCK_WIDTH", "BYTES", "ROWS", "WIDTH", "makes_wave"]

COLUMN_WAVES = False

WIDTH, ROWS = 512, 32
"""Columns, or rows, of a slab."""

BLOCK_WIDTH = 1024
"""Columns side by side that a program takes of a block of rows, where phases are launched one after the other: each
warp has whole lines, and a thread the same columns of all its rows, which it adds up alone."""

BYTES = 32 << 20
"""What one phase reads is in the second cache still when the next launch reads it, if it is less than this."""


def makes_wave(kept: Any, columns: bool, read: Any) -> bool:
    """Do ``kept`` rows (or ``columns``) make enough slabs, and are the bytes that are read too many for the cache?"""
    if type(kept) is not int or type(read) is not int or (columns and not COLUMN_WAVES):
        return False
    return read >= BYTES and kept >= 4 * (WIDTH if columns else ROWS)
