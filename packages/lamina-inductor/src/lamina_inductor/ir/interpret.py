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

from .kernel import Accumulate, Accumulator, BindIndex, IndexValue, Kernel, Let, Load, Local, Loop, Sort, Store

__all__ = ["KernelError", "evaluate", "run_kernel"]


class KernelError(Exception):
    """A checked index was out of range: ``index``; ``check`` is the error word, ``size`` what it must be below."""

    def __init__(self, check: int, index: int, size: int) -> None:
        super().__init__(f"check {check} failed")
        self.check = check
        self.index = index
        self.size = size


# -- expressions and scalar operators --------------------------------------------------------------------

_COMPILED: dict[Expr, Callable[..., Any]] = {}


def evaluate(expr: Any, env: dict[Any, Any]) -> Any:
    """The value of an expression (or number) with symbols from ``env``: an int, or an array where a symbol is one."""
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
    if op == "convert_element_type" or op == "bitcast":
        return operator(op)(np.asarray(args[0]), dtype)
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    operands = [np.broadcast_to(a, shape) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
    if shape == ():
        operands = [o.reshape(1) if isinstance(o, np.ndarray) else o for o in operands]
    return np.asarray(operator(op)(*operands)).reshape(shape).astype(numpy_dtype(dtype), copy=False)


_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and, "xor": np.bitwise_xor, "logaddexp": np.logaddexp,
}  # fmt: skip
_START: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True, "xor": 0}


def _identity(kind: str, dtype: np.dtype[Any]) -> Any:
    if kind in _START:
        return dtype.type(_START[kind])
    if dtype.kind == "f":
        return dtype.type(math.inf if kind == "min" else -math.inf)
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
    extent = int(evaluate(loop.extent, state.env))
    for accumulator in loop.accumulators:
        state.sums[accumulator.name] = (accumulator, [])
    outer = dict(state.env)
    if "simd" in loop.kind or (loop.kind == "tile" and type(loop.body[0]) is not Loop):
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
    index = evaluate(stmt.index, state.env)
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
    index = evaluate(stmt.index, state.env)
    buffer = state.buffers[stmt.buffer]
    value = state.operand(stmt.value)
    if stmt.mask is not None:
        mask = np.broadcast_to(state.env[stmt.mask], np.shape(index))
        index, value = np.asarray(index)[mask], np.broadcast_to(value, mask.shape)[mask]
    _in_range(index, buffer, stmt)
    if stmt.mode == "set":
        buffer[index] = value
        if state.width is not None and np.size(index) != len(np.unique(index)) and not stmt.atomic:
            stored = np.broadcast_to(value, np.shape(index)).astype(buffer.dtype)  # a result with strides 0: the same
            if buffer[index].tobytes() != stored.tobytes():
                raise AssertionError(f"{stmt} writes different values to an element in one vector loop")
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[stmt.mode]
        used = buffer[: int(np.max(index)) + 1] if np.size(index) else buffer  # `at` copies what memory may overlap
        ufunc.at(used, index, value)


def _index_value(stmt: IndexValue, state: _State) -> None:
    state.env[stmt.name] = np.asarray(evaluate(stmt.expr, state.env)).astype(numpy_dtype(stmt.dtype))


def _bind(stmt: BindIndex, state: _State) -> None:
    value = np.asarray(state.operand(stmt.value)).astype(np.int64)
    if stmt.size is not None:
        size = evaluate(stmt.size, state.env)
        given = value
        if stmt.wrap:
            value = np.where(value < 0, value + size, value)
        bad = (value < 0) | (value >= size)
        if stmt.mask is not None:
            bad = bad & state.env[stmt.mask]
            value = np.where(state.env[stmt.mask], value, 0)
        if np.any(bad):
            wrong = np.broadcast_to(given, np.shape(bad))[bad]
            raise KernelError(stmt.check, int(wrong.max() if wrong.max() >= 0 else wrong.min()), int(size))
    state.env[stmt.symbol] = value


def _accumulate(stmt: Accumulate, state: _State) -> None:
    value = state.operand(stmt.value)
    if state.width is not None:
        value = np.broadcast_to(value, (state.width,))
    accumulator, fed = state.sums[stmt.accumulator]
    if stmt.running is not None:
        value = np.asarray(value, numpy_dtype(accumulator.dtype))
        _run(stmt.running, accumulator, fed[-1][0] if fed else None, value, state)
        fed[:] = [(np.asarray(state.env[stmt.running]).reshape(-1)[-1:], None)]
        return
    fed.append((value, None if stmt.index is None else state.operand(stmt.index)))


def _run(name: str, accumulator: Accumulator, before: Any, value: np.ndarray, state: _State) -> None:
    """Define ``name``: all that was fed so far, ``before`` and then ``value``, each element with those before it."""
    if before is None:
        init, kind = accumulator.init, accumulator.kind
        start = -0.0 if kind == "sum" and value.dtype.kind == "f" else _identity(kind, value.dtype)  # changes no bit
        before = start if init is None else state.operand(init)
    first = np.broadcast_to(np.asarray(before, value.dtype), (1,))
    everything = np.concatenate([first, np.atleast_1d(value)])
    result = _REDUCE[accumulator.kind].accumulate(everything, dtype=value.dtype)[1:]
    state.env[name] = result if value.ndim else result[0]


def _sort(stmt: Sort, state: _State) -> None:
    if state.width is None:
        raise AssertionError(f"{stmt} sorts no row")
    row = np.broadcast_to(state.operand(stmt.value), (state.width,))
    state.env[stmt.name] = operator("sort")(row, 0, stmt.descending)[stmt.places]


def _local(stmt: Local, state: _State) -> None:
    state.buffers[stmt.name] = np.full(stmt.size, 77).astype(numpy_dtype(stmt.dtype))


_STATEMENTS: dict[type, Callable[[Any, _State], None]] = {
    Loop: _loop, Let: _let, Load: _load, Store: _store, IndexValue: _index_value, BindIndex: _bind,
    Accumulate: _accumulate, Sort: _sort, Local: _local,
}  # fmt: skip
