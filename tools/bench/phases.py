"""Where the first call's time goes: processor seconds per phase of one compilation, in this process.

python tools/bench/phases.py "GPT training step"         a case of cold_worker.py, caches empty
python tools/bench/phases.py "GPT training step" --warm  the same with what an earlier process left in the cache

Phases nest as the table's indentation shows; what a phase starts (the C++ compiler) is a column of its own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["PHASES", "Clock", "watch"]

PHASES = (
    ("capture", "lamina_dynamo.capture", "Capture._compile"),
    ("  graph compiler", "lamina.wiring", "GraphCompiler.__call__"),
    ("    trace joint graph", "lamina_aot.compile", "trace_joint"),
    ("    partition", "lamina_aot.compile", "partition"),
    ("    decompose and clean up", "lamina.wiring", "lower_graph"),
    ("    backend", "lamina_inductor.backend", "CppBackend.compile"),
    ("      cache key", "lamina_inductor.backend", "graph_key"),
    ("      lower and schedule", "lamina_inductor.schedule.program", "build_program"),
    ("      print C++", "lamina_inductor.backends.cpp.compile", "print_program"),
    ("      describe", "lamina_inductor.backends.cpp.compile", "describe"),
    ("      C++ compiler", "lamina_inductor.backends.cpp.toolchain", "Toolchain.build"),
    ("      open", "lamina_inductor.artifact", "Artifact.open"),
)
"""Label, module and attribute of each watched function."""


@dataclass
class Clock:
    """Sums of one phase; a call inside a call of the same phase is not counted twice."""

    calls: int = 0
    seconds: float = 0.0
    children: float = 0.0
    wall: float = 0.0
    depth: int = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            self.depth += 1
            start = (time.process_time(), _child_seconds(), time.perf_counter())
            try:
                return function(*args, **kwargs)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.process_time() - start[0]
                    self.children += _child_seconds() - start[1]
                    self.wall += time.perf_counter() - start[2]

        return timed


def _child_seconds() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def watch() -> dict[str, Clock]:
    """Wrap every phase's function where it is found; returns the clocks by label."""
    clocks = {}
    for label, module_name, path in PHASES:
        owner: Any = importlib.import_module(module_name)
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        clock = clocks[label] = Clock()
        static = isinstance(vars(owner).get(name), staticmethod)
        timed = clock.wrap(getattr(owner, name))
        setattr(owner, name, staticmethod(timed) if static else timed)
    return clocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", default="GPT block forward + backward")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        if not options.warm:
            os.environ["LAMINA_CACHE_DIR"] = folder
        report(options.case)


def report(case: str) -> None:
    """Run the case once and print the table."""
    from cold_worker import first_call

    run = first_call("lamina", case)
    start = time.process_time()
    import lamina
    import lamina.entry
    import lamina.frontend
    import lamina_inductor.schedule.program  # noqa: F401

    print(f"{'imports at compile()':28}        {1e3 * (time.process_time() - start):8.0f} ms")
    clocks = watch()
    whole = Clock()
    whole.wrap(run)()
    print(f"{'phase':28}  calls  own CPU ms  children ms  wall ms")
    for label, clock in {**clocks, "first call": whole}.items():
        figures = f"{1e3 * clock.seconds:12.0f}{1e3 * clock.children:13.0f}{1e3 * clock.wall:9.0f}"
        print(f"{label:28}  {clock.calls:5}{figures}")
    for record in lamina.compiler.records():
        sizes = ", ".join(f"{stage} {len(list(graph.nodes))}" for stage, graph in record.stages.items())
        kernels = ", ".join(f"{part} {len(a.kernels)}" for part, a in record.artifacts.items())
        print(f"nodes: {sizes}; kernels: {kernels}")


if __name__ == "__main__":
    main()
