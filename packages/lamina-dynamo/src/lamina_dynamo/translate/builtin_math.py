"""What the functions of ``math`` do, also on numbers that are symbolic: sizes, and what the host computes from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import SymInt

from ..variables import ConstantVariable, ScalarVariable, SymIntVariable, TensorVariable, VariableTracker
from .builtin_classes import number_of_array
from .builtin_tables import FUNCTION_RULES, rule_for

__all__ = ["floor_of_quotient"]

_EXACT = 1 << 50
"""Below, a quotient in double precision has the floor of the exact one."""


def floor_of_quotient(tx: Any, value: VariableTracker, function: Any) -> VariableTracker | None:
    """``floor(n / d)`` or ``ceil(n / d)`` of ints, as an int that sizes may depend on; None for other numbers."""
    host = value.host_value if isinstance(value, ScalarVariable) else None
    if host is None or host.fn is not operator.truediv or not all(_is_int(o) for o in host.operands):
        return None
    above, below = [_int_of(o) for o in host.operands]
    if below.python_type() is not int or abs(host.operands[0].value) >= _EXACT:
        return None
    if function is math.ceil:
        return tx.unary("-", tx.binary("//", tx.unary("-", above), below))
    return tx.binary("//", above, below)


def _is_int(host: Any) -> bool:
    return (
        host.fn is None and type(host.value) is int and (host.operands[0] is None or type(host.operands[0]) is SymInt)
    )


def _int_of(host: Any) -> VariableTracker:
    return ConstantVariable(host.value) if host.operands[0] is None else SymIntVariable(host.operands[0])


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, (SymIntVariable, ScalarVariable))


def _math(function: Any) -> Callable[..., VariableTracker]:
    def rule(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
        args = tuple([number_of_array(tx, a, float) if isinstance(a, TensorVariable) else a for a in args])
        if any(map(_is_symbolic, args)) and not kwargs:
            return tx.number(function, list(args))
        return tx.call_native(function, list(args), kwargs)

    return rule


@rule_for(math.floor, math.ceil, math.trunc)
def _unused(tx: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _rounding(function: Any) -> Callable[..., VariableTracker]:
    def rule(tx: Any, value: Any) -> VariableTracker:
        if isinstance(value, SymIntVariable):
            return value
        if isinstance(value, TensorVariable):
            value = number_of_array(tx, value, float)
        found = floor_of_quotient(tx, value, function) if function is not math.trunc else None
        return tx.call_native(function, [value], {}) if found is None else found

    return rule


@rule_for(math.prod)
def _prod(tx: Any, values: Any, *, start: Any = None) -> VariableTracker:
    result = ConstantVariable(1) if start is None else start
    for value in tx.unpack(values):
        result = tx.binary("*", result, value)
    return result


def _sum(*values: float) -> float:
    return math.fsum(values)


@rule_for(math.fsum)
def _fsum(tx: Any, values: Any) -> VariableTracker:
    items = tx.unpack(values)
    if any(map(_is_symbolic, items)):
        return tx.number(_sum, items)
    return tx.call_native(math.fsum, [tx.tuple_of(items)], {})


def _distance(*values: float) -> float:
    half = len(values) // 2
    return math.dist(values[:half], values[half:])


@rule_for(math.dist)
def _dist(tx: Any, first: Any, second: Any) -> VariableTracker:
    left, right = tx.unpack(first), tx.unpack(second)
    if len(left) == len(right) and any(map(_is_symbolic, (*left, *right))):
        return tx.number(_distance, [*left, *right])
    return tx.call_native(math.dist, [tx.tuple_of(left), tx.tuple_of(right)], {})


for _function in (math.floor, math.ceil, math.trunc):
    FUNCTION_RULES[_function] = _rounding(_function)
for _function in [value for name, value in vars(math).items() if callable(value) and not name.startswith("_")]:
    FUNCTION_RULES.setdefault(_function, _math(_function))
