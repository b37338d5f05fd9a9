"""Pointwise kernels over numbers of elements of which nothing is known: whole tiles without a mask, the last one with.

A mask whose bound may be any number lets a program move single elements only; most programs need none.

    i0 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    if (tl.program_id(0) + 1) * XBLOCK <= n:
        ... all elements
        return
    inside_x = i0 < n
    ... those inside
"""

from __future__ import annotations

from dataclasses import replace

from .kernel_printer import PrintedPhase

__all__ = ["with_whole_tiles"]

_MASK = "    inside_x = "


def with_whole_tiles(masked: PrintedPhase, whole: PrintedPhase, wide: bool) -> PrintedPhase:
    """One function of the two texts of a phase."""
    lines, unmasked = masked.source.splitlines(), whole.source.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(_MASK))
    bound = lines[start].removeprefix(_MASK).partition(" < ")[2]
    program = "tl.program_id(0).to(tl.int64)" if wide else "tl.program_id(0)"
    text = [
        *lines[:start],
        f"    if ({program} + 1) * XBLOCK <= {bound}:",
        *[f"    {line}" for line in unmasked[start:]],
        "        return",
        *lines[start:],
    ]
    return replace(masked, source="\n".join(text) + "\n")
