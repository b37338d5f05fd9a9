"""Run one program once in this process and print the seconds its first call took (imports not counted)."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from workloads import WORKLOADS


def torch_like(module: Any, case: str) -> float:
    functional = module.nn.functional
    if case.startswith("sin"):
        x = module.ones(1000)
        start = time.perf_counter()
        module.compile(lambda v: module.sin(v * 2 + 1).sum())(x)
        return time.perf_counter() - start
    if case.startswith("GPT"):
        workload = next(w for w in WORKLOADS if w.name.startswith("GPT"))
        tensors = [
            module.from_numpy(a).requires_grad_(True) for a in workload.inputs(np.random.default_rng(0)).values()
        ]
        start = time.perf_counter()
        module.compile(workload.torch_like(module, functional))(*tensors)
        return time.perf_counter() - start
    nn = module.nn
    layer = lambda: nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True)  # noqa: E731
    model = nn.Sequential(*(layer() for _ in range(4)))
    x = module.randn(2, 128, 256)
    start = time.perf_counter()
    module.compile(model)(x).sum().backward()
    return time.perf_counter() - start


def jax_case(case: str) -> float:
    import jax
    import jax.numpy as jnp

    if case.startswith("sin"):
        x = jnp.ones(1000)
        start = time.perf_counter()
        jax.block_until_ready(jax.jit(lambda v: jnp.sin(v * 2 + 1).sum())(x))
        return time.perf_counter() - start
    workload = next(w for w in WORKLOADS if w.name.startswith("GPT"))
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

    start = time.perf_counter()
    jax.block_until_ready(jax.jit(function)(*arrays))
    return time.perf_counter() - start


def main() -> None:
    engine, case = sys.argv[1:3]
    if engine == "jax.jit":
        print(jax_case(case))
    elif engine == "lamina":
        import lamina

        print(torch_like(lamina, case))
    else:
        import torch

        print(torch_like(torch, case))


if __name__ == "__main__":
    main()
