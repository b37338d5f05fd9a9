"""Counts over everything compiled so far."""

from __future__ import annotations

from dataclasses import dataclass

from .records import counted, dropped, events, records

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
    """Counts since the process started, or since ``clear_records`` and ``lamina.compiler.reset``.

    Reasons are those of the events that are kept."""
    seen, kept, gone = events(), records(), dropped()
    reasons = tuple(str(reason) for event in seen for reason in event.breaks)
    skipped = tuple(f"{e.function}: {e.skipped}" for e in seen if e.skipped)
    again = sum(bool(event.recompile_reasons) for event in seen) + gone["recompiles"]
    kernels = sum(len(record.kernels) for record in kept) + gone["kernels"]
    return Summary(len(kept) + gone["graphs"], len(reasons) + gone["breaks"], again, kernels, reasons, skipped)
