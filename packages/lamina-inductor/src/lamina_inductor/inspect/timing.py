"""Where a program's time goes: per step, with what the step must at least move and compute.

``time_steps(program)`` compiles the program once more with a clock between its steps, runs it on made-up inputs, and
sets the time of each step against its bytes and operations. Steps are what the host program does one after another:
launches of kernels, products with their epilogues, copies, calls of references.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina_prims.arrays import numpy_dtype

from ..backends.cpp import compile_program
from ..ir.program import (
    Attention,
    AttentionBackward,
    Buffer,
    Convolution,
    CopyBuffer,
    Gemm,
    HostCall,
    Launch,
    Operand,
    Program,
)
from .report import traffic_of

__all__ = ["StepTime", "time_steps"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a program: ``seconds`` a call (the least of the rounds), bytes it must move, floating-point
    operations of its product (0: not counted), names of its kernels."""

    index: int
    kind: str
    kernels: tuple[str, ...]
    seconds: float
    bytes: int
    flops: int

    @property
    def gigabytes_per_second(self) -> float:
        """Least traffic over time: near the memory's speed means that nothing but fusing more would help."""
        return self.bytes / max(self.seconds, 1e-9) / 1e9

    @property
    def gigaflops(self) -> float:
        """Operations of products over time."""
        return self.flops / max(self.seconds, 1e-9) / 1e9


def time_steps(program: Program, *, rounds: int = 5) -> tuple[StepTime, ...]:
    """Compile ``program`` with clocks, call it ``rounds`` + 1 times, and say what each step took.

    Floats are small and positive (as weights, and squares of moments, are), the rest zeros: indices and states are in
    range.

    Raises:
        ValueError: the program has symbolic sizes.
        NoCompiler: no compiler on this machine.
    """
    if program.sizes:
        raise ValueError(f"{program.name} has symbolic sizes; time a program of fixed sizes")
    artifact = compile_program(program, timed=True)
    inputs = [None if b is None else _made_up(b) for b in program.inputs]
    count = len(program.steps)
    if not count:
        return ()
    times = (ctypes.c_int64 * count).in_dll(ctypes.CDLL(str(artifact.path)), "lamina_times")
    least = np.full(count, np.iinfo(np.int64).max)
    artifact(*inputs)
    for _ in range(rounds):
        ctypes.memset(times, 0, ctypes.sizeof(times))
        artifact(*inputs)
        least = np.minimum(least, np.frombuffer(times, np.int64))
    return tuple([_step_time(program, i, int(least[i])) for i in range(count)])


def _made_up(buffer: Buffer) -> np.ndarray:
    kind = numpy_dtype(buffer.dtype)
    extent = 1 + sum((int(n) - 1) * int(s) for n, s in zip(buffer.shape, buffer.strides, strict=True) if n)
    flat = np.zeros(max(extent, 1), kind)
    if buffer.dtype.is_floating_point:
        flat[...] = 0.02 * np.abs(np.random.default_rng(0).standard_normal(flat.size, np.float32))
    strides = [int(s) * kind.itemsize for s in buffer.strides]
    return np.lib.stride_tricks.as_strided(flat, [int(n) for n in buffer.shape], strides)


def _step_time(program: Program, index: int, nanoseconds: int) -> StepTime:
    step = program.steps[index]
    names = tuple(dict.fromkeys(call.kernel.name for call in _calls(step)))
    moved = sum((t.read or 0) + (t.written or 0) for t in traffic_of(program, step)) + _operand_bytes(step)
    return StepTime(index, _kind(step), names, nanoseconds * 1e-9, moved, _flops(step))


def _calls(step: Any) -> tuple[Any, ...]:
    if type(step) is Launch:
        return step.parts
    epilogue = getattr(step, "epilogue", None)
    return () if epilogue is None else (epilogue,)


def _kind(step: Any) -> str:
    if type(step) is HostCall:
        return f"host {step.operator}"
    if type(step) is Gemm:
        *batch, rows, columns = step.out.shape
        return f"product {'x'.join(map(str, batch))} of {rows}x{step.left.shape[-1]}x{columns}"
    return _KINDS[type(step)]


_KINDS = {
    Launch: "launch", Convolution: "convolution", CopyBuffer: "copy", Attention: "attention",
    AttentionBackward: "attention backward",
}  # fmt: skip


def _operand_bytes(step: Any) -> int:
    if type(step) is Gemm:
        return sum(_size(o) for o in (step.left, step.right, step.out))
    if type(step) is Convolution:
        return sum(_size(o) for o in (step.input, step.weight, step.out))
    if type(step) in (Attention, AttentionBackward):
        return sum(map(_size, step.operands))
    return 2 * _size(step.source) if type(step) is CopyBuffer else 0


def _size(operand: Operand) -> int:
    count = operand.dtype.itemsize
    for size, stride in zip(operand.shape, operand.strides, strict=True):
        count *= int(size) if stride != 0 else 1
    return count


def _flops(step: Any) -> int:
    if type(step) is Gemm:
        return 2 * int(np.prod([int(s) for s in step.out.shape])) * int(step.left.shape[-1])
    if type(step) is Convolution:
        window = int(np.prod([int(s) for s in step.weight.shape[1:]]))
        return 2 * int(np.prod([int(s) for s in step.out.shape])) * window
    if type(step) in (Attention, AttentionBackward):
        scores = int(np.prod([int(s) for s in step.out.shape[:-1]])) * int(step.key.shape[-2])
        widths = int(step.key.shape[-1]), int(step.value.shape[-1])
        products = sum(widths) if type(step) is Attention else 3 * widths[0] + 2 * widths[1]
        return 2 * scores * products // (2 if step.causal else 1)
    return 0
