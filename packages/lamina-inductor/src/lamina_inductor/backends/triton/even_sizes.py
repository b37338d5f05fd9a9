"""Kernels over several axes whose sizes are unknown: where they are multiples of 16 bytes, so are the places of all
rows in memory, and a thread moves 16 bytes at once; else single elements, which costs half types a third of the speed.

    if (n_s0 % 8 == 0) & (n_s1 % 8 == 0):
        n_s0 = n_s0 // 8 * 8        (from which the compiler sees it)
        n_s1 = n_s1 // 8 * 8
        ... the kernel
        return
    ... the kernel
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .kernel_printer import PrintedPhase

__all__ = ["with_even_sizes"]


def with_even_sizes(printed: PrintedPhase, sizes: Sequence[str], multiple: int) -> PrintedPhase:
    """The function with its text twice. ``multiple``: elements that are 16 bytes."""
    head, *lines = printed.source.split(":\n", 1)
    comments = [line for line in lines[0].splitlines() if line.startswith("    # ")]
    body = [line for line in lines[0].splitlines() if not line.startswith("    # ")]
    tests = [f"{name} % {multiple} == 0" for name in sizes]
    text = [
        *comments,
        f"    if {tests[0] if len(tests) == 1 else ' & '.join([f'({test})' for test in tests])}:",
        *[f"        {name} = {name} // {multiple} * {multiple}" for name in sizes],
        *[f"    {line}" for line in body],
        "        return",
        *body,
    ]
    return replace(printed, source=f"{head}:\n" + "\n".join(text) + "\n")
