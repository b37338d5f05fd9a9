"""Steps without a kernel: the operator's reference over arrays of the front end, made over the program's memory.

The launcher calls back with the addresses of a step's operands, in the order of ``step_places``; the arrays compute on
the stream that the program runs on. A kernel that Triton cannot print is interpreted on the host, over copies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lamina_fx import DType
from lamina_fx.symbolic import Expr
from lamina_prims.arrays import numpy_dtype
from lamina_prims.modes import creating

from ...host.gpu import front_end, gpu_launcher
from ...ir.interpret import KernelError, evaluate, run_kernel
from ...ir.interpret_program import run_step
from ...ir.program import INDEX_BITS, Buffer, KernelCall, Operand

__all__ = ["DeviceSteps", "HostKernel", "step_places"]


@dataclasses.dataclass(frozen=True, slots=True)
class HostKernel:
    """A call of a kernel that is interpreted on the host; ``buffers`` are those of the call."""

    call: KernelCall
    buffers: tuple[Buffer, ...]


def step_places(step: Any) -> list[Operand | str]:
    """Operands (or names of buffers) whose addresses a call of the step gets, in order, each once."""
    if type(step) is HostKernel:
        return [b.name for b in step.buffers]
    return list(dict.fromkeys(_operands(step)))


def _operands(value: Any) -> Iterator[Operand]:
    if type(value) is Operand:
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, DType, Expr)):
        for field in dataclasses.fields(value):
            yield from _operands(getattr(value, field.name))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _operands(item)


class DeviceSteps:
    """What the launcher calls: ``(number, addresses, sizes, stream)``."""

    def __init__(self, steps: Sequence[Any], symbols: Sequence[str], device: int, fail: Callable[[int], None]) -> None:
        self.steps = tuple(steps)
        self.symbols = tuple(symbols)
        self.device = device
        self.fail = fail

    def __call__(self, number: int, addresses: tuple[int, ...], sizes: tuple[int, ...], stream: int) -> None:
        """Run a step."""
        step, known = self.steps[number], _Sizes(zip(self.symbols, sizes, strict=True))
        if type(step) is HostKernel:
            try:
                _interpret(step, addresses, known, stream)
            except KernelError as error:
                self.fail(error.check << INDEX_BITS | error.index & (1 << INDEX_BITS) - 1)
            return
        memory = _DeviceMemory(dict(zip(step_places(step), addresses, strict=True)), known, self.device)
        with creating(None):
            run_step(step, memory)


class _Sizes(dict[str, int]):
    """Values of size symbols, found by name: a stored step's symbols are other objects."""

    def __getitem__(self, symbol: Any) -> int:
        return super().__getitem__(symbol if type(symbol) is str else symbol.name)


class _DeviceMemory:
    """The operands of one step as arrays of the front end."""

    def __init__(self, addresses: dict[Any, int], sizes: _Sizes, device: int) -> None:
        self.addresses, self.sizes, self.device = addresses, sizes, device

    def size(self, value: Any) -> int:
        """A size's value."""
        return int(evaluate(value, self.sizes))

    def view(self, operand: Operand) -> Any:
        """The array."""
        shape = tuple([self.size(n) for n in operand.shape])
        strides = tuple([self.size(s) for s in operand.strides])
        return front_end().array(self.addresses[operand], operand.dtype, shape, strides, self.device)


def _interpret(step: HostKernel, addresses: tuple[int, ...], sizes: _Sizes, stream: int) -> None:
    """Copy the kernel's buffers to the host, run its statements there, and copy what it wrote back."""
    launcher, arrays = gpu_launcher(), []
    for buffer, address in zip(step.buffers, addresses, strict=True):
        dtype = numpy_dtype(buffer.dtype)
        elements = 1
        for n, s in zip(buffer.shape, buffer.strides, strict=True):
            n, s = int(evaluate(n, sizes)), int(evaluate(s, sizes))
            elements = elements + (n - 1) * s if n else 0
            if not n:
                break
        data = launcher.read_memory(address, elements * dtype.itemsize, stream)
        arrays.append(np.frombuffer(bytearray(data), dtype))
    run_kernel(step.call.kernel, arrays, [int(evaluate(s, sizes)) for s in step.call.sizes])
    for parameter, array, address in zip(step.call.kernel.params, arrays, addresses, strict=True):
        if parameter.role != "in":
            launcher.write_memory(address, array.view(np.uint8), stream)
