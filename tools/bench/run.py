"""Time Lamina beside its rivals, in one run, and print ratios.

    nox -s bench                        every workload
    nox -s bench -- --only softmax      those whose name contains a word
    nox -s bench -- --cold              first-call times with empty caches instead
    nox -s bench -- --budgets           what each stage and each call costs, beside the design's budgets

Each engine is a process of its own, in an environment of its own under .bench/ (made on first use). The engines take
turns, round by round, so that a noisy moment hits all of them; figures are the minimum and the median over rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import venv
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from cold import cold_starts  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402

RIVALS = {"torch": ("torch==2.13.0", "numpy"), "jax": ("jax", "jaxlib", "numpy")}
ENVIRONMENT_OF = {"torch.compile": "torch", "torch eager": "torch", "jax.jit": "jax"}
ENGINES = ("lamina", "torch.compile", "jax.jit", "numpy", "lamina eager", "torch eager")


def main() -> int:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated: " + ", ".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--cores", type=int, help="let every engine use only so many cores")
    parser.add_argument("--cold", action="store_true", help="first-call times with empty caches")
    parser.add_argument("--budgets", action="store_true", help="the table of budgets instead")
    parser.add_argument("--repeats", type=int, default=1, help="with --cold: the least of so many runs")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    if options.budgets:
        return subprocess.run([sys.executable, str(HERE / "budgets.py"), *options.only.split()], check=False).returncode
    engines = [name for name in options.engines.split(",") if name]
    interpreters = {name: interpreter_of(name) for name in engines}
    if options.cold:
        return cold_starts(interpreters, options.only, options.repeats)
    chosen = [w for w in WORKLOADS if options.only in w.name]
    if not chosen:
        parser.error(f"no workload's name contains {options.only!r}")
    rows = {w.name: time_workload(w, interpreters, options.rounds, options.cores) for w in chosen}
    print_table(chosen, rows, engines)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    wrong = [f"{w.name}: {text}" for w in chosen for text in disagreements(rows[w.name])]
    print("\n".join(["results do not agree:", *wrong] if wrong else ["results of all engines agree"]))
    return 1 if wrong else 0


def interpreter_of(engine: str) -> str:
    """The Python of the engine's environment, made on first use."""
    name = ENVIRONMENT_OF.get(engine)
    if name is None:
        return sys.executable
    override = os.environ.get(f"LAMINA_BENCH_{name.upper()}")
    if override:
        return override
    folder = ROOT / ".bench" / name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {' '.join(RIVALS[name])} into {folder} (once)", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *RIVALS[name]], check=True)
    return str(python)


class Engine:
    """A worker process."""

    def __init__(self, name: str, python: str, cores: int | None = None) -> None:
        self.name = name
        command = [python, str(HERE / "worker.py"), name, *([] if cores is None else [str(cores)])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request; returns the answer, or {"error": ...} when the process died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": True}

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def time_workload(
    workload: Workload, interpreters: dict[str, str], rounds: int, cores: int | None = None
) -> dict[str, Any]:
    """Seconds per call of each engine: {"engine": {"min", "median", "first", "cpu", "check"}}."""
    print(f"{workload.name} ...", flush=True)
    engines = {}
    row: dict[str, Any] = {}
    for name, python in interpreters.items():
        engine = Engine(name, python, cores)
        answer = engine.ask(prepare=workload.name)
        if "first" in answer:
            engines[name] = engine
            row[name] = {"first": answer["first"], "times": [], "cpu": [], "once": answer["once"]}
            row[name]["check"] = engine.ask(check=True).get("check")
            continue
        if "error" in answer:
            row[name] = {"failed": True}
        engine.close()
    for _ in range(rounds):
        for name, engine in engines.items():
            inner = max(1, min(2000, int(0.004 / row[name]["once"])))
            answer = engine.ask(time=5, inner=inner)
            row[name]["times"] += answer.get("times", [])
            row[name]["cpu"] += answer.get("cpu", [])
    for name, engine in engines.items():
        engine.close()
        times = row[name].pop("times")
        row[name] |= {"min": min(times), "median": median(times), "cpu": min(row[name]["cpu"])}
    return row


TOLERANCE = 2e-3
"""Of a sampled element, relative to the largest of its result: single precision, sums in other orders."""


def disagreements(row: dict[str, Any]) -> list[str]:
    """What keeps engines' results from being those of the first engine that is PyTorch (or the first of all)."""
    checks = {name: figures["check"] for name, figures in row.items() if figures.get("check")}
    judge = next((name for name in ("torch eager", "torch.compile", *checks) if name in checks), None)
    found = [f"{name} failed" for name, figures in row.items() if figures.get("failed")]
    for name, check in checks.items():
        wanted = checks[judge]
        if [r["size"] for r in check] != [r["size"] for r in wanted]:
            found.append(f"{name} has results of other sizes than {judge}")
            continue
        for number, (a, b) in enumerate(zip(check, wanted, strict=True)):
            scale = max(1e-30, *(abs(v) for v in b["sample"]))
            worst = max(abs(x - y) / scale for x, y in zip(a["sample"], b["sample"], strict=True))
            total = abs(a["magnitude"] - b["magnitude"]) / max(1e-30, b["magnitude"])
            if not max(worst, total) <= TOLERANCE:
                found.append(f"{name}, result {number}: {worst:.1e} of the largest element off {judge}")
    return found


def print_table(workloads: list[Workload], rows: dict[str, dict[str, Any]], engines: list[str]) -> None:
    """The table in microseconds (minimum), the ratio to the better rival, and geometric means per group."""
    width = max(len(w.name) for w in workloads)
    print(
        "\nus per call, minimum / median over rounds; ratio = better of torch.compile and jax.jit over lamina (minima)"
    )
    print(f"{'':{width}}  " + "  ".join(f"{name:>17}" for name in engines) + "   ratio")
    ratios: dict[str, list[float]] = {}
    for workload in workloads:
        row = rows[workload.name]
        cells = []
        for name in engines:
            figures = row.get(name, {})
            if "min" in figures:
                cells.append(f"{figures['min'] * 1e6:8.1f}/{figures['median'] * 1e6:8.1f}")
            else:
                cells.append("failed" if figures.get("failed") else "-")
        rivals = [row[n]["min"] for n in ("torch.compile", "jax.jit") if "min" in row.get(n, {})]
        ratio = min(rivals) / row["lamina"]["min"] if rivals and "min" in row.get("lamina", {}) else None
        if ratio is not None:
            ratios.setdefault(workload.group, []).append(ratio)
        print(
            f"{workload.name:{width}}  "
            + "  ".join(f"{c:>17}" for c in cells)
            + f"   {'' if ratio is None else f'{ratio:.2f}x'}"
        )
    for group, values in ratios.items():
        print(f"geometric mean, {group}: {math.exp(sum(map(math.log, values)) / len(values)):.2f}x")


if __name__ == "__main__":
    sys.exit(main())
