"""Floats computed from sizes (``n / (n - 1)``, ``1 / sqrt(n)``) as values of kernels, in double precision.

Asking such a number for its value would tie the compiled program to the sizes of the example.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from lamina_fx import DType, float64, int64
from lamina_fx.symbolic import SymFloat

from ..ir.loops import Index, Value
from .table import Call

__all__ = ["float_value", "write_float"]

_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_div", ast.Pow: "pow",
}  # fmt: skip


def float_value(call: Call, number: SymFloat, dtype: DType) -> Value:
    """The number as a tensor of the shape of the call's result."""
    value = Value("index", "size", call.name, (), call.value_shape(), dtype)
    value.rule, value.attrs, value.cost = write_float, number, 0
    return value


def write_float(emitter: Any, value: Value, index: Index) -> Any:
    """Statements for the number in ``value.attrs``, converted."""
    number: SymFloat = value.attrs
    found = _write(emitter, ast.parse(number.text, mode="eval").body, iter(number.exprs))
    return emitter.convert(emitter.named(found, float64), float64, value.dtype)


def _write(emitter: Any, node: Any, sizes: Iterator[Any]) -> Any:
    """A name or a constant for a part of the text; its ``float(...)`` stand for ``sizes``, in order."""
    if isinstance(node, ast.Call) and node.func.id == "float":  # type: ignore[attr-defined]
        size = emitter.named(emitter.index_value(next(sizes)), int64)
        return emitter.let(float64, "convert_element_type", size)
    if isinstance(node, ast.Call):
        return emitter.let(float64, node.func.id, _named(emitter, node.args[0], sizes))  # type: ignore[attr-defined]
    if isinstance(node, ast.BinOp):
        left = _named(emitter, node.left, sizes)
        return emitter.let(float64, _OPERATORS[type(node.op)], left, _named(emitter, node.right, sizes))
    if isinstance(node, ast.UnaryOp):
        return emitter.let(float64, "neg", _named(emitter, node.operand, sizes))
    return float(node.id if isinstance(node, ast.Name) else node.value)  # "inf" is a name


def _named(emitter: Any, node: Any, sizes: Iterator[Any]) -> Any:
    return emitter.named(_write(emitter, node, sizes), float64)
