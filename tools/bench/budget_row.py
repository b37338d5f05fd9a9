"""A row of the table of budgets, and how rows are timed."""

from __future__ import annotations

import gc
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_fx.collector import collector_paused

__all__ = ["Row", "call_times", "least", "slope"]


@dataclass(frozen=True)
class Row:
    """What was measured, the budget for it (None: the design has none), and the unit of both."""

    name: str
    measured: float
    budget: float | None
    unit: str = "us"


def least(run: Callable[[], Callable[[], Any]], repeats: int = 5) -> float:
    """Microseconds of processor time: the least over ``repeats`` of calling what ``run()`` returns, once each."""
    best = float("inf")
    for _ in range(repeats):
        work = run()
        gc.collect()
        with collector_paused:  # as in a compilation
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    return 1e6 * best


def slope(small: tuple[float, int], large: tuple[float, int]) -> float:
    """Time per unit between two (time, count)."""
    return (large[0] - small[0]) / (large[1] - small[1])


def call_times(calls: list[Callable[[], Any]], seconds: float = 0.02, rounds: int = 9) -> list[float]:
    """Microseconds of this thread's processor time per call of each; they take turns, and the least round counts."""
    timers = [timeit.Timer(call, timer=time.thread_time) for call in calls]
    counts = [max(1, int(seconds / max(min(t.repeat(3, 20)) / 20, 1e-7))) for t in timers]
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, timer in enumerate(timers):
            best[k] = min(best[k], timer.timeit(counts[k]) / counts[k])
    return [1e6 * t for t in best]
