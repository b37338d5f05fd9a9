"""How much work a function does: the calls that it makes, which no other process can change.

Time depends on the machine; the number of calls does not, so a test may assert how it grows.

>>> count_calls(lambda: abs(-1))
2
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["count_calls"]


def count_calls(function: Callable[[], Any]) -> int:
    """Calls of Python and C functions while ``function`` runs, its own included; of this thread alone."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count - 1  # the call that puts the old profiler back
