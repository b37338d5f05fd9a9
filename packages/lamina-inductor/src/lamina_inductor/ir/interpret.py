"""Run kernel IR and whole programs in NumPy: exact in meaning, slow. For tests of scheduling without a compiler.

Vector loops run as one NumPy operation over all their iterations, which also checks that the iterations are
independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_fx import DType
from lamina_fx.symbolic import Expr
from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype

from .kernel import Accumulate, Accumulator, BindIndex, IndexValue, Kernel, Let, Load, Local, Loop, Store
from .program import Buffer, Convolution, CopyBuffer, Gemm, HostCall, KernelCall, Launch, Operand, Program

__all__ = ["KernelError", "run_kernel", "run_program"]


class KernelError(Exception):
    """A checked index was out of range; ``check`` is the error word."""

    def __init__(self, check: int) -> None:
        super().__init__(f"check {check} failed")
        self.check = check


# -- expressions and scalar operators --------------------------------------------------------------------

_COMPILED: dict[Expr, Callable[..., Any]] = {}


def _evaluate(expr: Any, env: dict[Any, Any]) -> Any:
    if not isinstance(expr, Expr):
        return expr
    if expr.is_constant:
        return expr.value  # type: ignore[attr-defined]
    names = sorted(expr.free_symbols, key=str)
    run = _COMPILED.get(expr)
    if run is None:
        code = f"lambda {', '.join(s.name for s in names)}: {expr!r}"
        run = _COMPILED[expr] = eval(code, {"min": _least, "max": _greatest})  # made of our own expressions
    return run(*[env[s] for s in names])


def _least(*values: Any) -> Any:
    result = values[0]
    for v in values[1:]:
        result = np.minimum(result, v)
    return result


def _greatest(*values: Any) -> Any:
    result = values[0]
    for v in values[1:]:
        result = np.maximum(result, v)
    return result


def _philox(seed: Any, offset: Any, index: Any) -> Any:
    count = int(np.max(index, initial=0)) + 1
    words = operator("philox")(np.array([int(seed), int(offset)], np.int64), (count,))
    return words[index]


def _apply(op: str, dtype: DType, args: list[Any]) -> Any:
    if op == "constant":
        return np.asarray(args[0]).astype(numpy_dtype(dtype))
    if op == "philox":
        return _philox(*[np.asarray(a).reshape(-1)[0] if k < 2 else np.asarray(a) for k, a in enumerate(args)])
    if op == "convert_element_type":
        return operator(op)(np.asarray(args[0]), dtype)
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    operands = [np.broadcast_to(a, shape) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
    if shape == ():
        operands = [o.reshape(1) if isinstance(o, np.ndarray) else o for o in operands]
    return np.asarray(operator(op)(*operands)).reshape(shape).astype(numpy_dtype(dtype), copy=False)


_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and, "xor": np.bitwise_xor,
}  # fmt: skip
_START: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True, "xor": 0}


def _identity(kind: str, dtype: np.dtype[Any]) -> Any:
    if kind in _START:
        return dtype.type(_START[kind])
    if dtype.kind == "f":
        return dtype.type(-math.inf if kind == "max" else math.inf)
    if dtype.kind == "b":
        return dtype.type(kind == "min")
    info = np.iinfo(dtype)
    return dtype.type(info.min if kind == "max" else info.max)


# -- kernels ---------------------------------------------------------------------------------------------


class _State:
    """Names in scope, buffers, accumulators."""

    def __init__(self, buffers: dict[str, np.ndarray], env: dict[Any, Any]) -> None:
        self.buffers = buffers
        self.env = env
        self.sums: dict[str, tuple[Accumulator, list[Any]]] = {}
        self.width: int | None = None

    def operand(self, value: Any) -> Any:
        return self.env[value] if type(value) is str else value


def run_kernel(kernel: Kernel, buffers: list[np.ndarray], sizes: list[int]) -> None:
    """Run a kernel on flat arrays (views of the memory behind each parameter).

    Raises:
        KernelError: a checked index is out of range.
    """
    memory = {p.name: b for p, b in zip(kernel.params, buffers, strict=True)}
    state = _State(memory, dict(zip(kernel.sizes, sizes, strict=True)))
    for phase in kernel.body:
        _loop(phase, state)


def _loop(loop: Loop, state: _State) -> None:
    extent = int(_evaluate(loop.extent, state.env))
    for accumulator in loop.accumulators:
        state.sums[accumulator.name] = (accumulator, [])
    outer = dict(state.env)
    if "simd" in loop.kind:
        if extent > 0:
            state.env = {**outer, loop.axis: np.arange(0, extent, loop.step)}
            state.width = len(range(0, extent, loop.step))
            _block(loop.body, state)
            state.width = None
    else:
        for i in range(0, extent, loop.step):
            state.env = {**outer, loop.axis: i}
            _block(loop.body, state)
    state.env = outer
    for accumulator in loop.accumulators:
        state.env[accumulator.name] = _result(*state.sums.pop(accumulator.name), state)


def _result(accumulator: Accumulator, fed: list[Any], state: _State) -> Any:
    dtype = numpy_dtype(accumulator.dtype)
    if accumulator.kind.startswith("arg"):
        values = np.concatenate([np.atleast_1d(v) for v, _ in fed])
        places = np.concatenate([np.broadcast_to(i, np.shape(np.atleast_1d(v))) for v, i in fed])
        return np.int64(places[getattr(np, accumulator.kind)(values)])
    start = _identity(accumulator.kind, dtype) if accumulator.init is None else state.operand(accumulator.init)
    with np.errstate(all="ignore"):
        parts = [np.atleast_1d(np.asarray(v, dtype)) for v, _ in fed]
        everything = np.concatenate([np.atleast_1d(dtype.type(start)), *parts])
        return dtype.type(_REDUCE[accumulator.kind].reduce(everything))


def _block(body: tuple[Any, ...], state: _State) -> None:
    with np.errstate(all="ignore"):
        for stmt in body:
            _STATEMENTS[type(stmt)](stmt, state)


def _let(stmt: Let, state: _State) -> None:
    state.env[stmt.name] = _apply(stmt.op, stmt.dtype, [state.operand(a) for a in stmt.args])


def _load(stmt: Load, state: _State) -> None:
    index = _evaluate(stmt.index, state.env)
    buffer = state.buffers[stmt.buffer]
    if stmt.mask is None:
        _in_range(index, buffer, stmt)
        state.env[stmt.name] = buffer[index]
        return
    mask = state.env[stmt.mask]
    safe = np.where(mask, index, 0)
    _in_range(safe, buffer, stmt)
    other = buffer.dtype.type(stmt.other)
    state.env[stmt.name] = np.where(mask, buffer[safe] if buffer.size else other, other)


def _in_range(index: Any, buffer: np.ndarray, stmt: Any) -> None:
    if np.size(index) and (np.min(index) < 0 or (np.max(index) >= buffer.size and buffer.size)):
        raise AssertionError(f"{stmt} leaves its buffer of {buffer.size} elements")


def _store(stmt: Store, state: _State) -> None:
    index = _evaluate(stmt.index, state.env)
    buffer = state.buffers[stmt.buffer]
    value = state.operand(stmt.value)
    if stmt.mask is not None:
        mask = np.broadcast_to(state.env[stmt.mask], np.shape(index))
        index, value = np.asarray(index)[mask], np.broadcast_to(value, mask.shape)[mask]
    _in_range(index, buffer, stmt)
    if stmt.mode == "set":
        if state.width is not None and np.size(index) != len(np.unique(index)) and not stmt.atomic:
            raise AssertionError(f"{stmt} writes an element twice in one vector loop")
        buffer[index] = value
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[stmt.mode]
        ufunc.at(buffer, index, value)


def _index_value(stmt: IndexValue, state: _State) -> None:
    state.env[stmt.name] = np.asarray(_evaluate(stmt.expr, state.env)).astype(numpy_dtype(stmt.dtype))


def _bind(stmt: BindIndex, state: _State) -> None:
    value = np.asarray(state.operand(stmt.value)).astype(np.int64)
    if stmt.size is not None:
        size = _evaluate(stmt.size, state.env)
        if stmt.wrap:
            value = np.where(value < 0, value + size, value)
        bad = (value < 0) | (value >= size)
        if stmt.mask is not None:
            bad = bad & state.env[stmt.mask]
            value = np.where(state.env[stmt.mask], value, 0)
        if np.any(bad):
            raise KernelError(stmt.check)
    state.env[stmt.symbol] = value


def _accumulate(stmt: Accumulate, state: _State) -> None:
    value = state.operand(stmt.value)
    if state.width is not None:
        value = np.broadcast_to(value, (state.width,))
    state.sums[stmt.accumulator][1].append((value, None if stmt.index is None else state.operand(stmt.index)))


def _local(stmt: Local, state: _State) -> None:
    state.buffers[stmt.name] = np.full(stmt.size, 77).astype(numpy_dtype(stmt.dtype))


_STATEMENTS: dict[type, Callable[[Any, _State], None]] = {
    Loop: _loop, Let: _let, Load: _load, Store: _store, IndexValue: _index_value, BindIndex: _bind,
    Accumulate: _accumulate, Local: _local,
}  # fmt: skip


# -- programs --------------------------------------------------------------------------------------------


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
        return int(_evaluate(value, self.sizes))

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
        IndexError: a checked index is out of range.
    """
    memory = _Memory(program, inputs)
    try:
        for step in program.steps:
            _STEPS[type(step)](step, memory)
    except KernelError as error:
        found = next(c for c in program.checks if c.number == error.check)
        raise IndexError(found.message) from None
    results: list[Any] = []
    for result in program.outputs:
        results.append(_output(result, results, inputs, memory))
    return tuple(results)


