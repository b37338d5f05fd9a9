"""Run whole programs in NumPy, with ``interpret`` for their kernels: exact in meaning, slow, for tests without a
compiler."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_prims import operator
from lamina_prims.arrays import array_namespace, numpy_dtype

from .interpret import KernelError, evaluate, run_kernel
from .program import (
    Attention,
    AttentionBackward,
    Buffer,
    Convolution,
    CopyBuffer,
    Gemm,
    HostCall,
    KernelCall,
    Launch,
    Operand,
    Program,
    check_text,
)

__all__ = ["run_program", "run_step"]


class _Memory:
    """The buffers of a running program as flat arrays."""

    def __init__(self, program: Program, inputs: list[Any]) -> None:
        self.program = program
        self.sizes = {
            s.symbol: inputs[s.input] if s.dim is None else inputs[s.input].shape[s.dim] for s in program.sizes
        }
        self.flat: dict[str, np.ndarray] = {}
        self.workspace = np.full(int(self.size(program.workspace)), 0x5A, np.uint8)
        for buffer in program.buffers.values():
            self.flat[buffer.name] = self._flat(buffer, inputs)

    def size(self, value: Any) -> int:
        return int(evaluate(value, self.sizes))

    def _flat(self, buffer: Buffer, inputs: list[Any]) -> np.ndarray:
        dtype = numpy_dtype(buffer.dtype)
        if buffer.storage == "input":
            return _flat_view(inputs[buffer.index])
        if buffer.storage == "constant":
            return _flat_view(self.program.constants[buffer.index])
        shape = [self.size(n) for n in buffer.shape]
        extent = 1 + sum((n - 1) * self.size(s) for n, s in zip(shape, buffer.strides, strict=True))
        extent = 0 if 0 in shape else extent
        if buffer.storage == "output":
            return np.zeros(extent, dtype)
        offset = self.size(buffer.offset)
        return self.workspace[offset : offset + extent * dtype.itemsize].view(dtype)

    def view(self, operand: Operand) -> np.ndarray:
        """The strided array of an operand."""
        flat = self.flat[operand.buffer][self.size(operand.offset) :]
        shape = [self.size(n) for n in operand.shape]
        strides = [self.size(s) * flat.itemsize for s in operand.strides]
        return np.lib.stride_tricks.as_strided(flat, shape, strides)


def _flat_view(array: np.ndarray) -> np.ndarray:
    extent = 1 + sum((n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides, strict=True))
    return np.lib.stride_tricks.as_strided(array, (0 if 0 in array.shape else extent,), (array.itemsize,))


def run_program(program: Program, inputs: list[Any]) -> tuple[Any, ...]:
    """Run a program on NumPy arrays (and ints for symbolic sizes).

    Raises:
        IndexError, RuntimeError: a checked index is out of range.
    """
    memory = _Memory(program, inputs)
    try:
        for step in program.steps:
            run_step(step, memory)
    except KernelError as error:
        found = next(c for c in program.checks if c.number == error.check)
        text = check_text(found.template, str(error.index), error.size)
        raise getattr(builtins, found.error)(text) from None
    results: list[Any] = []
    for result in program.outputs:
        results.append(_output(result, results, inputs, memory))
    return tuple(results)


def run_step(step: Any, memory: Any) -> None:
    """Run one step. ``memory.view(operand)`` gives arrays (of any library), ``memory.size(value)`` sizes."""
    _STEPS[type(step)](step, memory)


def _output(result: Any, results: list[Any], inputs: list[Any], memory: _Memory) -> Any:
    if result.kind == "buffer":
        buffer = memory.program.buffers[result.value]
        return memory.view(Operand(buffer.name, buffer.dtype, 0, buffer.shape, buffer.strides))
    if result.kind == "input":
        return inputs[result.value]
    if result.kind == "alias":
        return results[result.value]
    return evaluate(result.value, memory.sizes)


def _call(call: KernelCall, memory: _Memory) -> None:
    run_kernel(call.kernel, [memory.flat[b] for b in call.buffers], [memory.size(s) for s in call.sizes])


def _launch(step: Launch, memory: _Memory) -> None:
    for call in step.parts:
        _call(call, memory)


def _gemm(step: Gemm, memory: _Memory) -> None:
    left, right, out = memory.view(step.left), memory.view(step.right), memory.view(step.out)
    narrow = left.dtype.itemsize <= 2 and left.dtype.kind not in "biu"
    wide = np.float32 if narrow else left.dtype
    with np.errstate(all="ignore"):
        product = array_namespace(left).matmul(left.astype(wide), right.astype(wide))
    out[...] = (out + product if step.accumulate else product).astype(out.dtype)
    if step.epilogue:
        _call(step.epilogue, memory)


def _convolution(step: Convolution, memory: _Memory) -> None:
    bias = None if step.bias is None else memory.view(step.bias)
    padding = tuple(memory.size(before) for before, _ in step.padding)
    memory.view(step.out)[...] = operator("convolution")(
        memory.view(step.input), memory.view(step.weight), bias, step.stride, padding, step.dilation,
        step.transposed, step.output_padding or (0,) * len(step.stride), step.groups,
    )  # fmt: skip
    if step.epilogue:
        _call(step.epilogue, memory)


def _attention(step: Attention, memory: _Memory) -> None:
    operands = [_optional(o, memory) for o in (step.query, step.key, step.value, step.mask)]
    rest = (step.causal, step.scale, step.dropout, _optional(step.state, memory))
    out, lse = operator("attention_with_lse")(*operands, *rest)
    memory.view(step.out)[...] = out
    if step.lse is not None:
        memory.view(step.lse)[...] = lse


def _attention_backward(step: AttentionBackward, memory: _Memory) -> None:
    read = (step.grad_out, step.grad_lse, step.out, step.lse, step.query, step.key, step.value, step.mask)
    rest = (step.causal, step.scale, step.dropout, _optional(step.state, memory))
    gradients = operator("attention_backward")(*[_optional(o, memory) for o in read], *rest)
    for target, gradient in zip((step.grad_query, step.grad_key, step.grad_value), gradients, strict=True):
        if target is not None:
            to = memory.view(target)
            axes = tuple([d for d, (n, have) in enumerate(zip(to.shape, gradient.shape, strict=True)) if n != have])
            to[...] = gradient.sum(axes, keepdims=True)


def _optional(operand: Operand | None, memory: _Memory) -> Any:
    return None if operand is None else memory.view(operand)


def _host(step: HostCall, memory: _Memory) -> None:
    def lift(value: Any) -> Any:
        if type(value) is Operand:
            return memory.view(value)
        if type(value) is tuple:
            return tuple([lift(v) for v in value])
        return evaluate(value, memory.sizes)

    results = operator(step.operator).run_arrays(lift(step.args), {k: lift(v) for k, v in step.kwargs})
    for out, result in zip(step.outs, results if isinstance(results, tuple) else (results,), strict=True):
        if out is not None:
            memory.view(out)[...] = result


def _copy(step: CopyBuffer, memory: _Memory) -> None:
    memory.view(step.target)[...] = memory.view(step.source)


_STEPS: dict[type, Callable[[Any, _Memory], None]] = {
    Launch: _launch, Gemm: _gemm, Convolution: _convolution, HostCall: _host, CopyBuffer: _copy,
    Attention: _attention, AttentionBackward: _attention_backward,
}  # fmt: skip
