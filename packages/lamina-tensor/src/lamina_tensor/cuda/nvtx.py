"""Marks and ranges for NVIDIA's profilers. They go through CuPy; where no GPU is used there is nobody to read them.

>>> with range("step", 1):
...     depth = range_push("inner"), range_pop()
>>> depth
(1, 1)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .activation import active_provider, is_active

__all__ = ["mark", "range", "range_pop", "range_push"]


class _Depth(threading.local):
    now = 0


_DEPTH = _Depth()


def _library() -> Any:
    if not is_active() or active_provider().name != "cupy":
        return None
    from cupy.cuda import nvtx  # pyright: ignore[reportMissingImports]  # the extra [cuda]

    return nvtx


def range_push(msg: str) -> int:
    """Begin a range inside of those that this thread has begun; returns how many these are."""
    if (library := _library()) is not None:
        library.RangePush(str(msg))
    _DEPTH.now += 1
    return _DEPTH.now - 1


def range_pop() -> int:
    """End the range that was begun last; returns how many are left."""
    if (library := _library()) is not None:
        library.RangePop()
    _DEPTH.now = max(0, _DEPTH.now - 1)
    return _DEPTH.now


def mark(msg: str) -> None:
    """Note an instant."""
    if (library := _library()) is not None:
        library.Mark(str(msg))


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """``with cuda.nvtx.range("step {}", 3):`` or as a decorator: a range. The arguments are put into the message."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
