"""Small programs in kernel and program IR, written by hand, for tests of the C++ backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import CPU, DType, contiguous_strides
from lamina_fx.symbolic import Integer, Symbol
from lamina_inductor.ir.kernel import BufferParam, Kernel, Let, Load, Loop, Store
from lamina_inductor.ir.program import Buffer, KernelCall, Launch, Operand, Program, Result


def buffer(name: str, storage: str, shape: Sequence[Any], dtype: DType, index: int = 0, strides: Any = None) -> Buffer:
    return Buffer(name, dtype, tuple(shape), tuple(strides or contiguous_strides(shape)), storage, index)


def whole(item: Buffer) -> Operand:
    return Operand(item.name, item.dtype, 0, item.shape, item.strides)


def program(name: str, buffers: Sequence[Buffer], steps: Sequence[Any], **more: Any) -> Program:
    inputs = tuple(sorted((b for b in buffers if b.storage == "input"), key=lambda b: b.index))
    outputs = [b for b in buffers if b.storage == "output"]
    return Program(
        name,
        more.pop("inputs", inputs),
        {b.name: b for b in buffers},
        more.pop("sizes", ()),
        tuple(steps),
        more.pop("outputs", tuple(Result("buffer", b.name) for b in outputs)),
        more.pop("workspace", 0),
        CPU,
        **more,
    )


def elementwise(op: str, dtype: DType, result: DType, arity: int, n: int, extra: Sequence[Any] = ()) -> Program:
    """``out0[i] = op(arg0[i], ..., *extra)`` over ``n`` elements."""
    i = Symbol("i", 0, n - 1)
    names = [f"arg{k}" for k in range(arity)]
    params = (*(BufferParam(name, dtype, "in") for name in names), BufferParam("out0", result, "out"))
    loads = tuple(Load(f"x{k}", dtype, name, i) for k, name in enumerate(names))
    values = tuple(f"x{k}" for k in range(arity)) + tuple(extra)
    body = (*loads, Let("y", result, op, values), Store("out0", i, "y"))
    kernel = Kernel(f"k0_{op}", params, (), (Loop(i, Integer(n), "parallel simd", body, grain=Integer(16384)),))
    buffers = [buffer(name, "input", (n,), dtype, k) for k, name in enumerate(names)]
    buffers.append(buffer("out0", "output", (n,), result))
    return program(f"run_{op}", buffers, [Launch((KernelCall(kernel, (*names, "out0")),))])
