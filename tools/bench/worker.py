"""One engine in one process: prepares workloads and times them when told to.

Reads JSON lines from standard input: {"prepare": name}, {"time": count}, {"check": true}; answers each with a line.
It runs inside the engine's own environment and imports nothing of the project but the workloads.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np
from workloads import WORKLOADS, Workload

__all__ = ["ENGINES"]


def prepare_torch_like(module: Any, functional: Any, workload: Workload, compile: bool) -> tuple[Any, Any]:
    """A zero-argument call and a function that gives its results, for Lamina or PyTorch."""
    arrays = workload.inputs(np.random.default_rng(0))
    tensors = {name: module.from_numpy(array.copy()) for name, array in arrays.items()}
    for name in workload.grads:
        tensors[name].requires_grad_(True)
    function = workload.torch_like(module, functional)
    if compile:
        function = module.compile(function)
    values = list(tensors.values())

    def call() -> Any:
        for name in workload.grads:
            tensors[name].grad = None
        return function(*values)

    def results() -> list[np.ndarray]:
        for name in workload.written:  # calls before this one changed them
            with module.no_grad():
                tensors[name].copy_(module.from_numpy(arrays[name].copy()))
        made = call()
        out = [] if made is None else [made]
        out += [tensors[name].grad for name in workload.grads]
        out += [tensors[name] for name in workload.written]
        return [np.asarray(o.detach().numpy(), np.float64) for o in out]

    return call, results


def lamina_engine(workload: Workload, compile: bool = True) -> tuple[Any, Any]:
    import lamina

    return prepare_torch_like(lamina, lamina.nn.functional, workload, compile)


def torch_engine(workload: Workload, compile: bool = True) -> tuple[Any, Any]:
    import torch

    return prepare_torch_like(torch, torch.nn.functional, workload, compile)


def jax_engine(workload: Workload) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    arrays = [jnp.asarray(a) for a in workload.inputs(np.random.default_rng(0)).values()]

    function = jax.jit(workload.jax(jax, jnp))

    def call() -> Any:
        return jax.block_until_ready(function(*arrays))

    def results() -> list[np.ndarray]:
        made = call()
        return [np.asarray(a, np.float64) for a in jax.tree_util.tree_leaves(made)]

    return call, results


def numpy_engine(workload: Workload) -> tuple[Any, Any] | None:
    if workload.numpy is None:
        return None
    named = workload.inputs(np.random.default_rng(0))
    arrays = list(named.values())
    function = workload.numpy

    def call() -> Any:
        return function(*arrays)

    def results() -> list[np.ndarray]:
        fresh = workload.inputs(np.random.default_rng(0))
        for name in workload.written:
            named[name][...] = fresh[name]
        made = call()
        out = [] if made is None else [made]
        return [np.asarray(o, np.float64) for o in (*out, *[named[name] for name in workload.written])]

    return call, results


ENGINES = {
    "lamina": lamina_engine,
    "lamina eager": lambda w: lamina_engine(w, compile=False),
    "torch.compile": torch_engine,
    "torch eager": lambda w: torch_engine(w, compile=False),
    "jax.jit": jax_engine,
    "numpy": numpy_engine,
}


def timed(call: Any, rounds: int, inner: int) -> dict[str, list[float]]:
    """Seconds per call of each round: on the clock, and of all threads' processor time."""
    times, cpu = [], []
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        for _ in range(inner):
            call()
        cpu.append((time.process_time() - used) / inner)
        times.append((time.perf_counter() - start) / inner)
    return {"times": times, "cpu": cpu}


SAMPLE = 1009
"""A result is compared by so many elements, evenly spread, and by its sum of magnitudes."""


def summary(result: np.ndarray) -> dict[str, Any]:
    """What another engine's result must agree with."""
    flat = result.reshape(-1)
    chosen = flat[np.linspace(0, flat.size - 1, min(SAMPLE, flat.size)).astype(np.int64)] if flat.size else flat
    return {"size": flat.size, "magnitude": float(np.abs(flat).sum()), "sample": chosen.tolist()}


def serve(engine: str) -> None:
    """Answer requests until standard input ends."""
    call: Any = None
    results: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if "prepare" in request:
            workload = next(w for w in WORKLOADS if w.name == request["prepare"])
            start = time.perf_counter()
            made = ENGINES[engine](workload)
            if made is None:
                answer = {"skip": True}
            else:
                call, results = made
                call()
                answer = {"first": time.perf_counter() - start}
                for _ in range(3):
                    call()
                start = time.perf_counter()
                call()
                answer["once"] = time.perf_counter() - start
        elif "time" in request:
            answer = timed(call, request["time"], request.get("inner", 1))
        elif "check" in request:
            answer = {"check": [summary(r) for r in results()]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:  # so many cores: before anything asks how many there are
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[2])])
    serve(sys.argv[1])
