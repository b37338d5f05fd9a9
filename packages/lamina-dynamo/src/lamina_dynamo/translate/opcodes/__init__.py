"""What each bytecode instruction does to a symbolic frame: one handler per opcode, in a table by name.

Families of instructions that all versions share have a module each; what one CPython minor adds or changes is
in ``py311`` to ``py314``, which are laid over the table when that version runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from . import (
    arithmetic,
    calls,
    containers,
    control,
    exceptions,
    generators,
    matching,
    names,
    py311,
    py312,
    py313,
    py314,
)

__all__ = ["Handler", "handlers"]

Handler = Callable[[Any, Any], Any]
"""``handler(frame, instruction)``; a result other than None ends the frame's run (returned, yielded)."""


@lru_cache(maxsize=1)
def handlers() -> dict[str, Handler]:
    """The table for the running CPython."""
    table: dict[str, Handler] = {}
    for module in (names, arithmetic, containers, control, calls, exceptions, generators, matching):
        table.update(module.TABLE)
    table.update(py311.TABLE)
    if sys.version_info >= (3, 12):
        table.update(py312.TABLE)
    if sys.version_info >= (3, 13):
        table.update(py313.TABLE)
    if sys.version_info >= (3, 14):
        table.update(py314.TABLE)
    return table
