"""Run the corpus and the samples of primitives in Triton's interpreter: ``python triton_interpreted.py [name ...]``.

Prints one JSON object: name -> None, or what is wrong. The interpreter's patches hold for the whole process, so this is
one of its own. It has traps that the shims below are for: it knows no libdevice, computes with the bits of bfloat16 and
truncates when it makes one, forgets that a condition of scalars is a bool, and reads of an argument what a PyTorch
tensor has.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import fields, replace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read by @triton.jit when it decorates
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import ml_dtypes
import numpy as np
import triton.language as tl
from tracing import copied, trace
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor as HostDescriptor
from triton_corpus import CASES, OPERATORS, graph_of
from triton_float8 import FLOAT8_CASES
from triton_tiles import ROW_CASES, TILE_CASES

from lamina_fx import Graph, Interpreter
from lamina_fx.symbolic import Expr
from lamina_inductor.backends.triton import TritonBackend, TritonProgram, load_function
from lamina_inductor.backends.triton.program import Scratch, TensorDescriptor
from lamina_inductor.ir.program import INDEX_BITS, Buffer, Operand, Program
from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype
from lamina_prims.modes import creating


class HostStorage:
    """The memory of an array; copying it to the host and back does nothing."""

    def __init__(self, array: np.ndarray | None) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.__array_interface__["data"][0] if self.array is not None else 0

    def cpu(self) -> HostStorage:
        return self

    def copy_(self, other: HostStorage) -> None:
        assert other.array is self.array


class HostTensor:
    """An array as an argument: what the interpreter asks of one."""

    def __init__(self, array: np.ndarray | None, dtype: Any = None) -> None:
        self.storage = HostStorage(array)
        self.dtype = array.dtype if array is not None else dtype

    def data_ptr(self) -> int:
        return self.storage.data_ptr()

    def untyped_storage(self) -> HostStorage:
        return self.storage

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.storage.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.storage.array.itemsize for s in self.storage.array.strides)

    def new_empty(self, size: int, device: Any = None) -> HostTensor:
        return HostTensor(None, self.dtype)

    def set_(self, storage: HostStorage, offset: int, size: Any, stride: Any) -> None:
        self.storage = storage


def round_to_bfloat16() -> None:
    """Make the interpreter's conversions from and to bfloat16 right."""
    cast = interpreter.InterpreterBuilder.cast_impl

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if source.dtype.scalar == tl.bfloat16:
            bits = source.data.astype(np.uint32) << np.uint32(16)
            source = interpreter.TensorHandle(bits.view(np.float32), tl.float32)
        if target.scalar == tl.bfloat16:
            narrow = source.data.astype(ml_dtypes.bfloat16).view(np.uint16)
            return interpreter.TensorHandle(narrow, tl.bfloat16)
        return cast(self, source, target)

    interpreter.InterpreterBuilder.cast_impl = cast_impl


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


def compute_assembly() -> None:
    """The few instructions that kernels spell out, by their meaning: copies, rounding, widening, a reciprocal."""
    to_bits = {"cvt.rn.bf16x2": lambda x: x.astype(ml_dtypes.bfloat16), "shl.b32": lambda x: x.view(ml_dtypes.bfloat16)}

    def create_inline_asm(
        self: Any, text: str, constraints: str, values: Any, types: Any, pure: bool, pack: int
    ) -> Any:
        (source,) = values
        if text.startswith("mov."):
            return Results((interpreter.TensorHandle(source.data, source.dtype.scalar),))
        if text.startswith("rcp.approx"):
            result = np.float32(1) / source.data
        else:
            result = next(f for name, f in to_bits.items() if name in text)(source.data).astype(np.float32)
        return Results((interpreter.TensorHandle(result, tl.float32),))

    interpreter.InterpreterBuilder.create_inline_asm = create_inline_asm


def keep_scalar_conditions() -> None:
    """A comparison of scalars has the dtype of what was compared; say that it is a bool before it becomes a tile."""
    splat = interpreter.InterpreterBuilder.create_splat

    def create_splat(self: Any, *args: Any) -> Any:
        return splat(self, *[_as_bool(a) if isinstance(a, interpreter.TensorHandle) else a for a in args])

    interpreter.InterpreterBuilder.create_splat = create_splat


def _as_bool(handle: Any) -> Any:
    return interpreter.TensorHandle(handle.data, tl.int1) if handle.data.dtype == np.bool_ else handle


