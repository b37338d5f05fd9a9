"""Every budget of the design beside what is measured now: processor time, the least of several runs.

    nox -s bench -- --budgets             every row
    python tools/bench/budgets.py guards  rows whose name contains a word

What grows with a count (operators, instructions, guards, kernels) is the slope between a small and a large program, so
that neither the fixed cost of a call nor what the first program loads is in it. A GPU's rows are not here.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from budget_calls import CALL_ROWS
from budget_stages import STAGE_ROWS

__all__ = ["main"]


def main(words: list[str]) -> int:
    """Print the rows whose group contains one of ``words``; returns how many are over their budget."""
    print(f"{'':62}{'measured':>10}{'budget':>10}")
    over = 0
    for group, rows in {**STAGE_ROWS, **CALL_ROWS}.items():
        if words and not any(word in group for word in words):
            continue
        print(group)
        for row in rows():
            mark = "" if row.budget is None or row.measured <= row.budget else "   OVER"
            over += bool(mark)
            budget = "" if row.budget is None else f"{row.budget:.2f}"
            print(f"  {row.name:60}{row.measured:10.2f}{budget:>10} {row.unit}{mark}", flush=True)
    print("every row is within its budget" if not over else f"{over} rows are over their budget")
    return over


if __name__ == "__main__":
    main(sys.argv[1:])
