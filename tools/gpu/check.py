"""Compiles the whole corpus on the GPU and compares with the references: ``python tools/gpu/check.py [--samples 2]``.

Samples of every primitive, the graphs of the Triton tests, and the programs of the launcher's tests, as users write
them (those also in eager). What fails is listed; a line with the counts comes last.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2] / "packages"
sys.path[:0] = [str(ROOT / "lamina-inductor" / "tests"), str(ROOT / "lamina" / "tests" / "gpu")]

from tracing import copied, trace  # noqa: E402
from triton_corpus import CASES, OPERATORS, graph_of  # noqa: E402

import lamina  # noqa: E402
from lamina.gpu import join_gpu  # noqa: E402
from lamina_fx import Interpreter  # noqa: E402
from lamina_inductor.backends.triton import TritonBackend  # noqa: E402
from lamina_inductor.backends.triton.workers import compile_kernels  # noqa: E402
from lamina_inductor.host.gpu import gpu_info  # noqa: E402
from lamina_prims import operator  # noqa: E402
from lamina_prims.modes import creating  # noqa: E402

TOLERANCE = {8: 1e-11, 4: 2e-5, 2: 1e-2, 1: 1e-1}


def difference(got: Any, want: Any) -> str | None:
    """None when they are as near as they should be."""
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{np.sum(got != want)} of {got.size} differ"
    tolerance = TOLERANCE[want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)]
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        near = np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if near else f"differ by {np.nanmax(np.abs(got - want)):.2e}"


def check_graph(graph: Any, arrays: list[Any]) -> str | None:
    """What is wrong with a graph's results."""
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[copied(a) for a in arrays])
    artifact = TritonBackend().compile(graph)
    results = artifact(*[lamina.from_numpy(copied(a)) for a in arrays])
    lamina.cuda.synchronize()
    pairs = [(g, w) for g, w in zip(results, wanted, strict=True) if isinstance(g, lamina.Tensor)]
    found = [difference(g.cpu().numpy(), w) for g, w in pairs]
    return "; ".join(f"result {k}: {text}" for k, text in enumerate(found) if text) or None


def graphs(samples: int) -> dict[str, Callable[[], tuple[Any, list[Any]]]]:
    """Name -> graph and inputs, of the corpus and of the operators' samples."""
    found: dict[str, Any] = {
        f"case {name}": (graph_of(fn, inputs), list(inputs)) for name, (fn, inputs, _) in CASES.items()
    }
    for id in OPERATORS:
        for number, sample in enumerate(operator(id).samples(np.random.default_rng(0))):
            if number >= samples:
                break
            graph, arrays = trace(operator(id), *sample.args, **sample.kwargs)
            if arrays and not any(a.dtype.name.startswith("float8") for a in arrays):
                found[f"{id} {number}"] = (graph, arrays)
    return found


def compile_ahead(found: dict[str, Any]) -> None:
    """All kernels at once, by all processors: what is compiled then is in the compiler's own cache."""
    kernels = {}
    for graph, _ in found.values():
        for kernel in TritonBackend().emit(graph).kernels:
            kernels[kernel.source, kernel.parameters] = kernel
    begin = time.perf_counter()
    try:
        compile_kernels(list(kernels.values()), gpu_info().sm)
    except RuntimeError as error:
        print(f"compiling ahead: {error}"[:300])
    print(f"{len(kernels)} kernels compiled in {time.perf_counter() - begin:.1f} s", flush=True)


def program_checks() -> dict[str, Callable[[], str | None]]:
    """The programs of the launcher's tests, eager and compiled, on the GPU against the CPU."""
    from test_gpu_programs import PROGRAMS

    def check(fn: Any, inputs: Any, wrap: Any) -> str | None:
        wanted = fn(*inputs)
        got = wrap(fn)(*[i.cuda() if isinstance(i, lamina.Tensor) else i for i in inputs])
        pairs = zip(*[r if isinstance(r, tuple) else (r,) for r in (got, wanted)], strict=True)
        found = [difference(a.detach().cpu().numpy(), b.detach().numpy()) for a, b in pairs]
        return "; ".join(f"result {k}: {text}" for k, text in enumerate(found) if text) or None

    wraps = {
        "eager": lambda f: f,
        "compiled": lamina.compile,
        "graphs": lambda f: _twice(lamina.compile(f, mode="reduce-overhead")),
    }
    return {
        f"{how} {name}": lambda fn=fn, inputs=inputs, wrap=wrap: check(fn, inputs, wrap)
        for name, (fn, inputs) in PROGRAMS.items()
        for how, wrap in wraps.items()
    }


def _twice(run: Any) -> Any:
    """The second call replays a CUDA graph."""

    def call(*inputs: Any) -> Any:
        run(*inputs)
        return run(*inputs)

    return call


def main() -> int:
    """Run everything; the number of failures is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each operator at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time and say what was left out")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    join_gpu()
    print(gpu_info(), flush=True)
    begin = time.perf_counter()
    found = graphs(arguments.samples)
    compile_ahead(found)
    checks: dict[str, Callable[[], str | None]] = dict(program_checks())
    checks |= {name: lambda pair=pair: check_graph(*pair) for name, pair in found.items()}
    wrong, done = {}, 0
    for name, run in checks.items():
        if time.perf_counter() - begin > arguments.seconds:
            break
        done += 1
        try:
            text = run()
        except Exception as error:  # noqa: BLE001 - listed
            text = f"{type(error).__name__}: {error}"[:200]
        if text:
            wrong[name] = text
            print(f"WRONG {name}: {text}", flush=True)
    print(f"{done - len(wrong)} of {done} right, {len(checks) - done} left out, {time.perf_counter() - begin:.0f} s")
    return min(len(wrong), 100)


if __name__ == "__main__":
    sys.exit(main())