def combine_in_halves() -> None:
    """Scans, and reductions by functions of ours, of whole tiles in few steps: the interpreter goes element by element,
    and adds up int32 as int64 in a scan."""

    def combined(self: Any, tiles: Any, left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
        operands = [self.to_tensor(p, t.dtype) for side in (left, right) for p, t in zip(side, tiles, strict=True)]
        found = self.combine_fn.fn(*operands)
        return [f.handle.data for f in (found if isinstance(found, tuple) else (found,))]

    def scan(self: Any, tiles: Any) -> Any:
        parts = [np.moveaxis(t.handle.data, self.axis, 0) for t in tiles]
        step = 1
        while step < len(parts[0]):
            ends = combined(self, tiles, [np.roll(p, step, 0) for p in parts], parts)
            parts = [np.concatenate([p[:step], e[step:]]) for p, e in zip(parts, ends, strict=True)]
            step *= 2
        return [self.to_tensor(np.moveaxis(p, 0, self.axis), t.dtype) for p, t in zip(parts, tiles, strict=True)]

    def reduce(self: Any, tiles: Any) -> Any:
        if self.axis is None or self.keep_dims:
            return slow(self, tiles)
        parts = [np.moveaxis(t.handle.data, self.axis, 0) for t in tiles]
        while len(parts[0]) > 1:
            half = len(parts[0]) // 2
            parts = combined(self, tiles, [p[:half] for p in parts], [p[half:] for p in parts])
        return [self.to_tensor(p[0] if p.ndim > 1 else p.item(), t.dtype) for p, t in zip(parts, tiles, strict=True)]

    slow = interpreter.ReduceOps.generic_reduce
    interpreter.ScanOps.apply_impl, interpreter.ReduceOps.generic_reduce = scan, reduce


class Results(tuple[Any, ...]):
    """What an operation with several results gives."""

    get_result = tuple.__getitem__


class Library:
    """libdevice by NumPy."""

    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"} | {
        "atanh": "arctanh", "pow": "power", "atan2": "arctan2", "fast_dividef": "divide"
    }  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        function: Any = getattr(np, self.names.get(name, name), None) or operator(name).reference

        def call(*args: Any) -> Any:
            tensors = [a for a in args if isinstance(a, tl.tensor)]
            first = next((a for a in tensors if a.type.is_block()), tensors[0])
            data = function(*[a.handle.data if isinstance(a, tl.tensor) else a for a in args])
            scalar = first.dtype.scalar
            kind = tl.block_type(scalar, list(data.shape)) if first.type.is_block() else scalar
            return tl.tensor(interpreter.TensorHandle(data.astype(first.handle.data.dtype), scalar), kind)

        return call


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