def _output(result: Any, results: list[Any], inputs: list[Any], memory: _Memory) -> Any:
    if result.kind == "buffer":
        buffer = memory.program.buffers[result.value]
        return memory.view(Operand(buffer.name, buffer.dtype, 0, buffer.shape, buffer.strides))
    if result.kind == "input":
        return inputs[result.value]
    if result.kind == "alias":
        return results[result.value]
    return _evaluate(result.value, memory.sizes)


def _call(call: KernelCall, memory: _Memory) -> None:
    run_kernel(call.kernel, [memory.flat[b] for b in call.buffers], [memory.size(s) for s in call.sizes])


def _launch(step: Launch, memory: _Memory) -> None:
    for call in step.parts:
        _call(call, memory)


def _gemm(step: Gemm, memory: _Memory) -> None:
    left, right, out = memory.view(step.left), memory.view(step.right), memory.view(step.out)
    wide = np.float32 if left.dtype.itemsize == 2 else left.dtype
    with np.errstate(all="ignore"):
        product = np.matmul(left.astype(wide), right.astype(wide))
    out[...] = (out + product if step.accumulate else product).astype(out.dtype)
    if step.epilogue:
        _call(step.epilogue, memory)


def _convolution(step: Convolution, memory: _Memory) -> None:
    bias = None if step.bias is None else memory.view(step.bias)
    padding = tuple(before for before, _ in step.padding)
    memory.view(step.out)[...] = operator("convolution")(
        memory.view(step.input), memory.view(step.weight), bias, step.stride, padding, step.dilation,
        step.transposed, step.output_padding or (0,) * len(step.stride), step.groups,
    )  # fmt: skip
    if step.epilogue:
        _call(step.epilogue, memory)


def _host(step: HostCall, memory: _Memory) -> None:
    def lift(value: Any) -> Any:
        if type(value) is Operand:
            return memory.view(value)
        if type(value) is tuple:
            return tuple([lift(v) for v in value])
        return _evaluate(value, memory.sizes)

    results = operator(step.operator).run_arrays(lift(step.args), {k: lift(v) for k, v in step.kwargs})
    for out, result in zip(step.outs, results if isinstance(results, tuple) else (results,), strict=True):
        if out is not None:
            memory.view(out)[...] = result


def _copy(step: CopyBuffer, memory: _Memory) -> None:
    memory.view(step.target)[...] = memory.view(step.source)


_STEPS: dict[type, Callable[[Any, _Memory], None]] = {
    Launch: _launch, Gemm: _gemm, Convolution: _convolution, HostCall: _host, CopyBuffer: _copy,
}  # fmt: skip
