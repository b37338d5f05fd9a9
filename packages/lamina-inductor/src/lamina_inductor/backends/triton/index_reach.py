"""How far the indices of a program reach, as expressions of its sizes: for sizes that have no bound.

>>> from lamina_fx.symbolic import Symbol
>>> n, m = Symbol("s0", 2), Symbol("s1", 2)
>>> i = Symbol("i0", 0, n * m - 1)
>>> reached(i % m * 4 + i // m)
(s0*s1, s0 + 4*s1 - 5)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina_fx.symbolic import Expr, FloorDiv, Integer, Max, Min, Mod, Product, Sum, Symbol

from .tiles import constant

__all__ = ["most_of", "reached"]

_NONE, _ONE = Integer(0), Integer(1)

Reach = tuple[Any, Any]
"""(a, b): an expression lies between -b and a; both are at least 0 for all sizes that a program runs with."""


def reached(expr: Expr) -> tuple[Expr, ...]:
    """What bounds an index and all that is computed on the way to it, of either sign."""
    known: dict[Expr, Reach] = {}
    _reach(expr, known)
    return most_of([bound for reach in known.values() for bound in reach])


def _reach(expr: Expr, known: dict[Expr, Reach]) -> Reach:
    if expr not in known:
        known[expr] = _of(expr, known)
    return known[expr]


def _of(expr: Expr, known: dict[Expr, Reach]) -> Reach:
    kind = type(expr)
    if kind is Integer:
        return Integer(max(expr.value, 0)), Integer(max(-expr.value, 0))
    if kind is Symbol:
        return _of_symbol(expr, known)
    if kind is Sum:
        return _of_sum(expr, known)
    parts = [_reach(part, known) for part in expr.children()]
    if kind is Product:
        return _of_product(parts)
    if kind is FloorDiv:
        return _quotient(parts[0][0], expr.children()[1]), parts[0][1]
    if kind is Mod:
        return parts[1][0] - 1, _NONE
    if kind is Min or kind is Max:
        of = Min if kind is Min else Max
        return _fold(of, [up for up, _ in parts]), _fold(Max, [down for _, down in parts])
    return _ONE, _NONE  # a condition


def _of_symbol(symbol: Symbol, known: dict[Expr, Reach]) -> Reach:
    low, high = symbol.lower, symbol.upper
    down = Max(-symbol, 0) if low is None else Integer(max(-low, 0))
    if isinstance(high, Expr):
        return _reach(high, known)[0], down
    if high is not None:
        return Integer(max(high, 0)), down
    return symbol if low is not None and low >= 0 else Max(symbol, 0), down


def _of_sum(expr: Sum, known: dict[Expr, Reach]) -> Reach:
    """Partial sums in any order lie between those of the positive and of the negative parts."""
    up: Any = max(expr.constant, 0)
    down: Any = max(-expr.constant, 0)
    for term, c in expr.terms:
        most, least = _reach(term, known)
        if c < 0:
            most, least = least, most
        up, down = up + most * abs(c), down + least * abs(c)
    if expr.constant < 0 and constant(down) == -expr.constant:  # n - 1
        up = up + expr.constant
    return up, down


def _of_product(parts: list[Reach]) -> Reach:
    result = parts[0]
    for up, down in parts[1:]:
        if constant(down) == 0 and constant(result[1]) == 0:
            result = result[0] * up, _NONE
        else:
            most = _fold(Max, list(result)) * _fold(Max, [up, down])
            result = most, most
    return result


def _quotient(up: Expr, divisor: Expr) -> Expr:
    """Divisors are positive; one that depends on an axis may be 1."""
    least = constant(divisor)
    if least is None and any(isinstance(s.upper, Expr) for s in divisor.free_symbols):
        return up
    return up // divisor


def _fold(of: Any, parts: list[Any]) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = of(result, part)
    return result


def most_of(bounds: Iterable[Expr]) -> tuple[Expr, ...]:
    """Without numbers, and without those that another is never below."""
    parts = [p for bound in bounds for p in (bound.children() if type(bound) is Max else (bound,))]
    kept: list[Expr] = []
    for bound in sorted(dict.fromkeys(parts), key=_guess, reverse=True):
        if constant(bound) is None and not any(_is_below(bound, other) for other in kept):
            kept.append(bound)
    return tuple(kept)


def _guess(bound: Expr) -> int:
    return bound.evaluate(dict.fromkeys(bound.free_symbols, 1 << 10))


def _is_below(bound: Expr, other: Expr) -> bool:
    least = (other - bound).range()[0]
    return least is not None and least >= 0
