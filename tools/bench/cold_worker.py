"""Run one program once in this process and print the seconds its first call took: wall time, then processor time of
this process and its children (imports of the engine not counted).

python tools/bench/cold_worker.py lamina "GPT block forward + backward" [--profile]
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from os import times
from pathlib import Path
from typing import Any

import numpy as np
from workloads import WORKLOADS

First = Callable[[], Any]
"""Compiles and calls for the first time."""


def gpt_workload() -> Any:
    return next(w for w in WORKLOADS if w.name.startswith("GPT"))


def torch_like(module: Any, case: str) -> First:
    """The case for Lamina or PyTorch."""
    if case.startswith("sin"):
        x = module.ones(1000)
        return lambda: module.compile(lambda v: module.sin(v * 2 + 1).sum())(x)
    if case.startswith("GPT block"):
        workload = gpt_workload()
        tensors = [
            module.from_numpy(a).requires_grad_(True) for a in workload.inputs(np.random.default_rng(0)).values()
        ]
        block = workload.torch_like(module, module.nn.functional)
        return lambda: module.compile(block)(*tensors)
    nn = module.nn
    layer = lambda: nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True)  # noqa: E731
    model = nn.Sequential(*(layer() for _ in range(4)))
    x = module.randn(2, 128, 256)
    return lambda: module.compile(model)(x).sum().backward()


def training_step() -> First:
    """The demo's whole step: forward, backward and AdamW of a 4-layer GPT."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo"))
    from gpt import GPTConfig
    from train_gpt import make_state

    config = GPTConfig(vocabulary=96)
    step = make_state(config, compiled=True)["run"]
    import lamina

    window = np.random.default_rng(0).integers(0, 96, (config.batch, config.context + 1))
    x, y = lamina.from_numpy(window[:, :-1].copy()), lamina.from_numpy(window[:, 1:].copy())
    return lambda: step(x, y)


def jax_case(case: str) -> First:
    """The case for JAX."""
    import jax
    import jax.numpy as jnp

    if case.startswith("sin"):
        x = jnp.ones(1000)
        return lambda: jax.block_until_ready(jax.jit(lambda v: jnp.sin(v * 2 + 1).sum())(x))
    workload = gpt_workload()
    arrays = [jnp.asarray(a) for a in workload.inputs(np.random.default_rng(0)).values()]
    block = workload.jax(jax, jnp)
    function = block
    if case.startswith("4"):
        single = block

        def function(*args: Any) -> Any:
            total, grads = single(*args)
            for _ in range(3):
                more, again = single(args[0] + 0.1 * grads[0], *args[1:])
                total, grads = total + more, [a + b for a, b in zip(grads, again, strict=True)]
            return total, grads

    return lambda: jax.block_until_ready(jax.jit(function)(*arrays))


def only_imports(engine: str) -> None:
    """Load what the engine loads, so that its bytecode files are there."""
    if engine == "jax.jit":
        jax_case("sin")()
    elif engine == "lamina":
        import lamina

        torch_like(lamina, "sin")()
        torch_like(lamina, "4")()
    else:
        import torch._inductor.compile_fx  # noqa: F401


def first_call(engine: str, case: str) -> First:
    """What is timed."""
    if engine == "jax.jit":
        return jax_case(case)
    if engine == "lamina":
        import lamina

        return training_step() if case == "GPT training step" else torch_like(lamina, case)
    import torch

    return torch_like(torch, case)


def main() -> None:
    engine, case = sys.argv[1:3]
    if case == "imports":
        only_imports(engine)
        return
    run = first_call(engine, case)
    profile = cProfile.Profile() if "--profile" in sys.argv else None
    before, start = times(), time.perf_counter()
    if profile is not None:
        profile.runcall(run)
    else:
        run()
    wall, after = time.perf_counter() - start, times()
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(60)
    print(wall, sum(after[:4]) - sum(before[:4]))


if __name__ == "__main__":
    main()
