"""From launches and external steps to the plan that the GPU launcher runs: plain numbers, strings and tuples.

``make_plan(program, compiled, ...)`` numbers the buffers (inputs, results, constants, slices of the workspace), lays
scratch memory, cuBLAS's workspace and copies of host inputs behind the workspace, and writes every size as a slot.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lamina_fx.symbolic import And, Expr, Lt, Max, as_expr

from ...ir.program import Buffer, Gemm, HostCall, Launch, Operand
from . import index_widths
from .compile import CompiledKernel
from .device_steps import HostKernel, step_places
from .program import ExternStep, Scratch, TensorDescriptor, TritonKernel, TritonLaunch, TritonProgram
from .slots import Slots

__all__ = ["BLAS_WORKSPACE", "GpuPlan", "make_plan"]

BLAS_WORKSPACE = 32 << 20
"""Bytes that cuBLAS may use; what it wants on Hopper."""

_POINTER, _INT32, _INT64, _BITS, _ERROR, _NULL, _DESCRIPTOR, _TABLE = range(8)
_BLAS_DTYPES = frozenset(("float32", "float64", "float16", "bfloat16", "complex64", "complex128"))
_SCRATCH = "scratch"


@dataclass(frozen=True)
class GpuPlan:
    """What ``_cuda.Program`` takes, but for kernels' machine code and the functions it calls back (see
    ``host/cuda_plan.cpp``); ``device_steps``: steps that run by their reference, by number; ``narrow``: slot of whether
    indices of 32 bits do for a call's sizes, -1: for all."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    sizes: tuple[tuple[int, int], ...]
    slots: tuple[int, ...]
    operations: tuple[tuple[int, int, int, int], ...]
    workspace: tuple[int, int, tuple[int, ...]]
    descriptors: tuple[Any, ...]
    tables: tuple[Any, ...]
    steps: tuple[Any, ...]
    results: tuple[Any, ...]
    device_steps: tuple[Any, ...]
    checks: bool
    narrow: int = -1


def make_plan(
    program: TritonProgram,
    compiled: Sequence[CompiledKernel],
    *,
    host_inputs: frozenset[int] = frozenset(),
    host_outputs: frozenset[int] = frozenset(),
    allow_tf32: bool = False,
) -> GpuPlan:
    """The plan of ``program``, whose kernels were compiled in order.

    ``host_inputs``, ``host_outputs``: numbers of those that are on the CPU. ``allow_tf32``: may products of float32
    round their operands.
    """
    return _Planner(program, compiled, host_inputs, host_outputs, allow_tf32).run()


