"""Numbers that the program takes out of an array: ``x.item()``, ``float(x)``.

The read is put off: the value is a copy of the element in the graph, and becomes a number where Python needs one,
behind the graph. Beside an array it is an operand of the graph. What only the number itself can tell (a branch, a
size, text) ends the graph there.
"""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .constant import ConstantVariable
from .looked_up import LookedUpMethodVariable

__all__ = ["NO_BRANCH", "ArrayNumberVariable", "ItemMethodVariable", "beside_arrays", "number_binary"]

_NEEDS = "a number that an array holds is needed here, which only running the graph tells"
NO_BRANCH = (
    "a branch on a number that an array holds, which only running the graph tells",
    "Use where(), or move the branch out of the compiled function",
)
"""Reason and hint."""
_BESIDE_ARRAYS = frozenset("+-*/")
_OPERATORS = frozenset(("add", "sub", "mul", "div", "true_divide"))
_RANK = {bool: 0, int: 1, float: 2}
_KINDS = {"bool": 0, "int": 1, "float": 2}


class ItemMethodVariable(LookedUpMethodVariable):
    """``x.item`` of an array with one element."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        if args or kwargs:
            raise Unsupported("item() with arguments")
        return tx.number_of(self.owner, tx.frontend.member(self.owner.fake, "item").value)


class ArrayNumberVariable(VariableTracker):
    """A bool, int or float that ``array`` holds: a copy without dimensions and history, made for this number."""

    __slots__ = ("array", "kind")

    def __init__(self, array: Any, kind: type) -> None:
        self.source = None
        self.array = array
        self.kind = kind

    def python_type(self) -> type:
        return self.kind

    def children(self) -> list[Any]:
        return [self.array]

    def key(self) -> Any:
        raise Unsupported(_NEEDS)

    def truth(self, tx: Any) -> bool:
        raise Unsupported(*NO_BRANCH)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        raise Unsupported(_NEEDS)

    def beside(self, tx: Any, other: Any) -> Any:
        """The number as an array that gives, beside ``other``, what the number gives."""
        spec = tx.frontend.spec(other.fake)
        kind = _KINDS.get(spec.dtype.kind)
        if kind is None or (spec.dtype.itemsize < 4 and kind == 2):
            raise Unsupported(f"{_NEEDS}, beside an array of {spec.dtype}")
        if self.kind is int and kind == 1 and spec.dtype.itemsize < 8:  # it may not fit: how it is cut is the array's
            if not spec.shape:
                raise Unsupported(f"{_NEEDS}, beside a number of {spec.dtype}")
            return self.array
        if _RANK[self.kind] <= kind:
            return _converted(tx, self.array, spec.dtype)
        return self.array if self.kind is int else _converted(tx, self.array, tx.frontend.get_mode("default_dtype"))

    def wide(self, tx: Any) -> Any:
        """The number in the precision that Python computes with."""
        return self.array.getattr(tx, "double").call(tx, [], {})

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(_number, [self.array, ConstantVariable(self.kind)])

    def __repr__(self) -> str:
        return f"{self.kind.__name__} of an array"


def _converted(tx: Any, array: Any, dtype: Any) -> Any:
    return array.getattr(tx, "to").call(tx, [tx.wrap(dtype, None)], {})


def _number(array: Any, kind: type) -> Any:
    return kind(array.item())


def number_binary(tx: Any, symbol: str, left: Any, right: Any, inplace: bool) -> VariableTracker:
    """``left + right`` where one is such a number: in the graph where that gives the same, otherwise it ends there."""
    if not isinstance(left, ArrayNumberVariable) and hasattr(left, "fake"):
        _allow(symbol)
        return tx.binary(symbol, left, right.beside(tx, left), inplace)
    if not isinstance(right, ArrayNumberVariable) and hasattr(right, "fake"):
        _allow(symbol)
        return tx.binary(symbol, left.beside(tx, right), right)
    numbers = [_float_operand(tx, v) for v in (left, right)]
    divides = symbol == "/" and isinstance(right, ConstantVariable) and right.value != 0
    if None in numbers or not (symbol in "+-*" or divides):
        raise Unsupported(_NEEDS)
    return ArrayNumberVariable(tx.binary(symbol, *numbers), float)


def beside_arrays(tx: Any, id: str, args: list[Any]) -> list[Any]:
    """The arguments of an operator with such numbers as arrays, where that gives what the numbers give."""
    if id.partition(".")[0].rstrip("_") not in _OPERATORS or not hasattr(args[0], "fake"):
        return args
    return [args[0], *[a.beside(tx, args[0]) if isinstance(a, ArrayNumberVariable) else a for a in args[1:]]]


def _allow(symbol: str) -> None:
    if symbol not in _BESIDE_ARRAYS:
        raise Unsupported(f"{_NEEDS}, for {symbol}")


def _float_operand(tx: Any, value: Any) -> Any:
    """A float among the operands of arithmetic between numbers; None for others (ints have no limit in Python)."""
    if isinstance(value, ArrayNumberVariable):
        return value.wide(tx) if value.kind is float else None
    if isinstance(value, ConstantVariable) and type(value.value) in (int, float) and abs(value.value) < 1 << 53:
        return value
    return None
