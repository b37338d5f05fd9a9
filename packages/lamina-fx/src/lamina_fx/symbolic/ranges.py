"""Interval arithmetic: between which values an expression lies.

>>> from lamina_fx.symbolic import Symbol
>>> i = Symbol("i", 0, 9)
>>> (3 * i + 1).range(), (i % 4).range(), (-i // 2).range()
((1, 28), (0, 3), (-5, 0))
"""

# pyright: reportPrivateUsage=false
# (what is remembered of an expression)

from __future__ import annotations

from collections.abc import Mapping

from .expr import Bounds, Expr, Integer, Sum, Symbol
from .operations import FloorDiv, Max, Min, Mod, Product
from .truth import BooleanExpr

__all__ = ["compute_range", "range_with"]


def compute_range(expr: Expr) -> Bounds:
    """The range from the symbols' own bounds; remembered on the expression."""
    result = expr._range = _range(expr, {})
    return result


def range_with(expr: Expr, bounds: Mapping[Symbol, Bounds]) -> Bounds:
    """The range when some symbols have tighter bounds than their own."""
    if bounds.keys().isdisjoint(expr.free_symbols):
        return expr.range()
    return _range(expr, bounds)


def _range(expr: Expr, bounds: Mapping[Symbol, Bounds]) -> Bounds:
    if isinstance(expr, Sum):
        return _sum_range(expr, bounds)
    if isinstance(expr, Symbol):
        return _symbol_range(expr, bounds)
    if isinstance(expr, Integer):
        return expr.value, expr.value
    if isinstance(expr, BooleanExpr):
        return 0, 1
    parts = [_child(a, bounds) for a in expr.children()]
    if isinstance(expr, Product):
        return _product_range(expr, parts)
    if isinstance(expr, FloorDiv):
        return _quotient_range(*parts)
    if isinstance(expr, Mod):
        return _remainder_range(*parts)
    lows, highs = [p[0] for p in parts], [p[1] for p in parts]
    if isinstance(expr, Min):
        return _all(min, lows), _some(min, highs)
    if isinstance(expr, Max):
        return _some(max, lows), _all(max, highs)
    raise TypeError(f"no range for {type(expr).__name__}")


def _child(expr: Expr, bounds: Mapping[Symbol, Bounds]) -> Bounds:
    return range_with(expr, bounds) if bounds else expr.range()


def _all(fn: object, values: list[int | None]) -> int | None:
    return None if None in values else fn(values)  # type: ignore[operator]


def _some(fn: object, values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return fn(known) if known else None  # type: ignore[operator]


def _symbol_range(symbol: Symbol, bounds: Mapping[Symbol, Bounds]) -> Bounds:
    low = symbol.lower
    high = symbol.upper
    if isinstance(high, Expr):
        high = _child(high, bounds)[1]
    if symbol in bounds:
        other_low, other_high = bounds[symbol]
        low = _some(max, [low, other_low])
        high = _some(min, [high, other_high])
    if symbol.divisor > 1:
        low = None if low is None else -(-low // symbol.divisor) * symbol.divisor
        high = None if high is None else high // symbol.divisor * symbol.divisor
    return low, high


def _sum_range(expr: Sum, bounds: Mapping[Symbol, Bounds]) -> Bounds:
    low: int | None = expr.constant
    high: int | None = expr.constant
    for term, c in expr.terms:
        term_low, term_high = (term._range or term.range()) if not bounds else range_with(term, bounds)
        if c < 0:
            term_low, term_high = term_high, term_low
        low = None if low is None or term_low is None else low + c * term_low
        high = None if high is None or term_high is None else high + c * term_high
        if low is None and high is None:
            break
    return low, high


def _product_range(expr: Product, parts: list[Bounds]) -> Bounds:
    args = expr.args
    result: Bounds = (1, 1)
    index = 0
    while index < len(args):
        part = parts[index]
        if index + 1 < len(args) and args[index + 1] is args[index]:  # a square is never negative
            part = _square(part)
            index += 1
        result = _times(result, part)
        index += 1
    return result


def _square(a: Bounds) -> Bounds:
    low, high = a
    if low is None or high is None:
        if low is not None and low >= 0:
            return low * low, None
        if high is not None and high <= 0:
            return high * high, None
        return 0, None
    least = 0 if low <= 0 <= high else min(low * low, high * high)
    return least, max(low * low, high * high)


def _times(a: Bounds, b: Bounds) -> Bounds:
    (a_low, a_high), (b_low, b_high) = a, b
    if a_low is not None and a_high is not None and b_low is not None and b_high is not None:
        corners = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
        return min(corners), max(corners)
    for x, y in ((a, b), (b, a)):
        if x == (0, 0):
            return 0, 0
        if x == (1, 1):
            return y
    if a_low is not None and a_low >= 0 and b_low is not None and b_low >= 0:
        return a_low * b_low, None if a_high is None or b_high is None else a_high * b_high
    if a_high is not None and a_high <= 0 and b_high is not None and b_high <= 0:
        return a_high * b_high, None
    if (a_low is not None and a_low >= 0 and b_high is not None and b_high <= 0) or (
        b_low is not None and b_low >= 0 and a_high is not None and a_high <= 0
    ):
        least_size = min(abs(v) for v in (a_low, a_high) if v is not None) * min(
            abs(v) for v in (b_low, b_high) if v is not None
        )
        return None, -least_size
    return None, None


def _divisor_range(b: Bounds) -> Bounds:
    """Nothing is divided by 0: a size that may be 0 elsewhere is positive as a divisor."""
    return (1, b[1]) if b[0] == 0 else b


def _quotient_range(a: Bounds, b: Bounds) -> Bounds:
    (low, high), (b_low, b_high) = a, _divisor_range(b)
    if b_low is None or b_low < 1:
        if None in (low, high):
            return None, None
        size = max(abs(low), abs(high))  # type: ignore[arg-type]
        return -size, size
    if low is not None:
        if low >= 0:
            low = 0 if b_high is None else low // b_high
        else:
            low = low // b_low
    if high is not None:
        if high >= 0:
            high = high // b_low
        else:
            high = -1 if b_high is None else high // b_high
    return low, high


def _remainder_range(a: Bounds, b: Bounds) -> Bounds:
    (low, high), (b_low, b_high) = a, _divisor_range(b)
    if b_low is None or b_low < 1:
        if None in (b_low, b_high):
            return (None if b_low is None else min(0, b_low + 1)), (None if b_high is None else max(0, b_high - 1))
        return min(0, b_low + 1), max(0, b_high - 1)  # type: ignore[operator]
    limit = None if b_high is None else b_high - 1
    if low is not None and low >= 0 and high is not None:
        if high < b_low:
            return low, high
        return 0, high if limit is None else min(high, limit)
    return 0, limit
