"""Budgets of what runs at every call: guards, the host program, eager operators; and of imports."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from budget_row import Row, call_times, slope

import lamina
from lamina_inductor.backends.cpp import supports
from lamina_inductor.schedule.program import build_program

__all__ = ["CALL_ROWS"]


def _newest_artifact() -> Any:
    return next(iter(lamina.compiler.records()[-1].artifacts.values()))


def _guards_of_last_call() -> int:
    return len(lamina.compiler.events()[-1].guards)


def guard_rows() -> Iterator[Row]:
    """A compiled call less the artifact: for two tensors, and as the number of guards grows."""
    with lamina.no_grad():
        compiled = lamina.compile(lambda x, y: lamina.sin(x) + 2 * y)
        x, y = lamina.ones(16), lamina.ones(16)
        compiled(x, y)
        artifact, guards = _newest_artifact(), _guards_of_last_call()
        direct, whole, inside = call_times(
            [lambda: lamina.sin(x) + 2 * y, lambda: compiled(x, y), lambda: artifact.function(x, y)]
        )
        yield Row(f"guards and dispatch of a call with {guards} guards", whole - inside, 1.5 + 0.02 * guards)
        yield Row("a compiled call over the same work in eager (issue 2)", whole - direct, 5)
        points = [_sum_of_parameters(count) for count in (50, 300)]
    yield Row("a guard of a module's parameters (loads included)", 1e3 * slope(*points), 20, "ns")
    points = [_optimizer_step(count) for count in (50, 300)]
    yield Row("a guard of AdamW's state (loads included)", 1e3 * slope(*points), 20, "ns")


def _sum_of_parameters(count: int) -> tuple[float, int]:
    lamina.compiler.reset()
    parameters = [lamina.nn.Parameter(lamina.ones(4)) for _ in range(count)]
    module = lamina.nn.ParameterList(parameters)
    compiled = lamina.compile(lambda: sum(p.sum() for p in module))
    compiled()
    artifact, tensors = _newest_artifact(), [p.detach() for p in parameters]
    whole, inside = call_times([compiled, lambda: artifact.function(*tensors)])
    return whole - inside, _guards_of_last_call()


def _optimizer_step(count: int) -> tuple[float, int]:
    lamina.compiler.reset()
    parameters = [lamina.ones(4, requires_grad=True) for _ in range(count)]
    optimizer = lamina.optim.AdamW(parameters, lr=1e-3)
    for p in parameters:
        p.grad = lamina.ones(4)
    compiled = lamina.compile(lambda: optimizer.step())
    compiled()
    compiled()
    artifact = _newest_artifact()
    guards = _guards_of_last_call()
    inputs = _inputs_like(node.spec for node in lamina.compiler.records()[-1].stages["captured"].placeholders)
    whole, inside = call_times([compiled, lambda: artifact.function(*inputs)])
    return whole - inside, guards


def _inputs_like(specs: Any) -> list[Any]:
    """Tensors of these specs, each with memory of its own."""
    return [lamina.ones(spec.shape, dtype=spec.dtype) for spec in specs]


def host_rows() -> Iterator[Row]:
    """Programs of many launches over four elements."""

    def chain(x: Any, count: int) -> Any:
        for _ in range(count):
            x = lamina.softmax(x.cumsum(0) * 0.5, 0).t()
        return x

    points = []
    with lamina.no_grad():
        x = lamina.ones(2, 2)
        for count in (10, 60):
            run = lamina.compile(lambda x, n=count: chain(x, n))
            run(x)
            record = lamina.compiler.records()[-1]
            program = build_program(
                next(g for stage, g in record.stages.items() if stage.startswith("prims:")), name="f", supports=supports
            )
            launches = sum(len(getattr(step, "parts", (step,))) for step in program.steps)
            artifact = _newest_artifact()
            points.append((call_times([lambda a=artifact: a.function(x)])[0], launches))
    yield Row("the host program, a kernel (its arithmetic included)", slope(*points), 0.2)


def eager_rows() -> Iterator[Row]:
    """One operator over NumPy's own call."""
    a, b, m = np.ones(16, np.float32), np.ones(16, np.float32), np.ones((4, 4), np.float32)
    x, y, n = lamina.ones(16), lamina.ones(16), lamina.ones(4, 4)
    g, h = lamina.ones(16, requires_grad=True), lamina.ones(4, 4, requires_grad=True)
    table: list[tuple[str, Callable[[], Any], Callable[[], Any], Callable[[], Any]]] = [
        ("add", lambda: np.add(a, b), lambda: lamina.add(x, y), lambda: lamina.add(g, y)),
        ("mul", lambda: np.multiply(a, b), lambda: lamina.mul(x, y), lambda: lamina.mul(g, y)),
        ("exp", lambda: np.exp(a), lambda: lamina.exp(x), lambda: lamina.exp(g)),
        ("sum", lambda: a.sum(), lambda: x.sum(), lambda: g.sum()),
        ("matmul", lambda: m @ m, lambda: n @ n, lambda: h @ n),
    ]
    for name, numpy, plain, recorded in table:
        base, over, with_gradients = call_times([numpy, plain, recorded])
        yield Row(f"{name} over NumPy's", over - base, 3)
        yield Row(f"{name} with gradients over NumPy's", with_gradients - base, 6)


def import_rows() -> Iterator[Row]:
    """Imports in new processes whose bytecode files are there."""
    for name, before, budget in (("lamina_fx", "", 50), ("lamina", "numpy, ml_dtypes", 150)):
        setup = f"import {before}\n" if before else ""
        code = f"import time\n{setup}t = time.process_time()\nimport {name}\nprint(time.process_time() - t)"
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment.setdefault("PYTHONPYCACHEPREFIX", os.path.join(tempfile.gettempdir(), "lamina-bench-bytecode"))
        run = [sys.executable, "-c", code]
        times = [float(subprocess.check_output(run, env=environment, text=True)) for _ in range(6)][1:]
        yield Row(f"import {name}{f' (after {before})' if before else ''}", 1e3 * min(times), budget, "ms")


CALL_ROWS: dict[str, Callable[[], Iterator[Row]]] = {
    "guards": guard_rows,
    "host program": host_rows,
    "eager": eager_rows,
    "imports": import_rows,
}
"""Groups of rows by name."""
