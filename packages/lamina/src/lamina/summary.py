"""Counts over everything compiled so far."""

from __future__ import annotations

from dataclasses import dataclass

from .records import counted, events, records

__all__ = ["Summary", "summary"]


@dataclass(frozen=True)
class Summary:
    """Counts: ``kernels`` of all compiled parts, ``recompiles`` of frames; ``skipped`` names frames given up."""

    graphs: int
    breaks: int
    recompiles: int
    kernels: int
    break_reasons: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = ((self.graphs, "graph"), (self.breaks, "break"), (self.recompiles, "recompile"))
        lines = [", ".join(counted(number, word) for number, word in (*counts, (self.kernels, "kernel")))]
        lines += [f"break: {reason}" for reason in dict.fromkeys(self.break_reasons)]
        lines += [f"not compiled: {reason}" for reason in dict.fromkeys(self.skipped)]
        return "\n".join(lines)


def summary() -> Summary:
    """Counts since the process started, or since ``clear_records`` and ``lamina.compiler.reset``."""
    seen, kept = events(), records()
    reasons = tuple(str(reason) for event in seen for reason in event.breaks)
    skipped = tuple(f"{e.function}: {e.skipped}" for e in seen if e.skipped)
    again = sum(bool(event.recompile_reasons) for event in seen)
    return Summary(len(kept), len(reasons), again, sum(len(r.kernels) for r in kept), reasons, skipped)
