"""Where the demo's compiled step spends its time: per kernel and product, beside bytes moved and operations.

    python tools/bench/profile_step.py [--layers 4] [--rounds 5] [--top 30]

The second graph of the step is the one that runs every step; its program is compiled again with a clock between
steps. Rates stand beside the machine's own: a copy of a large array, and a large product by NumPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "demo"))

from gpt import GPTConfig  # noqa: E402
from train_gpt import make_state  # noqa: E402

import lamina  # noqa: E402
from lamina_inductor import CppBackend  # noqa: E402
from lamina_inductor.inspect.timing import StepTime, time_steps  # noqa: E402


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--top", type=int, default=30)
    options = parser.parse_args()
    config = GPTConfig(vocabulary=96, layers=options.layers)
    whole = run_step(config, options.rounds)
    record = lamina.compiler.records()[-1]
    graph = next(g for name, g in reversed(record.stages.items()) if name.startswith("prims:"))
    program = CppBackend().program(graph, name="step")
    times = time_steps(program, rounds=options.rounds)
    origins = {k.name: ", ".join(dict.fromkeys(o[1] for o in k.origins)) for k in program.kernels}
    bandwidth, peak = machine()
    print(f"whole call {whole * 1e3:.1f} ms; steps {sum(t.seconds for t in times) * 1e3:.1f} ms in {len(times)} steps")
    print(f"workspace {program.workspace / 1e6:.1f} MB; this machine: {bandwidth:.1f} GB/s, {peak:.0f} Gflop/s")
    for kind, group in groups(times).items():
        print(f"{kind:12} {sum(t.seconds for t in group) * 1e3:8.2f} ms in {len(group)}")
    print_table(times, origins, options.top, bandwidth, peak)
    return 0


def run_step(config: GPTConfig, rounds: int) -> float:
    """Compile the demo's step; the least seconds of a call."""
    state = make_state(config, compiled=True)
    rng = np.random.default_rng(0)
    sizes = (config.batch, config.context)
    x, y = (lamina.from_numpy(rng.integers(0, config.vocabulary, sizes)) for _ in range(2))
    taken = []
    for _ in range(rounds + 3):
        start = time.perf_counter()
        state["run"](x, y)
        taken.append(time.perf_counter() - start)
    return min(taken[3:])


def machine() -> tuple[float, float]:
    """Gigabytes a second of a copy (read and written) and Gflop/s of a product, all threads NumPy takes."""
    source, target = np.ones(1 << 24, np.float32), np.empty(1 << 24, np.float32)
    square = np.ones((1024, 1024), np.float32)
    copy = min(clock(lambda: np.copyto(target, source)) for _ in range(5))
    product = min(clock(lambda: square @ square) for _ in range(5))
    return 2 * source.nbytes / copy / 1e9, 2 * 1024**3 / product / 1e9


def clock(run: object) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run()  # type: ignore[operator]
    return time.perf_counter() - start


def groups(times: tuple[StepTime, ...]) -> dict[str, list[StepTime]]:
    """Steps by their kind's first word."""
    found: dict[str, list[StepTime]] = defaultdict(list)
    for entry in times:
        found[entry.kind.split()[0]].append(entry)
    return found


def print_table(times: tuple[StepTime, ...], origins: dict[str, str], top: int, bandwidth: float, peak: float) -> None:
    """The dearest steps; ``bound``: the share of its time that memory or arithmetic alone would need."""
    print(f"{'step':>4} {'ms':>8} {'MB':>8} {'GB/s':>6} {'Gflop/s':>8} {'bound':>6}  what")
    for t in sorted(times, key=lambda t: -t.seconds)[:top]:
        bound = max(t.bytes / bandwidth / 1e9, t.flops / peak / 1e9) / max(t.seconds, 1e-9)
        fused = "; ".join(f"{name}: {origins[name]}" for name in t.kernels)
        figures = f"{t.index:4} {t.seconds * 1e3:8.3f} {t.bytes / 1e6:8.2f} {t.gigabytes_per_second:6.1f}"
        print(f"{figures} {t.gigaflops:8.1f} {min(bound, 9.99):6.0%}  {t.kind} {fused}"[:230])


if __name__ == "__main__":
    sys.exit(main())
