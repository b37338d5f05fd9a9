"""Python's collector of cycles while a compiler works.

What a compilation makes lives until its end, so the collector's walks over it find nothing; over a graph of thousands
of nodes they were a quarter of the time, and more the larger the graph.

>>> with collector_paused:
...     gc.isenabled()
False
>>> gc.isenabled()
True
"""

from __future__ import annotations

import gc

from .shared_setting import SharedSetting

__all__ = ["collect_young", "collector_paused"]


def _pause() -> bool:
    was_on = gc.isenabled()
    gc.disable()
    return was_on


def _resume(was_on: bool) -> None:
    if was_on:
        gc.enable()


collector_paused = SharedSetting(_pause, _resume)
"""No automatic collection while a block runs; who has switched the collector off finds it so."""


def collect_young() -> None:
    """Collect now, in a block that pauses the collector, what it would collect behind the block: for compilers that
    wait for others. Nothing where the collector was off before.
    """
    if collector_paused.before:
        gc.collect(1)
