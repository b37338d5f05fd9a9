"""Python's collector of cycles while a compiler works.

What a compilation makes lives until its end, so the collector's walks over it find nothing; over a graph of thousands
of nodes they were a quarter of the time, and more the larger the graph.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """No automatic collection while the block runs; who has switched the collector off finds it so.

    Several threads may be inside: the first to leave of those that switched it off switches it on.

    >>> with collector_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
