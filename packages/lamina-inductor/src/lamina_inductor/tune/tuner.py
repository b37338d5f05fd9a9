"""Choose by measuring: the model's first few, on the device, within a time budget; results are kept on disk.

Without a device, with the budget spent, or when nothing runs, the choice is the model's best guess: always the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .candidates import Candidate, LibraryCandidate, label
from .problems import Problem
from .progress import progress_line
from .records import Records

__all__ = ["BUDGET", "Measure", "Tuner"]

BUDGET = 20.0
"""Seconds that a tuner spends on all problems together."""

MOST = 10
"""Candidates that are measured of one problem."""


class Measure(Protocol):
    """Runs trials on the device. A trial is what the backend shows of a candidate: a program with one step."""

    def prepare(self, trials: Sequence[Any]) -> None:
        """Compile them, in parallel; one that fails is found again when it is measured."""
        ...

    def __call__(self, trial: Any) -> float:
        """Seconds that the step takes. Raises what goes wrong."""
        ...


class Tuner:
    """A ``Choose`` for a planner.

    ``measure``: None: never measure. ``budget``: seconds, from the first problem that is measured. ``clock`` is for
    tests.
    """

    def __init__(
        self,
        measure: Measure | None,
        records: Records,
        budget: float = BUDGET,
        most: int = MOST,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.measure, self.records, self.budget, self.most, self.clock = measure, records, budget, most, clock
        self.spent = 0.0
        self.known: dict[str, Candidate] = {}

    def __call__(self, problem: Problem, ranked: list[Candidate], show: Callable[[Candidate], Any]) -> Candidate:
        """The candidate to use; ``ranked``: best guess first."""
        found = self.known.get(problem.key)
        if found is None:
            found = self.known[problem.key] = self._choose(problem, ranked, show)
        return found

    def _choose(self, problem: Problem, ranked: list[Candidate], show: Callable[[Candidate], Any]) -> Candidate:
        by_label = {label(c): c for c in ranked}
        seconds = self.records.find(problem.key)
        if not seconds and self.measure is not None and self.spent < self.budget and len(ranked) > 1:
            start = self.clock()
            # No problem takes more than half of what is left, so that later ones have their turn.
            limit = start + (self.budget - self.spent) / 2
            seconds = self._measure(problem, self._tried(ranked), show, limit)
            self.spent += self.clock() - start
            if seconds:
                self.records.add(problem.key, seconds)
        usable = {name: s for name, s in seconds.items() if name in by_label and math.isfinite(s)}
        return by_label[min(usable, key=lambda name: (usable[name], name))] if usable else ranked[0]

    def _tried(self, ranked: list[Candidate]) -> list[Candidate]:
        """The first ones, and the library if there is one."""
        first = ranked[: self.most]
        return first + [c for c in ranked[self.most :] if isinstance(c, LibraryCandidate)]

    def _measure(
        self, problem: Problem, tried: list[Candidate], show: Callable[[Candidate], Any], limit: float
    ) -> dict[str, float]:
        assert self.measure is not None
        trials = [show(c) for c in tried]
        self.measure.prepare(trials)
        seconds: dict[str, float] = {}
        with progress_line(problem.key, len(tried)) as done:
            for candidate, trial in zip(tried, trials, strict=True):
                if seconds and self.clock() > limit:
                    break
                try:
                    seconds[label(candidate)] = self.measure(trial)
                except (RuntimeError, ValueError, NotImplementedError, MemoryError):
                    seconds[label(candidate)] = math.inf  # it does not compile, or wants too much
                done(f"{label(candidate)} {seconds[label(candidate)] * 1e6:.0f} us")
        return {name: s for name, s in seconds.items() if math.isfinite(s)}
