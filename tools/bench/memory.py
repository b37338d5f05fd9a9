"""Peak memory of the demo's training step: eager, compiled, and PyTorch's of both where its environment is given.

    python tools/bench/memory.py
    LAMINA_BENCH_TORCH=path/to/python python tools/bench/memory.py --engines "lamina,lamina eager,torch eager"

Each engine is a process of its own. ``peak`` is the highest resident memory while steps run, over what the process
held before its first step (imports, model); the peak of the first steps, with compilation, stands beside it.
Linux only: the kernel keeps the high-water mark, and resets it when told to.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SETTLE = 36
"""Steps before the peak is taken: a workspace that only the first call needed has been given back by then."""
ENGINES = ("lamina", "lamina eager", "torch.compile", "torch eager")


def main() -> int:
    """Print the table; returns 1 when the compiled step needs more than the eager one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ENGINES if os.environ.get("LAMINA_BENCH_TORCH") else ENGINES[:2]
    parser.add_argument("--engines", default=",".join(default), help="comma-separated: " + ", ".join(ENGINES))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker)))
        return 0
    rows = {engine: ask(engine) for engine in options.engines.split(",")}
    print("MB over what the process held before its first step")
    print(f"{'':14} {'peak':>8} {'first steps':>12} {'kept after':>11}")
    for engine, row in rows.items():
        workspace = f"   workspace {row['workspace'] / 1e6:.1f}" if "workspace" in row else ""
        figures = f"{row['peak'] / 1e6:8.1f} {row['first'] / 1e6:12.1f} {row['kept'] / 1e6:11.1f}"
        print(f"{engine:14} {figures}{workspace}")
    if {"lamina", "lamina eager"} <= set(rows):
        ratio = rows["lamina"]["peak"] / rows["lamina eager"]["peak"]
        print(f"compiled / eager: {ratio:.2f}")
        return 0 if ratio <= 1.0 else 1
    return 0


def ask(engine: str) -> dict[str, Any]:
    """The figures of one engine, from a process of its own."""
    python = sys.executable
    if engine.startswith("torch"):
        python = os.environ.get("LAMINA_BENCH_TORCH") or sys.exit("set LAMINA_BENCH_TORCH to a Python with PyTorch")
    command = [python, str(Path(__file__).resolve()), "--worker", engine]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(engine: str) -> dict[str, Any]:
    """Run the step in this process."""
    step, module = training_step(engine)
    gc.collect()
    before = resident("VmRSS")
    reset_peak()
    for _ in range(3):
        step()
    first = resident("VmHWM") - before
    for _ in range(SETTLE):
        step()
    gc.collect()
    reset_peak()
    for _ in range(4):
        step()
    row: dict[str, Any] = {"peak": resident("VmHWM") - before, "first": first, "kept": resident("VmRSS") - before}
    if engine == "lamina":
        row["workspace"] = workspace_bytes(module)
    return row


def training_step(engine: str) -> tuple[Any, Any]:
    """The demo's step for an engine, ready to call, and the engine's module."""
    sys.path.insert(0, str(HERE.parent / "demo"))
    if engine.startswith("torch"):
        import torch as module

        for name in ("", ".nn", ".nn.functional"):
            sys.modules["lamina" + name] = sys.modules["torch" + name]
        module.set_num_threads(len(os.sched_getaffinity(0)))
    else:
        import lamina as module  # type: ignore[no-redef]
    from gpt import GPT, GPTConfig

    config = GPTConfig(vocabulary=96)
    module.manual_seed(0)
    model = GPT(config)
    optimizer = module.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

    def step(x: Any, y: Any) -> Any:
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run = step if "eager" in engine else module.compile(step)
    window = np.random.default_rng(0).integers(0, 96, (config.batch, config.context + 1))
    x, y = (module.from_numpy(part.copy()) for part in (window[:, :-1], window[:, 1:]))
    return lambda: float(run(x, y)), module


def workspace_bytes(module: Any) -> int:
    """The workspace of the program that ran last."""
    from lamina_inductor import CppBackend

    record = module.compiler.records()[-1]
    graph = next(g for name, g in reversed(record.stages.items()) if name.startswith("prims:"))
    return int(CppBackend().program(graph, name="step").workspace)


def reset_peak() -> None:
    """Start the high-water mark again."""
    Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> int:
    """Bytes of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the kernel does not report {field}")


if __name__ == "__main__":
    sys.exit(main())
