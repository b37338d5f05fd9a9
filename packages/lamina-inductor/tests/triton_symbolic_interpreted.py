"""Run programs of symbolic sizes in Triton's interpreter: a process of its own, as ``triton_interpreted``.

Prints one JSON object: "name: sizes, index bits" -> None, or what is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from itertools import product
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read by @triton.jit when it decorates

import numpy as np
import triton_interpreted as base
from triton.runtime import interpreter
from triton_symbolic import CASES, INDEX_BITS, Case, arrays_of

from lamina_fx import Interpreter
from lamina_inductor.backends.triton import TritonBackend
from lamina_prims import operator
from lamina_prims.modes import creating


def count_by_scalars() -> None:
    """A loop's bound is an array of one element here, which NumPy takes for no index."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


def check(case: Case, sizes: dict[str, int], index_bits: int) -> str | None:
    graph, arrays = case.graph(), arrays_of(case, sizes)
    program = TritonBackend().emit(graph, index_bits=index_bits)
    if len(program.launches) != case.launches or program.externs:
        return f"{[launch.kernel.name for launch in program.steps]}"
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[a.copy() for a in arrays])
    results, _ = base.run(program, arrays)
    found = [base.difference(got, np.asarray(want)) for got, want in zip(results, wanted, strict=True)]
    return "; ".join([f"result {k}: {text}" for k, text in enumerate(found) if text]) or None


def main(names: list[str]) -> None:
    base.round_to_bfloat16()
    base.keep_scalar_conditions()
    base.compute_assembly()
    count_by_scalars()
    warnings.simplefilter("ignore")
    report: dict[str, str | None] = {}
    for name in names or CASES:
        for sizes, bits in product(CASES[name].sizes, INDEX_BITS):
            key = f"{name}: {sizes}, {bits}"
            try:
                report[key] = check(CASES[name], sizes, bits)
            except Exception as error:  # noqa: BLE001 - the test of this case says what it is
                report[key] = f"{type(error).__name__}: {error}"
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
