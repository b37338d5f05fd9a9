"""What the functions of the ``operator`` module do, and a few of ``inspect`` and ``typing``."""

from __future__ import annotations

import inspect
import operator
import typing
from collections.abc import Callable
from typing import Any

from ..status import is_compiling
from ..variables import (
    NONE,
    BoundMethodVariable,
    ConstantVariable,
    FunctionVariable,
    GetterVariable,
    SymIntVariable,
    TupleVariable,
    VariableTracker,
)  # fmt: skip
from .builtin_tables import FUNCTION_RULES, rule_for
from .operations import BINARY, COMPARE


def _binary_rule(symbol: str, inplace: bool) -> Callable[..., VariableTracker]:
    def rule(tx: Any, left: Any, right: Any) -> VariableTracker:
        return tx.binary(symbol, left, right, inplace)

    return rule


def _compare_rule(symbol: str) -> Callable[..., VariableTracker]:
    def rule(tx: Any, left: Any, right: Any) -> VariableTracker:
        return tx.compare(symbol, left, right)

    return rule


for _symbol, (_plain, _inplace, _) in BINARY.items():
    FUNCTION_RULES[_plain] = _binary_rule(_symbol, False)
    FUNCTION_RULES[_inplace] = _binary_rule(_symbol, True)
for _symbol, (_plain, _, _) in COMPARE.items():
    FUNCTION_RULES[_plain] = _compare_rule(_symbol)


@rule_for(operator.getitem)
def _getitem(tx: Any, value: Any, index: Any) -> VariableTracker:
    return value.getitem(tx, index)


@rule_for(operator.setitem)
def _setitem(tx: Any, value: Any, index: Any, new: Any) -> VariableTracker:
    value.setitem(tx, index, new)
    return NONE


@rule_for(operator.delitem)
def _delitem(tx: Any, value: Any, index: Any) -> VariableTracker:
    value.delitem(tx, index)
    return NONE


@rule_for(operator.contains)
def _contains(tx: Any, value: Any, item: Any) -> VariableTracker:
    return ConstantVariable(tx.contains(value, item))


@rule_for(operator.is_)
def _is(tx: Any, left: Any, right: Any) -> VariableTracker:
    return ConstantVariable(tx.identical(left, right))


@rule_for(operator.is_not)
def _is_not(tx: Any, left: Any, right: Any) -> VariableTracker:
    return ConstantVariable(not tx.identical(left, right))


@rule_for(operator.truth)
def _truth(tx: Any, value: Any) -> VariableTracker:
    return ConstantVariable(tx.truth(value))


@rule_for(operator.not_)
def _not(tx: Any, value: Any) -> VariableTracker:
    return ConstantVariable(not tx.truth(value))


@rule_for(operator.neg)
def _neg(tx: Any, value: Any) -> VariableTracker:
    return tx.unary("-", value)


@rule_for(operator.index)
def _index(tx: Any, value: Any) -> VariableTracker:
    return value if isinstance(value, SymIntVariable) else ConstantVariable(tx.index_of(value))


@rule_for(operator.itemgetter)
def _itemgetter(tx: Any, *keys: Any) -> VariableTracker:
    function = tx.polyfill_function("itemgetter_call")
    return GetterVariable(function, [TupleVariable(list(keys))], operator.itemgetter, list(keys), {})


@rule_for(operator.attrgetter)
def _attrgetter(tx: Any, *names: Any) -> VariableTracker:
    function = tx.polyfill_function("attrgetter_call")
    return GetterVariable(function, [TupleVariable(list(names))], operator.attrgetter, list(names), {})


@rule_for(operator.methodcaller)
def _methodcaller(tx: Any, name: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    bound = [name, TupleVariable(list(args)), tx.dict_of(kwargs)]
    function = tx.polyfill_function("methodcaller_call")
    return GetterVariable(function, bound, operator.methodcaller, [name, *args], kwargs)


@rule_for(inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isfunction)
def _is_generator_function(tx: Any, value: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _code_flag(flag: int) -> Callable[..., VariableTracker]:
    def rule(tx: Any, value: Any) -> VariableTracker:
        if isinstance(value, BoundMethodVariable):
            value = value.function
        return ConstantVariable(isinstance(value, FunctionVariable) and bool(value.code.co_flags & flag))

    return rule


FUNCTION_RULES[inspect.isgeneratorfunction] = _code_flag(inspect.CO_GENERATOR)
FUNCTION_RULES[inspect.iscoroutinefunction] = _code_flag(inspect.CO_COROUTINE)
FUNCTION_RULES[inspect.isfunction] = _code_flag(inspect.CO_OPTIMIZED)


@rule_for(typing.cast)
def _cast(tx: Any, kind: Any, value: Any) -> VariableTracker:
    return value


@rule_for(is_compiling)
def _is_compiling(tx: Any) -> VariableTracker:
    return ConstantVariable(True)
