"""What calls cost the host and the device where kernels are small: ``python tools/gpu/launches.py [torch]``.

First the launcher by itself: programs of equal launches, made by hand, with and without a CUDA graph. Then programs
compiled as launches, as usual, and by ``mode="reduce-overhead"``; with ``torch``, the same programs by torch.compile.
Microseconds, medians.
"""

from __future__ import annotations

import importlib
import linecache
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rows

LAMINA: dict[str, dict[str, Any]] = {
    "launches": {"options": {"cuda_graphs": False}},
    "default": {},
    "reduce-overhead": {"mode": "reduce-overhead"},
}
KERNEL = """
import triton.language as tl
def small(a, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(a + i, tl.load(a + i, i < n) + 1.0, i < n)
"""


def host(T: Any, run: Callable[[], Any], count: int) -> float:
    """Of a call; the device's queue is never full."""
    taken = []
    for _ in range(15):
        T.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        taken.append((time.perf_counter() - start) / count * 1e6)
    T.cuda.synchronize()
    return statistics.median(taken)


def device(T: Any, run: Callable[[], Any], count: int = 10) -> float:
    """Of a call among others."""
    taken = []
    for _ in range(8):
        start, end = T.cuda.Event(enable_timing=True), T.cuda.Event(enable_timing=True)
        T.cuda.synchronize()
        start.record()
        for _ in range(count):
            run()
        end.record()
        T.cuda.synchronize()
        taken.append(start.elapsed_time(end) * 1000 / count)
    return statistics.median(taken)


def chain(T: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A hundred kernels of 64 x 64."""

    def run(x: Any) -> Any:
        for _ in range(50):
            x = (x - x.sum(0)).sin()
            x = (x - x.sum(1, keepdim=True)).cos()
        return x

    return run, (T.randn(64, 64, device="cuda"),)


def tiny(T: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One kernel."""
    row = rows.ROWS["tiny call"](T)
    return row.run, row.inputs


def block(T: Any, batch: int, length: int, trains: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A block of a GPT in bfloat16: forward, or its gradients."""
    made = rows._Block(T, 768, 12).module

    def forward(x: Any) -> Any:
        with T.no_grad():
            return made(x)

    def gradients(x: Any, ct: Any) -> Any:
        return T.autograd.grad(made(x), (x, *made.parameters()), ct)

    x = rows._random(T, batch, length, 768, grad=trains)
    return (gradients, (x, rows._random(T, batch, length, 768))) if trains else (forward, (x,))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sin(x) + 2 y of 16": tiny,
    "chain of 100": chain,
    "block 1 x 64, forward": lambda T: block(T, 1, 64, False),
    "block 1 x 128, gradients": lambda T: block(T, 1, 128, True),
    "block 16 x 1024, gradients": lambda T: block(T, 16, 1024, True),
}


def launcher(T: Any) -> None:
    """Programs of equal launches."""
    from lamina_inductor.host.gpu import gpu_info, gpu_launcher

    x = T.zeros(16, device="cuda")
    T.compile(lambda x: x + 1)(x)  # joins launcher and tensors
    image = machine_code(gpu_info().sm)
    arguments = ((0, 0, -1, 0), (1, -1, -1, 0), (5, -1, -1, 0), (5, -1, -1, 0))
    for graph in (0, 2):
        for count in (1, 10, 100):
            run = gpu_launcher().Program(
                name="plan", device=0, inputs=((11, True, False, -1, (0,), (1,)),), outputs=(), sizes=(), slots=(16, 1),
                operations=(), constants=(), workspace=(1, -1, ()), kernels=(("small", image, 0, 32, 1),),
                descriptors=(), tables=(), steps=(("launch", (0, (1, 1, 1), arguments)),) * count, results=(),
                host_call=None, fail=None, adapt=None, checks=False, captured=graph,
            )  # fmt: skip
            for _ in range(3):
                run(x)
            text = f"{count} launches, {'as a graph' if graph else 'one by one'}"
            print(f"{text:<45}{host(T, lambda run=run: run(x), max(4, 400 // count)):9.2f}", flush=True)


def machine_code(sm: int) -> bytes:
    """Of the small kernel."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    linecache.cache["<small>"] = (len(KERNEL), None, KERNEL.splitlines(keepends=True), "<small>")
    namespace: dict[str, Any] = {}
    exec(compile(KERNEL, "<small>", "exec"), namespace)
    function = triton.jit(namespace["small"])
    source = ASTSource(function, {"a": "*fp32", "n": "i32", "B": "constexpr"}, {(2,): 128}, {})
    return triton.compile(source, target=GPUTarget("cuda", sm, 32), options={"num_warps": 1}).asm["cubin"]


def main() -> None:
    name = "torch" if "torch" in sys.argv[1:] else "lamina"
    T = importlib.import_module(name)
    modes = LAMINA if name == "lamina" else {k: v for k, v in LAMINA.items() if k != "launches"}
    print(f"{name:<45}{'host':>9}{'device':>9}")
    if name == "lamina":
        launcher(T)
    for title, make in PROGRAMS.items():
        fn, inputs = make(T)
        for mode, options in modes.items():
            run = T.compile(fn, **options)
            for _ in range(5):
                run(*inputs)
            call = lambda run=run, inputs=inputs: run(*inputs)  # noqa: E731
            print(f"{title + ', ' + mode:<45}{host(T, call, 5):9.1f}{device(T, call):9.1f}", flush=True)


if __name__ == "__main__":
    main()
