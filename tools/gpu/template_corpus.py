"""Run the cases of the templates' tests on a GPU and compare with NumPy: ``python tools/gpu/template_corpus.py``.

The same cases run in Triton's interpreter where there is no GPU. Needs what ``templates.py`` beside it needs, and the
tests of lamina-inductor on ``PYTHONPATH``. Each case is printed with its own small tiles and with what the planner
chooses; failures come last, and set the exit status.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from templates import Run, compile_all
from triton_convolutions import CONVOLUTIONS
from triton_templates import ATTENTIONS, GEMMS, emit_with, kept_graph

from lamina_fx import Graph, Interpreter
from lamina_inductor.backends.triton.backend import TritonBackend
from lamina_inductor.backends.triton.program import TritonProgram
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.tune.candidates import LibraryCandidate, label
from lamina_prims import operator
from lamina_prims.modes import creating


def without_library(problem: Any, ranked: list[Any], show: Any) -> Any:
    """The model's best template."""
    return next((c for c in ranked if not isinstance(c, LibraryCandidate)), ranked[0])


def on_device(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def on_host(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()


def wrong(program: TritonProgram, graph: Graph, inputs: tuple[Any, ...]) -> str:
    """What differs from the references."""
    if program.externs:
        return f"{program.externs[0].operator} is no kernel"
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[np.array(a) for a in inputs])
    run = Run(program, [on_device(np.array(a)) for a in inputs])
    run()
    torch.cuda.synchronize()
    if int(run.error.item()):
        return f"error word {int(run.error.item())}"
    narrow = any(a.itemsize == 2 for a in (*inputs, *map(np.asarray, wanted)))
    tolerance = 2e-2 if narrow else 3e-5
    for number, (got, want) in enumerate(zip(run.results(), wanted, strict=True)):
        have, need = on_host(got), np.asarray(want).astype(np.float64)
        if need.dtype.kind in "bi" or np.asarray(want).dtype == bool:
            if not np.array_equal(have, want):
                return f"result {number} differs"
            continue
        scale = max(1.0, float(np.abs(need[np.isfinite(need)]).max(initial=0.0)))
        if not np.allclose(have, need, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"result {number} differs by {np.nanmax(np.abs(have - need))} of {scale}"
    return ""


def main() -> int:
    found: list[tuple[str, Graph, tuple[Any, ...], TritonProgram]] = []
    for name, (fn, inputs, candidates) in (GEMMS | ATTENTIONS | CONVOLUTIONS).items():
        graph = kept_graph(fn, inputs)
        for candidate in candidates:
            found.append((f"{name}: {label(candidate)}", graph, inputs, emit_with(graph, candidate)))
        planned = TritonBackend(TemplatePlanner(choose=without_library)).emit(graph)
        found.append((f"{name}: as planned", graph, inputs, planned))
    compile_all(list({k: None for _, _, _, program in found for k in program.kernels}))
    failures = []
    for name, graph, inputs, program in found:
        try:
            text = wrong(program, graph, inputs)
        except Exception as error:  # noqa: BLE001 - listed
            text = f"{type(error).__name__}: {error}"[:300]
        if text:
            failures.append(f"{name}: {text}")
    print(*failures, f"{len(found) - len(failures)} of {len(found)} agree", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
