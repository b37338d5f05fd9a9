"""Put values or other expressions in place of symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from .expr import Expr, ExprLike, Integer, Sum, Symbol, as_expr
from .operations import And, Eq, FloorDiv, Le, Lt, Max, Min, Mod, Ne, Or, Product
from .truth import BooleanConstant

__all__ = ["evaluate", "substitute"]


def substitute(expr: Expr, values: Mapping[Expr, ExprLike]) -> Expr:
    """``expr`` with each key of ``values`` replaced, simplified."""
    if not values:
        return expr
    symbols = frozenset(key for key in values if isinstance(key, Symbol))
    return _substitute(expr, values, symbols if len(symbols) == len(values) else None, {})


def _substitute(
    expr: Expr, values: Mapping[Expr, ExprLike], symbols: frozenset[Expr] | None, memo: dict[Expr, Expr]
) -> Expr:
    found = values.get(expr)
    if found is not None:
        return as_expr(found)
    if symbols is not None and symbols.isdisjoint(expr.free_symbols):
        return expr
    done = memo.get(expr)
    if done is not None:
        return done
    if isinstance(expr, Sum):
        result: Expr = Integer(expr.constant)
        for term, c in expr.terms:
            result = result + _substitute(term, values, symbols, memo) * c
    elif isinstance(expr, (Integer, Symbol, BooleanConstant)):
        return expr
    else:
        result = type(expr)(*[_substitute(a, values, symbols, memo) for a in expr.children()])  # type: ignore[call-arg]
    memo[expr] = result
    return result


def evaluate(expr: Expr, values: Mapping[Expr, int]) -> int:
    """The value of ``expr``."""
    kind = type(expr)
    if kind is Symbol:
        try:
            return values[expr]
        except KeyError:
            raise KeyError(f"no value for the symbol {expr}") from None
    if kind is Integer or kind is BooleanConstant:
        return expr.value  # type: ignore[attr-defined]
    if kind is Sum:
        return _sum(expr, values)  # type: ignore[arg-type]
    return _APPLY[kind](*[evaluate(a, values) for a in expr.children()])


def _sum(expr: Sum, values: Mapping[Expr, int]) -> int:
    total = expr.constant
    for term, c in expr.terms:
        total += c * evaluate(term, values)
    return total


def _product(*args: int) -> int:
    result = 1
    for arg in args:
        result *= arg
    return result


_APPLY: dict[type[Expr], Callable[..., int]] = {
    Product: _product,
    FloorDiv: int.__floordiv__,
    Mod: operator.mod,
    Min: min,
    Max: max,
    Eq: operator.eq,
    Ne: operator.ne,
    Lt: operator.lt,
    Le: operator.le,
    And: lambda *args: all(args),
    Or: lambda *args: any(args),
}
