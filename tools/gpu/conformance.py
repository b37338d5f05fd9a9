"""The whole corpus of operators and programs on a GPU: one script, table last.

    . tools/gpu/setup.sh && python3 tools/gpu/conformance.py                  everything
    python3 tools/gpu/conformance.py --parts eager compiled --every 8         every eighth of these parts
    python3 tools/gpu/conformance.py --seconds 120 --log out.json             stops after two minutes

The parts are below (``PARTS``). Each task runs in one of several processes, each with one processor (so kernels are
compiled in it) and a context of its own. What is wrong is said as it is found; the table says how many things were
checked, were wrong, and were not come to. The exit status is 1 when there are any of the last two.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent)]


@dataclass(frozen=True)
class Outcome:
    """What became of a task: how many things were checked in it, and what was wrong."""

    part: str
    name: str
    checked: int
    wrong: tuple[str, ...]
    seconds: float


def _eager(name: str) -> tuple[int, list[str]]:
    import eager

    result = eager.run_operator(name)
    return result.samples, list(result.failures)


def _compiled(name: str) -> tuple[int, list[str]]:
    import compiled_samples

    return compiled_samples.check_operator(name)


def _graph(name: str) -> tuple[int, list[str]]:
    import check

    return 1, _said(check.check_case(name))


def _program(name: str) -> tuple[int, list[str]]:
    import check

    return 1, _said(check.check_program(*name.split(" ", 1)))


def _model(name: str) -> tuple[int, list[str]]:
    import models

    return 1, _said(models.check_program(*name.split(" ", 1)))


def _feature(name: str) -> tuple[int, list[str]]:
    import eager_programs
    import features

    function = {**features.FEATURES, **{f.__name__: f for f in eager_programs.PROGRAMS}}[name]
    try:
        function()
    except features.LeftOut:
        return 0, []
    return 1, []


def _said(text: str | None) -> list[str]:
    return [text] if text else []


def _names(part: str) -> list[str]:
    """The tasks of a part."""
    import check
    import compiled_samples
    import eager
    import eager_programs
    import features
    import models

    return {
        "eager": lambda: eager.sampled([]),
        "compiled": compiled_samples.names,
        "graphs": check.case_names,
        "programs": check.program_names,
        "models": lambda: [f"{how} {name}" for how in ("compiled", "eager") for name in models.names()],
        "features": lambda: [*features.FEATURES, *(f.__name__ for f in eager_programs.PROGRAMS)],
    }[part]()


PARTS: dict[str, tuple[str, Callable[[str], tuple[int, list[str]]]]] = {
    "models": ("users' programs, eager and compiled, against PyTorch's numbers", _model),
    "compiled": ("operators' samples compiled, in two layouts", _compiled),
    "eager": ("operators' samples eager, with gradients", _eager),
    "graphs": ("graphs of the Triton tests", _graph),
    "programs": ("programs of the launcher's tests: eager, compiled, CUDA graphs", _program),
    "features": ("what users do with a device, training, streams, exchange", _feature),
}
"""In the order in which they begin."""

LONG = {
    ("compiled", "grid_sample"), ("compiled", "attention_backward"), ("models", "compiled transformer_translation"),
    ("models", "compiled module_surgery"), ("models", "compiled accumulate_and_resume"), ("compiled", "avg_pool3d"),
}  # fmt: skip
"""Tasks of many seconds: they begin first, so that none is waited for at the end."""


def run(task: tuple[str, str]) -> Outcome:
    """A task, in a process of the pool; what goes wrong is said, not raised."""
    part, name = task
    start = time.perf_counter()
    try:
        checked, wrong = PARTS[part][1](name)
    except Exception as error:  # noqa: BLE001  (whatever goes wrong on the device is a finding)
        checked, wrong = 1, [f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"]
    return Outcome(part, name, checked, tuple(wrong), time.perf_counter() - start)


def begin(processors: Any) -> None:
    """In each process: one processor of its own, and no warnings of special values."""
    os.sched_setaffinity(0, {processors.get()})
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def run_all(tasks: list[tuple[str, str]], jobs: int, seconds: float) -> list[Outcome]:
    """All tasks; those that the time does not suffice for are left out."""
    end = time.monotonic() + seconds
    found: list[Outcome] = []
    context = multiprocessing.get_context("spawn")
    processors = context.SimpleQueue()
    here = sorted(os.sched_getaffinity(0))
    for number in range(jobs * 2):
        processors.put(here[number % len(here)])
    with context.Pool(jobs, begin, (processors,)) as pool:
        waiting = pool.imap_unordered(run, tasks)
        while len(found) < len(tasks):
            try:
                found.append(waiting.next(max(end - time.monotonic(), 0.01)))
            except multiprocessing.TimeoutError:
                pool.terminate()
                break
            for text in found[-1].wrong[:3]:
                print(f"WRONG {found[-1].part} {found[-1].name}: {text}", flush=True)
    return found


def table(found: list[Outcome], tasks: list[tuple[str, str]]) -> str:
    """A row for each part."""
    lines = [f"{'part':<10}{'tasks':>7}{'checked':>9}{'wrong':>7}{'left out':>10}{'seconds':>9}"]
    for part, (text, _) in PARTS.items():
        mine = [o for o in found if o.part == part]
        asked = sum(p == part for p, _ in tasks)
        if asked:
            wrong, spent = sum(bool(o.wrong) for o in mine), sum(o.seconds for o in mine)
            lines.append(f"{part:<10}{len(mine):>7}{sum(o.checked for o in mine):>9}{wrong:>7}{asked - len(mine):>10}"
                         f"{spent:>9.0f}  {text}")  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS), help="some parts only")
    parser.add_argument("--every", type=int, default=1, help="every so manieth task")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of these")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument(
        "--seconds", type=float, default=300, help="stop after this time (a process that dies is waited for)"
    )
    parser.add_argument("--log", help="write all outcomes to this JSON file")
    options = parser.parse_args()
    start = time.monotonic()
    tasks = [(p, n) for p in PARTS if p in options.parts for n in _names(p)[options.first :: options.every]]
    tasks.sort(key=lambda task: task not in LONG)
    found = run_all(tasks, options.jobs, options.seconds)
    if options.log:
        Path(options.log).write_text(json.dumps([asdict(o) for o in found], indent=1))
    wrong, left = sum(bool(o.wrong) for o in found), len(tasks) - len(found)
    slow = sorted(found, key=lambda o: -o.seconds)[:6]
    print("slowest:", *(f"{o.part} {o.name} {o.seconds:.1f}" for o in slow))
    print(table(found, tasks))
    print(f"{wrong} wrong, {left} left out, {time.monotonic() - start:.0f} s with {options.jobs} processes")
    return 1 if wrong or left else 0


if __name__ == "__main__":
    raise SystemExit(main())
