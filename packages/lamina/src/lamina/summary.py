"""Counts over everything compiled so far."""

from __future__ import annotations

from dataclasses import dataclass

import lamina_dynamo

from .records import records

__all__ = ["Summary", "summary"]


@dataclass(frozen=True)
class Summary:
    """``kernels`` counts launches per call of each compiled part; ``recompiles`` counts frames compiled again."""

    graphs: int
    breaks: int
    recompiles: int
    kernels: int
    break_reasons: tuple[str, ...]


def summary() -> Summary:
    """Counts since the process started, or since ``clear_records`` and ``lamina.compiler.reset``."""
    events = lamina_dynamo.compile_events()
    reasons = tuple(str(reason) for event in events for reason in event.break_reasons)
    seen: set[object] = set()
    again = 0
    for event in events:
        again += event.code in seen
        seen.add(event.code)
    kept = records()
    return Summary(len(kept), len(reasons), again, sum(len(r.kernels) for r in kept), reasons)
