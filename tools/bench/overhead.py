"""What a call costs beside its arithmetic: eager dispatch, guards, the launcher, autograd around a compiled graph.

python tools/bench/overhead.py            every table
python tools/bench/overhead.py calls      one of: imports, eager, composites, calls, many, step

Microseconds; each the least of several runs of a loop, alternated within one process (compare within one output only).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lamina

__all__ = ["main"]

Row = tuple[str, Callable[[], Any]]


def least(rows: list[Row], seconds: float = 0.02, rounds: int = 9) -> list[float]:
    """Microseconds per call of each row; the rows take turns."""
    timers = [timeit.Timer(call) for _, call in rows]
    once = [min(timer.repeat(3, 1)) for timer in timers]
    counts = [max(1, int(seconds / max(t, 1e-7))) for t in once]
    best = [float("inf")] * len(rows)
    for _ in range(rounds):
        for k, timer in enumerate(timers):
            best[k] = min(best[k], timer.timeit(counts[k]) / counts[k])
    return [1e6 * t for t in best]


def table(title: str, rows: list[Row], over: int | None = None) -> None:
    """Print the rows; ``over``: also the difference to that row."""
    print(title)
    times = least(rows)
    for (name, _), time in zip(rows, times, strict=True):
        more = "" if over is None else f"   {time - times[over]:+9.2f}"
        print(f"  {name:44}{time:9.2f}{more}")


def imports() -> None:
    """Processor time of imports in new processes."""
    print("import, ms of processor time (least of 5)")
    for name, before in (("lamina_fx", ""), ("numpy", ""), ("lamina", "numpy, ml_dtypes"), ("lamina.entry", "lamina")):
        setup = f"import {before}\n" if before else ""
        code = f"import time\n{setup}t = time.process_time()\nimport {name}\nprint(time.process_time() - t)"
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment.setdefault("PYTHONPYCACHEPREFIX", os.path.join(tempfile.gettempdir(), "lamina-bench-bytecode"))
        run = [sys.executable, "-c", code]
        times = [float(subprocess.check_output(run, env=environment, text=True)) for _ in range(6)][1:]
        print(f"  {name + (' after ' + before if before else ''):44}{1e3 * min(times):9.1f}")


def eager() -> None:
    """One operator, beside NumPy's own call."""
    a, b = np.ones(16, np.float32), np.ones(16, np.float32)
    x, y = lamina.ones(16), lamina.ones(16)
    g = lamina.ones(16, requires_grad=True)
    m, n = np.ones((4, 4), np.float32), lamina.ones(4, 4)
    table("eager on 16 elements: NumPy, Lamina, Lamina with gradients", [
        ("numpy add", lambda: np.add(a, b)), ("add", lambda: lamina.add(x, y)), ("x + y", lambda: x + y),
        ("add, requires grad", lambda: g + y),
        ("numpy exp", lambda: np.exp(a)), ("exp", lambda: lamina.exp(x)), ("exp, grad", lambda: lamina.exp(g)),
        ("numpy sum", lambda: a.sum()), ("sum", lambda: x.sum()), ("sum, grad", lambda: g.sum()),
        ("numpy matmul", lambda: m @ m), ("matmul", lambda: n @ n),
    ])  # fmt: skip


def composites() -> None:
    """Functions with a body of several operators."""
    F = lamina.nn.functional
    x, w = lamina.ones(4, 16), lamina.ones(16)
    t = lamina.tensor([0, 1, 2, 3])
    q = lamina.ones(1, 2, 4, 8)
    table("eager composites on 64 elements", [
        ("relu", lambda: F.relu(x)), ("gelu", lambda: F.gelu(x)), ("softmax", lambda: F.softmax(x, dim=-1)),
        ("layer_norm", lambda: F.layer_norm(x, (16,), w, w)), ("cross_entropy", lambda: F.cross_entropy(x, t)),
        ("linear", lambda: F.linear(x, lamina_weight(), w)), ("dropout", lambda: F.dropout(x, 0.5)),
        ("attention", lambda: F.scaled_dot_product_attention(q, q, q)),
        ("x[0]", lambda: x[0]), ("x[:, 1:3]", lambda: x[:, 1:3]), ("view", lambda: x.view(64)),
        ("zeros_like", lambda: lamina.zeros_like(x)), ("x.add_(1)", lambda: x.add_(0.0)),
    ])  # fmt: skip


