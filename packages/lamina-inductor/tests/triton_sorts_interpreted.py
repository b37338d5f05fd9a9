"""Run graphs with sorts in Triton's interpreter: a process of its own, as ``triton_interpreted``.

Prints one JSON object: name -> None, or what is wrong.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
import triton_interpreted as base
from random_sorts import drawn
from triton.runtime import interpreter
from triton_corpus import graph_of
from triton_sorts import LONG_SORTS, LONG_TOPK, SORT_CASES, SYMBOLIC_ROWS, TOPK_CASES, emit_long
from triton_symbolic_interpreted import count_by_scalars
from triton_templates import kept_graph

from lamina_fx import Interpreter
from lamina_inductor.backends.triton.program import Scratch
from lamina_inductor.ir.program import Operand
from lamina_prims import operator
from lamina_prims.modes import creating

RANDOM = range(6)


def number_wins() -> None:
    """The least of a NaN and a number is the number, where no NaN is asked for."""
    interpreter.InterpreterBuilder.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)


class Memory:
    """What kernels were given, and that they touch nothing else (the interpreter reads whatever is there)."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        make, argument = base.HostStorage.__init__, base._argument

        def init(storage: Any, array: Any) -> None:
            make(storage, array)
            if array is not None:
                self.ranges.append((storage.data_ptr(), storage.data_ptr() + array.nbytes))

        def exact(value: Any, memory: Any, scratch: Any, kind: str = "") -> Any:
            if isinstance(value, Scratch):
                part = scratch[value.offset : value.offset + value.bytes]
                return base.HostTensor(part.view(base._TYPES[kind]))
            if isinstance(value, Operand):
                whole = memory[value.buffer]
                extent = 1 + sum((n - 1) * s // whole.itemsize for n, s in zip(whole.shape, whole.strides, strict=True))
                return base.HostTensor(np.lib.stride_tricks.as_strided(whole, (extent,))[value.offset :])
            return argument(value, memory, scratch, kind)

        base.HostStorage.__init__, base._argument = init, exact
        for name, place in (("create_masked_load", 1), ("create_masked_store", 2), ("create_atomic_rmw", 3)):
            self._watch(name, place)

    def _watch(self, name: str, place: int) -> None:
        """``place``: of the mask among the arguments."""
        plain = getattr(interpreter.InterpreterBuilder, name)

        def watched(builder: Any, *args: Any) -> Any:
            addresses, mask = args[name == "create_atomic_rmw"].data.astype(np.int64), args[place]
            there = addresses if mask is None else addresses[np.broadcast_to(mask.data, addresses.shape)]
            known = np.zeros(there.shape, bool)
            for low, high in self.ranges:
                known |= (there >= low) & (there < high)
            assert known.all(), f"{name} leaves its memory"
            return plain(builder, *args)

        setattr(interpreter.InterpreterBuilder, name, watched)


def long_rows(name: str) -> str | None:
    """What is wrong with a case of long rows, the signs of zeros included."""
    fn, inputs, _, launches = (LONG_TOPK | LONG_SORTS)[name]
    graph = kept_graph(fn, inputs)
    program = emit_long(name, graph)
    if program.externs or len(program.launches) != launches:
        return f"{[launch.kernel.name for launch in program.launches]}"
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[a.copy() for a in inputs])
    results, _ = base.run(program, [a.copy() for a in inputs])
    found = [base.difference(got, np.asarray(want)) for got, want in zip(results, wanted, strict=True)]
    for got, want in zip(results, wanted, strict=True):
        zeros = np.asarray(want) == 0
        if want.dtype.kind not in "biu" and not np.array_equal(np.signbit(got)[zeros], np.signbit(want)[zeros]):
            found.append("signs of zeros differ")
    return "; ".join([text for text in found if text]) or None


def main(names: list[str]) -> None:
    base.round_to_bfloat16()
    base.keep_scalar_conditions()
    base.compute_assembly()
    count_by_scalars()
    number_wins()
    warnings.simplefilter("ignore")
    report: dict[str, str | None] = {}
    for seed in () if names else RANDOM:
        fn, inputs = drawn(seed)
        report[f"seed {seed}"] = base.check(kept_graph(fn, inputs), list(inputs))
    memory = Memory()
    for name in names or (*SORT_CASES, *TOPK_CASES, *LONG_TOPK, *LONG_SORTS, *SYMBOLIC_ROWS):
        memory.ranges.clear()
        if name in LONG_TOPK or name in LONG_SORTS:
            report[name] = long_rows(name)
            continue
        if name in SYMBOLIC_ROWS:
            fn, inputs = SYMBOLIC_ROWS[name]
            report[name] = base.check(kept_graph(fn, inputs, (3,)), list(inputs))
            continue
        fn, inputs, _ = (SORT_CASES | TOPK_CASES)[name]
        report[name] = base.check((kept_graph if name in TOPK_CASES else graph_of)(fn, inputs), list(inputs))
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
