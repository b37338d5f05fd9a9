"""Run graphs with scans in Triton's interpreter: a process of its own, as ``triton_interpreted``.

Prints one JSON object: "name, mode" -> None, or what is wrong.
"""

from __future__ import annotations

import json
import sys

import triton_interpreted as base
from random_scans import drawn
from triton_corpus import graph_of
from triton_scans import MODES, SCAN_CASES, small_steps
from triton_symbolic_interpreted import check, count_by_scalars
from triton_symbolic_scans import SYMBOLIC_SCANS

RANDOM = range(6)


def main(names: list[str]) -> None:
    base.prepare()
    count_by_scalars()
    report: dict[str, str | None] = {}
    for mode in MODES:
        with small_steps(mode):
            for name in names or SCAN_CASES:
                fn, inputs, _ = SCAN_CASES[name]
                report[f"{name}, {mode}"] = base.check(graph_of(fn, inputs), list(inputs))
            for seed in () if names else RANDOM:
                run, arrays = drawn(seed)
                report[f"seed {seed}, {mode}"] = base.check(graph_of(run, tuple(arrays)), arrays)
    for name, case in () if names else SYMBOLIC_SCANS.items():
        for sizes in case.sizes:
            report[f"{name}: {sizes}"] = check(case, sizes, 32)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