class _Planner:
    def __init__(self, program: Any, compiled: Any, host_inputs: Any, host_outputs: Any, allow_tf32: bool) -> None:
        self.emitted = program
        self.program = program.program
        self.compiled = compiled
        self.numbers = {kernel.name: k for k, kernel in enumerate(program.kernels)}
        self.host_inputs, self.host_outputs, self.allow_tf32 = host_inputs, host_outputs, allow_tf32
        self.slots = Slots([s.symbol for s in self.program.sizes])
        self.place: dict[str, int] = {}
        self.offsets: list[Any] = []
        self.scratch: Any = 0
        self.descriptors: list[Any] = []
        self.tables: list[Any] = []
        self.device_steps: list[Any] = []

    def run(self) -> GpuPlan:
        """Everything, in the order in which it is numbered."""
        self._number_buffers()
        steps = [item for step in self.emitted.steps for item in self._step(step)]
        end = self._round(self.program.workspace)
        self.offsets[self.place[_SCRATCH] - self.first_slice] = end
        end = self._round(end + self.scratch)
        blas = -1
        if any(kind == "product" for kind, _ in steps):
            blas, end = self.slots.slot(end), end + BLAS_WORKSPACE
        inputs, end = self._inputs(end)
        offsets, narrow = self.slots.slots(self.offsets), self._narrow()
        return GpuPlan(
            inputs=inputs,
            outputs=self._outputs(),
            sizes=tuple([(s.input, -1 if s.dim is None else s.dim) for s in self.program.sizes]),
            results=tuple([self._result(r.kind, r.value) for r in self.program.outputs]),
            workspace=(self.slots.slot(end), blas, offsets),
            slots=tuple(self.slots.values),
            operations=tuple(self.slots.operations),
            descriptors=tuple(self.descriptors),
            tables=tuple(self.tables),
            steps=tuple(steps),
            device_steps=tuple(self.device_steps),
            narrow=narrow,
            checks=any(k.checks for k in self.emitted.kernels),
        )

    def _narrow(self) -> int:
        small = [Lt(bound, index_widths.LIMIT) for bound in self.emitted.below]
        return self.slots.slot(And(*small) if len(small) > 1 else small[0]) if small else -1

    # -- buffers ---------------------------------------------------------------------------------------

    def _number_buffers(self) -> None:
        buffers = list(self.program.buffers.values())
        self.results = sorted([b for b in buffers if b.storage == "output"], key=lambda b: b.index)
        constants = sorted([b for b in buffers if b.storage == "constant"], key=lambda b: b.index)
        slices = [b for b in buffers if b.storage == "workspace"]
        inputs = [b.name if b is not None else f"?{k}" for k, b in enumerate(self.program.inputs)]
        names = [*inputs, *[b.name for b in (*self.results, *constants, *slices)], _SCRATCH]
        self.place = {name: k for k, name in enumerate(names)}
        self.first_slice = len(inputs) + len(self.results) + len(constants)
        self.offsets = [*[b.offset for b in slices], 0]

    @staticmethod
    def _round(size: Any) -> Any:
        return (size + 255) // 256 * 256

    def _inputs(self, end: Any) -> tuple[tuple[Any, ...], Any]:
        writes, rows = frozenset(self.program.writes), []
        for k, buffer in enumerate(self.program.inputs):
            if buffer is None:
                rows.append(None)
                continue
            staged = -1
            if k in self.host_inputs:
                staged, end = self.slots.slot(end), self._round(end + _extent(buffer))
            sizes, strides = self.slots.slots(buffer.shape), self.slots.slots(buffer.strides)
            rows.append((buffer.dtype.code, k in writes, k in self.host_inputs, staged, sizes, strides))
        return tuple(rows), end

    def _outputs(self) -> tuple[Any, ...]:
        return tuple(
            [
                (b.dtype.code, b.index in self.host_outputs, self.slots.slots(b.shape), self.slots.slots(b.strides))
                for b in self.results
            ]
        )

    def _result(self, kind: str, value: Any) -> tuple[str, Any]:
        if kind == "buffer":
            return "output", self.program.buffers[value].index
        if kind == "scalar":
            if isinstance(value, Expr):
                return "number", self.slots.slot(value)
            return "constant", value
        return kind, value

    # -- steps -----------------------------------------------------------------------------------------

    def _step(self, step: Any) -> list[tuple[str, tuple[Any, ...]]]:
        if type(step) is TritonLaunch:
            return [("launch", self._launch(step))]
        assert type(step) is ExternStep
        if type(step.step) is Gemm and step.step.left.dtype.name in _BLAS_DTYPES and step.step.epilogue is None:
            return [("product", self._product(step.step))]
        return [("call", self._call(step.step))]

    def _call(self, step: Any) -> tuple[Any, ...]:
        if type(step) is Launch:
            (call,) = step.parts
            step = HostKernel(call, tuple([self.program.buffers[b] for b in call.buffers]))
        if type(step) is HostCall:  # a reference is called with what the operator takes
            step = HostCall(step.operator, tuple(step.args), tuple(step.kwargs), tuple(step.outs), step.source)
        self.device_steps.append(step)
        return len(self.device_steps) - 1, tuple([self._at(p) for p in step_places(step)])

    def _at(self, place: Any) -> tuple[int, int]:
        """(buffer, slot of the offset in bytes)."""
        if type(place) is str:
            return self.place[place], -1
        if type(place) is Scratch:
            self.scratch = _most(self.scratch, place.offset + place.bytes)
            return self.place[_SCRATCH], self.slots.slot(place.offset)
        offset = place.offset * place.dtype.itemsize
        none = type(place.offset) is int and place.offset == 0
        return self.place[place.buffer], -1 if none else self.slots.slot(offset)

    def _product(self, step: Gemm) -> tuple[Any, ...]:
        batch = step.out.shape[:-2]
        outer, inner = (batch[0], batch[1]) if len(batch) == 2 else (1, batch[0])
        sizes = (outer, inner, *step.out.shape[-2:], step.left.shape[-1])
        strides = [
            s for o in (step.left, step.right, step.out) for s in (*((0,) if len(o.shape) == 3 else ()), *o.strides)
        ]
        places = [self._at(o) for o in (step.left, step.right, step.out)]
        tf32 = self.allow_tf32
        kinds = (step.left.dtype.code, step.out.dtype.code, step.accumulate, tf32)
        return (*kinds, *places, self.slots.slots(sizes), self.slots.slots(strides))

    def _launch(self, launch: TritonLaunch) -> tuple[Any, ...]:
        kernel = launch.kernel
        number = self.numbers[kernel.name]
        grid = (*launch.grid, *(1,) * (3 - len(launch.grid)))
        arguments = self._arguments(launch, kernel, self.compiled[number])
        return number, self.slots.slots(grid), tuple(arguments)

    def _arguments(self, launch: TritonLaunch, kernel: TritonKernel, compiled: CompiledKernel) -> list[Any]:
        """Parameters in the order of the machine code: the kernel's own, then scratch memory and one for profiles."""
        buffers, sizes, meta = iter(launch.buffers), iter(launch.sizes), iter(compiled.descriptors)
        result: list[Any] = []
        for name, kind in kernel.parameters:
            if name == "error":
                result.append((_ERROR, -1, -1, 0))
            elif kind.startswith("tensordesc"):
                result.extend(self._descriptor(next(buffers), next(meta)))
            elif kind.startswith("*"):
                result.append(self._pointer(next(buffers)))
            elif kind in ("fp32", "fp64"):
                result.append((_BITS, -1, -1, _float_bits(kind, next(sizes))))
            else:
                size = next(sizes)
                result.append((_INT64 if kind.endswith("64") else _INT32, -1, -1, self.slots.slot(size)))
        result.append(self._program_scratch(launch, compiled))
        result.append((_NULL, -1, -1, 0))
        return result

    def _pointer(self, buffer: Any) -> tuple[int, int, int, int]:
        if type(buffer) is tuple:  # rows of a table: addresses (of buffers) and numbers
            self.tables.append(tuple([self._cell(c) for c in buffer]))
            return _TABLE, -1, -1, len(self.tables) - 1
        return _POINTER, *self._at(buffer), 0

    def _cell(self, cell: Any) -> tuple[int, int, int, int]:
        if isinstance(cell, (str, Operand)):
            return _POINTER, *self._at(cell), 0
        return _INT64, -1, -1, self.slots.slot(cell)

    def _program_scratch(self, launch: TritonLaunch, compiled: CompiledKernel) -> tuple[int, int, int, int]:
        if not compiled.scratch:
            return _NULL, -1, -1, 0
        programs: Any = compiled.clusters * compiled.scratch
        for number in launch.grid:
            programs = programs * number
        used = [self._round(b.offset + b.bytes) for b in launch.buffers if type(b) is Scratch]
        offset = used[0] if used else 0
        for other in used[1:]:
            offset = _most(offset, other)
        return _POINTER, *self._at(Scratch(programs, offset)), 0

    def _descriptor(self, given: Any, meta: tuple[int, int, int, tuple[int, ...]]) -> list[Any]:
        assert type(given) is TensorDescriptor
        kind, swizzle, item, block = meta
        operand = given.operand
        sizes, strides = self.slots.slots(operand.shape), self.slots.slots(operand.strides)
        self.descriptors.append((kind, swizzle, item, sizes, strides, block))
        result: list[Any] = [(_DESCRIPTOR, *self._at(operand), len(self.descriptors) - 1)]
        result += [(_INT32, -1, -1, s) for s in sizes]
        return result + [(_INT64, -1, -1, s) for s in strides]


def _extent(buffer: Buffer) -> Any:
    """Bytes from the first element to the last, and at least those of one number."""
    elements: Any = 1
    for size, stride in zip(buffer.shape, buffer.strides, strict=True):
        elements = elements + (size - 1) * stride
    return elements * buffer.dtype.itemsize + 8


def _most(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return max(a, b)
    return Max(as_expr(a), as_expr(b))


def _float_bits(kind: str, value: Any) -> int:
    packed = struct.pack("<d", float(value)) if kind == "fp64" else struct.pack("<f", float(value)) + bytes(4)
    return struct.unpack("<q", packed)[0]