_WEIGHT: list[Any] = []


def lamina_weight() -> Any:
    """A weight for ``linear``, made once."""
    if not _WEIGHT:
        _WEIGHT.append(lamina.ones(16, 16))
    return _WEIGHT[0]


def calls() -> None:
    """One call of ``sin(x) + 2 * y`` on 16 elements: eager, compiled, and the artifact alone."""
    f = lambda x, y: lamina.sin(x) + 2 * y  # noqa: E731
    x, y = lamina.ones(16), lamina.ones(16)
    compiled = lamina.compile(f)
    compiled(x, y)
    artifact = last_artifact()
    table("sin(x) + 2 * y on 16 elements (and beside eager)", [
        ("eager", lambda: f(x, y)), ("compiled", lambda: compiled(x, y)),
        ("  of it: the launcher and the kernel", lambda: artifact.function(x, y)),
    ], over=0)  # fmt: skip
    gx = lamina.ones(16, requires_grad=True)
    compiled(gx, y)
    compiled(gx, y).sum().backward()
    forward = last_artifact("backward")
    table("the same, x requires grad", [
        ("eager forward", lambda: f(gx, y)), ("compiled forward", lambda: compiled(gx, y)),
        ("eager forward + backward", lambda: f(gx, y).sum().backward()),
        ("compiled forward + backward", lambda: compiled(gx, y).sum().backward()),
        ("  of it: sum().backward()", lambda: (gx + 0.0).sum().backward()),
    ], over=0)  # fmt: skip
    del forward


def last_artifact(part: str = "") -> Any:
    """What the newest compiled graph runs."""
    record = lamina.compiler.records()[-1]
    return next(a for name, a in record.artifacts.items() if part in name)


def many() -> None:
    """Steps over many small tensors: what an input costs in guards and in the launcher."""
    for count in (10, 100, 300):
        parameters = [lamina.ones(4, requires_grad=True) for _ in range(count)]
        optimizer = lamina.optim.AdamW(parameters, lr=1e-3)
        for p in parameters:
            p.grad = lamina.ones(4)

        def step(optimizer: Any = optimizer) -> None:
            optimizer.step()

        run = lamina.compile(step)
        run()
        run()
        record = lamina.compiler.records()[-1]
        (event,) = [e for e in lamina.compiler.events() if e.function.endswith("step")][-1:]
        table(
            f"AdamW over {count} tensors of 4 elements: {len(record.stages['captured'].placeholders)} inputs, "
            f"{len(event.guards)} guards",
            [("compiled step", run), ("eager step", step)],
        )
        module = lamina.nn.ParameterList(parameters)

        def total(module: Any = module) -> Any:
            return sum(p.sum() for p in module)

        with lamina.no_grad():
            compiled = lamina.compile(total)
            compiled()
            artifact = last_artifact()
            tensors = [p.detach() for p in parameters]
            table(f"sum over {count} parameters", [
                ("compiled", compiled), ("  of it: the launcher and the kernel", lambda: artifact.function(*tensors)),  # noqa: B023
            ])  # fmt: skip
        lamina.compiler.reset()


def step() -> None:
    """The demo's whole training step with sizes so small that little but overhead is left."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo"))
    from gpt import GPTConfig
    from train_gpt import make_state

    config = GPTConfig(vocabulary=16, heads=2, width=8, context=4, batch=1)
    run = make_state(config, compiled=True)["run"]
    x = lamina.zeros(1, 4, dtype=lamina.int64)
    for _ in range(3):
        run(x, x)
    record = lamina.compiler.records()[-1]
    (part,) = record.artifacts
    specs = [node.spec for node in record.stages[f"prims:{part}"].placeholders]
    inputs = [lamina.zeros(spec.shape, dtype=spec.dtype) for spec in specs]
    artifact = last_artifact()
    event = [e for e in lamina.compiler.events() if e.function.endswith("step")][-1]
    table(
        f"GPT training step, width 8, 4 tokens: {len(inputs)} inputs, {len(event.guards)} guards",
        [
            ("whole call", lambda: run(x, x)),
            ("  of it: the launcher and the kernels", lambda: artifact.function(*inputs)),
        ],
    )


TABLES = {"imports": imports, "eager": eager, "composites": composites, "calls": calls, "many": many, "step": step}


def main() -> None:
    """Print the chosen tables."""
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main()
