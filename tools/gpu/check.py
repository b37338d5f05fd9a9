"""Graphs of the Triton tests, and programs of the launcher's tests, on a GPU against the references.

``case_names`` and ``check_case``: the graphs, compiled. ``program_names`` and ``check_program``: the programs as users
write them, eager, compiled, and compiled into a CUDA graph. ``conformance.py`` runs all of them.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2] / "packages"
sys.path += [str(ROOT / "lamina-inductor" / "tests"), str(ROOT / "lamina" / "tests" / "gpu")]

from tracing import copied  # noqa: E402
from triton_corpus import CASES, graph_of  # noqa: E402
from triton_float8 import FLOAT8_CASES  # noqa: E402

import lamina  # noqa: E402
from lamina.gpu import join_gpu  # noqa: E402
from lamina_fx import Interpreter  # noqa: E402
from lamina_inductor.backends.triton import TritonBackend  # noqa: E402
from lamina_prims import operator  # noqa: E402
from lamina_prims.modes import creating  # noqa: E402

__all__ = ["case_names", "check_case", "check_program", "program_names"]

TOLERANCE = {8: 1e-11, 4: 2e-5, 2: 1e-2, 1: 0.0}
HOW = ("eager", "compiled", "graphs")


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


def case_names() -> list[str]:
    """The graphs."""
    return [*CASES, *FLOAT8_CASES]


def check_case(name: str) -> str | None:
    """What is wrong with a graph's results."""
    join_gpu()
    fn, arrays, *_ = (CASES | FLOAT8_CASES)[name]
    graph = graph_of(fn, arrays)
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[copied(a) for a in arrays])
    results = TritonBackend().compile(graph)(*[lamina.from_numpy(copied(a)) for a in arrays])
    lamina.cuda.synchronize()
    pairs = [(g, w) for g, w in zip(results, wanted, strict=True) if isinstance(g, lamina.Tensor)]
    return _told([difference(g.cpu().numpy(), w) for g, w in pairs])


@functools.cache
def _programs() -> dict[str, Any]:
    from test_gpu_programs import PROGRAMS

    return PROGRAMS


def program_names() -> list[str]:
    """The programs, each in three ways."""
    return [f"{how} {name}" for how in HOW for name in _programs()]


def check_program(how: str, name: str) -> str | None:
    """What is wrong with a program's results: beside the CPU's, eager."""
    fn, inputs = _programs()[name]
    wanted = fn(*inputs)
    there = [i.cuda() if isinstance(i, lamina.Tensor) else i for i in inputs]
    if how == "graphs":
        run = lamina.compile(fn, mode="reduce-overhead")
        run(*there)  # the second call replays the graph
    else:
        run = lamina.compile(fn) if how == "compiled" else fn
    pairs = zip(*[r if isinstance(r, tuple) else (r,) for r in (run(*there), wanted)], strict=True)
    return _told([difference(a.detach().cpu().numpy(), b.detach().numpy()) for a, b in pairs])


def _told(found: list[str | None]) -> str | None:
    return "; ".join(f"result {k}: {text}" for k, text in enumerate(found) if text) or None


if __name__ == "__main__":
    raise SystemExit("conformance.py --parts graphs programs runs these")
