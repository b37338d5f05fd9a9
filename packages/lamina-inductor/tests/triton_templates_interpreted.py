"""Run the templates' cases in Triton's interpreter, as ``triton_interpreted`` does: a process of its own.

Prints one JSON object: "name: candidate" -> None, or what is wrong. Products are computed as the device would, in
float32 for the half types; the references are NumPy's, in float64.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import fields, replace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read by @triton.jit when it decorates

import ml_dtypes
import numpy as np
import triton.language as tl
import triton_interpreted as base
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor as HostDescriptor
from triton_templates import ATTENTIONS, CONVOLUTIONS, GEMMS, SYMBOLIC, emit_with, kept_graph

from lamina_fx import Graph, Interpreter
from lamina_fx.symbolic import Expr
from lamina_inductor.backends.triton import TritonProgram, load_function
from lamina_inductor.backends.triton.program import Scratch, TensorDescriptor
from lamina_inductor.ir.program import Buffer, Operand, Program
from lamina_inductor.tune.candidates import label
from lamina_prims import operator
from lamina_prims.modes import creating


def multiply_bfloat16() -> None:
    """The interpreter multiplies the bits of bfloat16; widen them first."""
    dot = interpreter.InterpreterBuilder.create_dot

    def widen(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = handle.data.astype(np.uint32) << np.uint32(16)
        return interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return dot(self, widen(a), widen(b), *rest)

    interpreter.InterpreterBuilder.create_dot = create_dot


class Sizes:
    """Values of a program's size symbols for these inputs."""

    def __init__(self, program: Program, inputs: list[np.ndarray]) -> None:
        self.known = {s.symbol: inputs[s.input].shape[s.dim or 0] for s in program.sizes}

    def __call__(self, value: Any) -> Any:
        """A number, or numbers in a tuple or in the fields of something."""
        if isinstance(value, Expr):
            return int(value.evaluate(self.known))
        if isinstance(value, tuple):
            return tuple([self(v) for v in value])
        if isinstance(value, TensorDescriptor):
            return TensorDescriptor(self(value.operand), value.block)
        if isinstance(value, (Operand, Buffer, Scratch)):
            return replace(value, **{f.name: self(getattr(value, f.name)) for f in fields(value)})
        return value


def run(program: TritonProgram, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The buffers that the program returns. Scratch memory starts full of NaN."""
    size = Sizes(program.program, inputs)
    memory: dict[str, np.ndarray] = {}
    for buffer in program.program.buffers.values():
        given = {"input": inputs, "constant": program.program.constants}.get(buffer.storage)
        memory[buffer.name] = base.fresh(size(buffer)) if given is None else given[buffer.index]
    scratch = np.full(1 << 20, 0xFF, np.uint8)
    error = np.zeros(1, np.int32)
    for launch in program.launches:
        function = load_function(launch.kernel)
        function.fn.__globals__["libdevice"] = base.Library()
        kinds = [kind for _, kind in launch.kernel.parameters]
        arguments = [_argument(size(b), memory, scratch, k) for b, k in zip(launch.buffers, kinds, strict=False)]
        arguments += [*size(launch.sizes), *([base.HostTensor(error)] if launch.kernel.checks else [])]
        function[size(launch.grid)](*arguments, **launch.kernel.constants)
    assert not error[0]
    return [memory[r.value] for r in program.program.outputs]


_TYPES = {"*fp32": np.dtype(np.float32), "*fp16": np.dtype(np.float16), "*bf16": np.dtype(ml_dtypes.bfloat16)}
_TYPES["*i32"] = np.dtype(np.int32)


def _argument(value: Any, memory: dict[str, np.ndarray], scratch: np.ndarray, kind: str = "") -> Any:
    if isinstance(value, Scratch):
        assert value.offset + value.bytes <= scratch.nbytes
        return base.HostTensor(scratch[value.offset :].view(_TYPES[kind]))
    if isinstance(value, TensorDescriptor):
        shape, strides = list(value.operand.shape), list(value.operand.strides)
        return HostDescriptor(_argument(value.operand, memory, scratch), shape, strides, list(value.block))
    if isinstance(value, Operand):
        flat = np.lib.stride_tricks.as_strided(memory[value.buffer], (1 << 30,), (memory[value.buffer].itemsize,))
        return base.HostTensor(flat[value.offset :])
    return base.HostTensor(memory[value])


def difference(got: np.ndarray, want: np.ndarray, narrow: bool) -> str | None:
    """None when they are as near as they should be; ``narrow``: operands are of half types."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind in "bi":
        return None if np.array_equal(got, want) else "differ"
    tolerance = 2e-2 if narrow else 2e-5
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
    results = run(program, [np.array(a) for a in inputs])
    narrow = any(a.itemsize == 2 for a in inputs)
    found = [difference(got, np.asarray(want), narrow) for got, want in zip(results, wanted, strict=True)]
    return "; ".join([f"result {k}: {text}" for k, text in enumerate(found) if text]) or None


def main(names: list[str]) -> None:
    base.round_to_bfloat16()
    base.keep_scalar_conditions()
    multiply_bfloat16()
    warnings.simplefilter("ignore")
    report: dict[str, str | None] = {}
    known = {name: (*case, ()) for name, case in (GEMMS | ATTENTIONS | CONVOLUTIONS).items()}
    for name, (fn, inputs, candidates, symbolic) in (known | SYMBOLIC).items():
        for candidate in candidates if not names or name in names else ():
            try:
                graph = kept_graph(fn, inputs, symbolic)
                report[f"{name}: {label(candidate)}"] = check(graph, inputs, candidate)
            except Exception as error:  # noqa: BLE001 - the test of this case says what it is
                report[f"{name}: {label(candidate)}"] = f"{type(error).__name__}: {error}"
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
