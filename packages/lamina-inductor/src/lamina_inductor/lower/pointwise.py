"""Elementwise operators and conversions: one statement on the elements of the operands at the same index."""

from __future__ import annotations

from typing import Any

from lamina_fx import DType, bool_, int64
from lamina_fx.symbolic import Expr, SymFloat

from ..ir.dtypes import compute_dtype
from ..ir.loops import Index, Value
from .symbolic_floats import float_value
from .table import Call, lowers

__all__ = ["COSTS", "DIVISIONS", "cast_constant", "convert_value", "filled", "pointwise_call", "write_size"]

COSTS: dict[str, int] = (
    dict.fromkeys(
        [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sinh",
            "cosh",
            "asin",
            "acos",
            "atan",
            "atan2",
            "asinh",
            "acosh",
            "atanh",
            "erf",
            "erfc",
            "erfinv",
            "pow",
            "sigmoid",
            "lgamma",
            "digamma",
            "cbrt",
            "hypot",
            "fmod",
            "remainder",
            "logaddexp",
        ],
        12,
    )
    | dict.fromkeys(("erfcx", "ndtri", "i0e", "i1e", "zeta"), 60)
    | {"philox": 40, "div": 3, "sqrt": 3, "rsqrt": 3, "floor_div": 6, "reciprocal": 3}
)
"""Work of one element in units of an addition, where it is not 1."""


def cast_constant(value: Any, dtype: DType) -> Any:
    """A Python scalar as one of ``dtype``'s kind."""
    if dtype.kind == "bool":
        return bool(value)
    if dtype.kind == "int":
        return int(value)
    if dtype.kind == "float":
        return float(value)
    return complex(value)


def pointwise_call(call: Call, operands: tuple[Any, ...], extra: tuple[Any, ...] = ()) -> Value:
    """A point value applying ``call.op`` to ``operands`` (values or Python scalars), with constants ``extra``
    behind."""
    dtypes = [o.dtype for o in operands if type(o) is Value]
    common = next((d for d in dtypes if d is not bool_), call.spec.dtype if call.op == "where" else bool_)
    operands = tuple([_number(call, o, common) for o in operands])
    tensors = tuple([o for o in operands if type(o) is Value])
    value = call.value("point", tensors)
    value.attrs = (
        call.op,
        tuple([None if type(o) is Value else cast_constant(o, common) for o in operands]),
        extra,
    )
    value.rule = _write
    value.cost = COSTS.get(call.op, 1)
    return value


def _number(call: Call, operand: Any, dtype: DType) -> Any:
    if isinstance(operand, Expr):
        return size_value(call, operand, dtype)
    return float_value(call, operand, dtype) if isinstance(operand, SymFloat) else operand


def filled(call: Call, shape: tuple[Any, ...], number: Any, dtype: DType) -> Value:
    """A tensor of one number that no node of the graph stands for."""
    value = Value("index", "full", call.name, (), shape, dtype)
    constant = cast_constant(number, dtype)
    value.rule, value.cost = (lambda emitter, value, index: constant), 0
    return value


def size_value(call: Call, size: Expr, dtype: DType) -> Value:
    """A symbolic size as a tensor of one value, of the shape of the call's result."""
    value = Value("index", "size", call.name, (), call.value_shape(), dtype)
    value.rule, value.attrs, value.cost = write_size, size, 0
    return value


def write_size(emitter: Any, value: Value, index: Index) -> Any:
    """Statement for an element of a size's value: the size (``value.attrs``) itself, converted."""
    return emitter.convert(emitter.named(emitter.index_value(value.attrs), int64), int64, value.dtype)


def _write(emitter: Any, value: Value, index: Index) -> Any:
    op, constants, extra = value.attrs
    inputs = iter(value.inputs)
    operands = [emitter.read(next(inputs), index) if c is None else c for c in constants]
    if not any(type(o) is str for o in operands):  # only constants: one of them gives the type
        first = constants.index(None)
        operands[first] = emitter.named(operands[first], compute_dtype(value.inputs[0].dtype))
    if op in DIVISIONS and value.dtype.kind == "int":
        operands[1] = _checked(emitter, value, operands[1])
    return emitter.compute_let(value.dtype, op, operands + list(extra))


DIVISIONS = frozenset({"floor_divide", "trunc_divide", "remainder", "fmod"})
"""Of integers by zero they raise an error, as in eager."""


def _checked(emitter: Any, value: Value, divisor: Any) -> Any:
    """The divisor, plus an index that is 0 and out of range for a divisor of 0: so the division needs the check."""
    if type(divisor) is not str:
        if divisor != 0:
            return divisor
        wrong: Any = -1
    else:
        wrong = emitter.let(int64, "neg", emitter.convert(emitter.let(bool_, "eq", divisor, 0), bool_, int64))
    index = emitter.index_value(emitter.bind(wrong, 2, value), value.dtype)
    return emitter.let(value.dtype, "add", divisor, index)


@lowers("real", "imag", "complex")
def _parts(call: Call) -> Value | None:
    operands = tuple(call.args.values())
    if not all(type(o) is Value and o.shape == call.value_shape() for o in operands):
        return None
    dtype = operands[0].dtype
    return pointwise_call(call, operands) if call.supports(call.op, dtype) and dtype is compute_dtype(dtype) else None


@lowers("bitcast")
def _bitcast(call: Call) -> Value | None:
    input, dtype = call["input"], call.spec.dtype
    if any(d is not compute_dtype(d) or d is bool_ for d in (input.dtype, dtype)):
        return None  # a narrow float is held widened, which loses bits of its NaNs
    return pointwise_call(call, (input,)) if call.supports(call.op, input.dtype) else None


@lowers("convert_element_type")
def _convert(call: Call) -> Value:
    input = call["input"]
    value = call.value("point", (input,))
    value.rule = _write_convert
    return value


def convert_value(input: Value, dtype: DType) -> Value:
    """``input`` converted to ``dtype``."""
    value = Value("point", "convert_element_type", f"{input.name}_{dtype}", (input,), input.shape, dtype)
    value.rule = _write_convert
    value.origin = input.origin
    return value


def _write_convert(emitter: Any, value: Value, index: Index) -> Any:
    operand = emitter.read(value.inputs[0], index)
    return emitter.convert(operand, value.inputs[0].dtype, value.dtype)