def run(program: TritonProgram, inputs: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """The buffers that the program returns, and the error word. Scratch memory starts full of NaN."""
    size = Sizes(program.program, inputs)
    memory: dict[str, np.ndarray] = {}
    for buffer in program.program.buffers.values():
        given = {"input": inputs, "constant": program.program.constants}.get(buffer.storage)
        memory[buffer.name] = fresh(size(buffer)) if given is None else given[buffer.index]
    scratch = np.full(1 << 20, 0xFF, np.uint8)
    error = np.zeros(1, np.int64)
    for launch in program.launches:
        function = load_function(launch.kernel)
        function.fn.__globals__["libdevice"] = Library()
        kinds = [kind for _, kind in launch.kernel.parameters]
        arguments = [_argument(size(b), memory, scratch, k) for b, k in zip(launch.buffers, kinds, strict=False)]
        arguments += [*size(launch.sizes), *([HostTensor(error)] if launch.kernel.checks else [])]
        function[size(launch.grid)](*arguments, **launch.kernel.constants)
    return [memory[r.value] for r in program.program.outputs], int(error[0])


_TYPES = {"*fp32": np.dtype(np.float32), "*fp16": np.dtype(np.float16), "*bf16": np.dtype(ml_dtypes.bfloat16)}
_TYPES |= {"*i32": np.dtype(np.int32), "*i64": np.dtype(np.int64)}


def _argument(value: Any, memory: dict[str, np.ndarray], scratch: np.ndarray, kind: str = "") -> Any:
    if isinstance(value, Scratch):
        assert value.offset + value.bytes <= scratch.nbytes
        return HostTensor(scratch[value.offset :].view(_TYPES[kind]))
    if isinstance(value, TensorDescriptor):
        shape, strides = list(value.operand.shape), list(value.operand.strides)
        return HostDescriptor(_argument(value.operand, memory, scratch), shape, strides, list(value.block))
    if isinstance(value, Operand) and value.buffer == "scratch":
        return HostTensor(scratch.view(numpy_dtype(value.dtype))[value.offset :])
    if isinstance(value, Operand):
        flat = np.lib.stride_tricks.as_strided(memory[value.buffer], (1 << 30,), (memory[value.buffer].itemsize,))
        return HostTensor(flat[value.offset :])
    if kind == "*u8" and isinstance(value, str):  # the bytes of float8
        return HostTensor(memory[value].view(np.uint8))
    return HostTensor(memory[value] if isinstance(value, str) else table(value, memory))


def table(cells: Any, memory: dict[str, np.ndarray]) -> np.ndarray:
    """A table's memory: addresses of buffers, and numbers."""
    return np.array([memory[c].__array_interface__["data"][0] if type(c) is str else c for c in cells], np.int64)


def fresh(buffer: Buffer) -> np.ndarray:
    """Memory for a buffer, full of something else."""
    extent = 1 + sum((n - 1) * s for n, s in zip(buffer.shape, buffer.strides, strict=True))
    flat = np.full(max(extent, 1), 77).astype(numpy_dtype(buffer.dtype))
    return np.ndarray(buffer.shape, flat.dtype, flat, 0, [s * flat.itemsize for s in buffer.strides])


def difference(got: np.ndarray, want: np.ndarray) -> str | None:
    """None when they are as near as they should be."""
    want = np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{np.sum(got != want)} of {got.size} differ: {got} {want}"
    tolerance = {8: 1e-12, 4: 2e-5, 2: 1e-2, 1: 0}[want.dtype.itemsize]
    got, want = got.astype(np.float64), want.astype(np.float64)
    if np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    return f"differ by {np.nanmax(np.abs(got - want))}"


def check(graph: Graph, inputs: list[np.ndarray]) -> str | None:
    """What is wrong with what the kernels of a graph compute; None also when not all of it is kernels."""
    program = TritonBackend().emit(graph)
    if program.externs:
        return None
    with creating(None):
        wanted = Interpreter(graph, operator).run(*[copied(a) for a in inputs])
    results, error = run(program, [copied(a) for a in inputs])
    if error:
        return f"error word {error}"
    found = [difference(got, want) for got, want in zip(results, wanted, strict=True)]
    wrong = [f"result {k}: {text}" for k, text in enumerate(found) if text]
    return "; ".join(wrong) or None


def case(name: str) -> str | None:
    """What is wrong with a case of the corpus."""
    fn, inputs, *_ = (CASES | FLOAT8_CASES | TILE_CASES | ROW_CASES)[name]
    return check(graph_of(fn, inputs), list(inputs))


def samples(id: str) -> str | None:
    """What is wrong with the samples of an operator."""
    wrong: list[str] = []
    for number, sample in enumerate(operator(id).samples(np.random.default_rng(0))):
        graph, arrays = trace(operator(id), *sample.args, **sample.kwargs)
        found = check(graph, arrays) if arrays else None
        if found:
            wrong.append(f"sample {number}: {found}")
    return "; ".join(wrong) or None


def bad_index() -> str | None:
    """An index out of range is named, with its check, in the error word, and leaves memory alone."""
    fn, (table, index), _ = CASES["embedding"]
    index = index.copy()
    index[1, 1] = 10
    _, error = run(TritonBackend().emit(graph_of(fn, (table, index))), [table, index])
    return None if error == (1 << INDEX_BITS) + 10 else f"error word {error}"


def prepare() -> None:
    """Put in the shims."""
    round_to_bfloat16()
    keep_scalar_conditions()
    multiply_bfloat16()
    compute_assembly()
    combine_in_halves()
    warnings.simplefilter("ignore")


def main(names: list[str]) -> None:
    prepare()
    report: dict[str, str | None] = {}
    cases = (*CASES, *FLOAT8_CASES, *TILE_CASES, *ROW_CASES)
    runs: dict[str, Any] = dict.fromkeys(cases, case) | dict.fromkeys(OPERATORS, samples)
    runs["bad index"] = lambda name: bad_index()
    for name in names or runs:
        try:
            report[name] = runs[name](name)
        except Exception as error:  # noqa: BLE001 - the test of this case says what it is
            report[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
