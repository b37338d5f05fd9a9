"""Run the templates' cases in Triton's interpreter, as ``triton_interpreted`` does: a process of its own.

Prints one JSON object: "name: candidate" -> None, or what is wrong. Products are computed as the device would, in
float32 for the half types; the references are NumPy's, in float64.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read by @triton.jit when it decorates

import numpy as np
import triton_interpreted as base
from triton_convolutions import CONVOLUTIONS, SYMBOLIC_IMAGES
from triton_templates import ATTENTIONS, GEMMS, SYMBOLIC, emit_with, kept_graph

from lamina_fx import Graph, Interpreter
from lamina_inductor.tune.candidates import label
from lamina_prims import operator
from lamina_prims.modes import creating


def difference(got: np.ndarray, want: np.ndarray, narrow: bool) -> str | None:
    """None when they are as near as they should be; ``narrow``: operands are of half types."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind in "bi":
        return None if np.array_equal(got, want) else "differ"
    tolerance = 2e-2 if narrow or want.itemsize == 2 else 2e-5
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0.0)))
    if np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        return None
    return f"differ by {np.nanmax(np.abs(got - want))} of {scale}"


def reference(graph: Graph, inputs: list[np.ndarray]) -> tuple[Any, ...]:
    with creating(None):
        return Interpreter(graph, operator).run(*inputs)


def check(graph: Graph, inputs: tuple[Any, ...], candidate: Any) -> str | None:
    program = emit_with(graph, candidate)
    if program.externs:
        return f"{program.externs[0].operator} is no kernel"
    wanted = reference(graph, [np.array(a) for a in inputs])
    results, error = base.run(program, [np.array(a) for a in inputs])
    if error:
        return f"error word {error}"
    narrow = any(a.itemsize == 2 for a in inputs)
    found = [difference(got, np.asarray(want), narrow) for got, want in zip(results, wanted, strict=True)]
    return "; ".join([f"result {k}: {text}" for k, text in enumerate(found) if text]) or None


def main(names: list[str]) -> None:
    base.round_to_bfloat16()
    base.keep_scalar_conditions()
    base.multiply_bfloat16()
    base.compute_assembly()
    warnings.simplefilter("ignore")
    report: dict[str, str | None] = {}
    known = {name: (*case, ()) for name, case in (GEMMS | ATTENTIONS | CONVOLUTIONS).items()}
    for name, (fn, inputs, candidates, symbolic) in (known | SYMBOLIC | SYMBOLIC_IMAGES).items():
        for candidate in candidates if not names or name in names else ():
            try:
                graph = kept_graph(fn, inputs, symbolic)
                report[f"{name}: {label(candidate)}"] = check(graph, inputs, candidate)
            except Exception as error:  # noqa: BLE001 - the test of this case says what it is
                report[f"{name}: {label(candidate)}"] = f"{type(error).__name__}: {error}"
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
