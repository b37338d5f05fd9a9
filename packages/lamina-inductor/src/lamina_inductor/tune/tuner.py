"""Choose by measuring: the model's first few, on the device, within a time budget; results are kept on disk.

A program's problems are made known at once (``prepare``): what is tried of all of them is compiled in one go, on all
cores, and fewer candidates of each are tried where there are many problems.

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

__all__ = ["BUDGET", "Asked", "Measure", "Tuner"]

BUDGET = 20.0
"""Seconds that a tuner spends on all problems together."""

MOST = 10
"""Candidates that are measured of one problem."""

EACH = 8
"""Candidates of all problems of a program for each process that compiles: some ten seconds."""

LEAST = 3
"""Candidates of one problem, however many problems there are."""

Asked = tuple[Problem, list[Candidate], Callable[[Candidate], Any]]
"""What is asked of a chooser: (problem, candidates that fit, best guess first; the trial of one)."""


class Measure(Protocol):
    """Runs trials on the device. A trial is what the backend shows of a candidate: a program with one step.

    at_once: how many are compiled at a time.
    """

    at_once: int

    def prepare(self, trials: Sequence[Any]) -> None:
        """Compile them, in parallel; one that fails is found again when it is measured."""
        ...

    def __call__(self, trial: Any) -> float:
        """Seconds that the step takes. Raises what goes wrong."""
        ...


class Tuner:
    """A ``Choose`` for a planner.

    ``measure``: None: never measure. ``budget``: seconds of compiling and measuring together. ``clock`` is for tests.
    ``spent`` counts them, ``compiling`` those of compiling alone, ``tried`` the candidates.
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
        self.compiling = 0.0
        self.tried = 0
        self.known: dict[str, Candidate] = {}
        self._ready: dict[str, list[tuple[Candidate, Any]]] = {}

    def prepare(self, asked: Sequence[Asked]) -> None:
        """Compile what will be tried of these problems, at once; of those that were measured before, nothing."""
        new = {p.key: (p, ranked, show) for p, ranked, show in asked if self._is_new(p, ranked)}
        if not new or self.measure is None:
            return
        most = max(LEAST, min(self.most, EACH * self.measure.at_once // len(new)))
        for key, (_, ranked, show) in new.items():
            self._ready[key] = [(c, show(c)) for c in _tried(ranked, most)]
        self._compile([trial for key in new for _, trial in self._ready[key]], f"{len(new)} problems")

    def _is_new(self, problem: Problem, ranked: list[Candidate]) -> bool:
        if self.measure is None or self.spent >= self.budget or len(ranked) < 2:
            return False
        return problem.key not in self.known and not self.records.find(problem.key)

    def _compile(self, trials: Sequence[Any], words: str) -> None:
        assert self.measure is not None
        start = self.clock()
        with progress_line(f"{words}: compiling {len(trials)} candidates", 1):
            self.measure.prepare(trials)
        self.compiling += self.clock() - start
        self.spent += self.clock() - start
        self.tried += len(trials)

    def __call__(self, problem: Problem, ranked: list[Candidate], show: Callable[[Candidate], Any]) -> Candidate:
        """The candidate to use; ``ranked``: best guess first."""
        found = self.known.get(problem.key)
        if found is None:
            found = self.known[problem.key] = self._choose(problem, ranked, show)
        return found

    def _choose(self, problem: Problem, ranked: list[Candidate], show: Callable[[Candidate], Any]) -> Candidate:
        by_label = {label(c): c for c in ranked}
        seconds = self.records.find(problem.key)
        if problem.key in self._ready or self._is_new(problem, ranked):
            if problem.key not in self._ready:
                self._ready[problem.key] = [(c, show(c)) for c in _tried(ranked, self.most)]
                self._compile([trial for _, trial in self._ready[problem.key]], problem.key)
            start = self.clock()
            # No problem takes more than half of what is left, so that later ones have their turn.
            seconds = self._measure(problem, self._ready.pop(problem.key), start + (self.budget - self.spent) / 2)
            self.spent += self.clock() - start
            if len(seconds) > 1:
                self.records.add(problem.key, seconds)
        usable = {name: s for name, s in seconds.items() if name in by_label and math.isfinite(s)}
        return by_label[min(usable, key=lambda name: (usable[name], name))] if usable else ranked[0]

    def _measure(self, problem: Problem, trials: list[tuple[Candidate, Any]], limit: float) -> dict[str, float]:
        assert self.measure is not None
        seconds: dict[str, float] = {}
        with progress_line(problem.key, len(trials)) as done:
            for candidate, trial in trials:
                if seconds and self.clock() > limit:
                    break
                try:
                    seconds[label(candidate)] = self.measure(trial)
                except (RuntimeError, ValueError, NotImplementedError, MemoryError):
                    seconds[label(candidate)] = math.inf  # it does not compile, or wants too much
                done(f"{label(candidate)} {seconds[label(candidate)] * 1e6:.0f} us")
        return {name: s for name, s in seconds.items() if math.isfinite(s)}


def _tried(ranked: list[Candidate], most: int) -> list[Candidate]:
    """The first ones, and the library if there is one."""
    return ranked[:most] + [c for c in ranked[most:] if isinstance(c, LibraryCandidate)]
