"""Canonical sums, products, minima and maxima.

A sum is kept as constant + (term, coefficient) pairs, products are multiplied out while that stays small, so
equal polynomials are the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from . import divisibility
from .expr import Expr, Integer, Sum
from .operations import FloorDiv, Max, Min, Mod, Product

__all__ = ["add", "linear", "maximum", "minimum", "multiply", "product", "scale", "shift", "subtract", "sum_of"]

_EXPANSION_LIMIT = 64  # terms; above, a product of sums stays a product
_CACHE_LIMIT = 200_000
_KEY = attrgetter("key")

_sums: dict[tuple[Expr, Expr], Expr] = {}
_products: dict[tuple[Expr, Expr], Expr] = {}

Terms = tuple[tuple[Expr, int], ...]


def linear(expr: Expr) -> tuple[int, Terms]:
    """(constant, terms) of any integer expression."""
    kind = type(expr)
    if kind is Sum:
        return expr.constant, expr.terms  # type: ignore[attr-defined]
    if kind is Integer:
        return expr.value, ()  # type: ignore[attr-defined]
    return 0, ((expr, 1),)


def from_terms(constant: int, terms: Terms) -> Expr:
    """The expression of terms that are sorted, distinct and non-zero."""
    if not terms:
        return Integer(constant)
    if constant == 0 and len(terms) == 1 and terms[0][1] == 1:
        return terms[0][0]
    return Sum.make(constant, terms)


def _term_key(pair: tuple[Expr, int]) -> Any:
    return pair[0].key


def sum_of(constant: int, terms: dict[Expr, int]) -> Expr:
    """The expression of distinct non-zero terms in any order. Joins ``b*(x//b) + x%b`` to ``x``."""
    for term in terms:
        kind = type(term)
        if kind is Mod or kind is FloorDiv:
            joined = _join_divisions(constant, terms)
            if joined is not None:
                return joined
            break
    if len(terms) > 1:
        return Sum.make(constant, tuple(sorted(terms.items(), key=_term_key)))
    return from_terms(constant, tuple(terms.items()))


def add(a: Expr, b: Expr) -> Expr:
    """a + b."""
    ident = (a, b)
    known = _sums.get(ident)
    if known is not None:
        return known
    constant, terms = linear(a)
    other_constant, other = linear(b)
    constant += other_constant
    if not other:
        result = from_terms(constant, terms)
    elif not terms:
        result = from_terms(constant, other)
    else:
        result = sum_of(constant, _merge(dict(terms), other, 1))
    if len(_sums) > _CACHE_LIMIT:
        _sums.clear()
    _sums[ident] = result
    return result


def subtract(a: Expr, b: Expr) -> Expr:
    """a - b."""
    if a is b:
        return Integer(0)
    if type(b) is Integer:
        return shift(a, -b.value)
    constant, terms = linear(a)
    other_constant, other = linear(b)
    constant -= other_constant
    if not other:
        return from_terms(constant, terms)
    return sum_of(constant, _merge(dict(terms), other, -1))


def shift(a: Expr, offset: int) -> Expr:
    """a + offset, for an int."""
    constant, terms = linear(a)
    return from_terms(constant + offset, terms)


def _merge(terms: dict[Expr, int], other: Terms, factor: int) -> dict[Expr, int]:
    for term, coefficient in other:
        total = terms.get(term, 0) + coefficient * factor
        if total:
            terms[term] = total
        else:
            del terms[term]
    return terms


def scale(a: Expr, factor: int) -> Expr:
    """a * factor, for an int."""
    if factor == 1:
        return a
    if factor == 0:
        return Integer(0)
    constant, terms = linear(a)
    scaled = tuple([(term, c * factor) for term, c in terms])
    for term, _ in terms:
        if type(term) is FloorDiv:
            return sum_of(constant * factor, dict(scaled))
    return from_terms(constant * factor, scaled)


def multiply(a: Expr, b: Expr) -> Expr:
    """a * b."""
    if type(b) is Integer:
        return scale(a, b.value)
    if type(a) is Integer:
        return scale(b, a.value)
    ident = (a, b)
    known = _products.get(ident)
    if known is not None:
        return known
    result = _multiply(a, b)
    if len(_products) > _CACHE_LIMIT:
        _products.clear()
    _products[ident] = _products[b, a] = result
    return result


def _multiply(a: Expr, b: Expr) -> Expr:
    constant_a, terms_a = linear(a)
    constant_b, terms_b = linear(b)
    if (len(terms_a) + 1) * (len(terms_b) + 1) > _EXPANSION_LIMIT or _unexpanded(terms_a) or _unexpanded(terms_b):
        return Product.make(*sorted(_factors(a) + _factors(b), key=_KEY))
    total: dict[Expr, int] = {}
    if constant_b:
        _merge(total, terms_a, constant_b)
    if constant_a:
        _merge(total, terms_b, constant_a)
    for term_a, ca in terms_a:
        for term_b, cb in terms_b:
            factors = sorted(_factors(term_a) + _factors(term_b), key=_KEY)
            _merge(total, ((Product.make(*factors), ca * cb),), 1)
    return sum_of(constant_a * constant_b, total)


def _unexpanded(terms: Terms) -> bool:
    return len(terms) == 1 and type(terms[0][0]) is Product and any(type(f) is Sum for f in terms[0][0].args)


def product(factors: Sequence[Expr]) -> Expr:
    """The product of any number of factors."""
    result: Expr = Integer(1)
    for factor in factors:
        result = multiply(result, factor)
    return result


def _factors(term: Expr) -> tuple[Expr, ...]:
    return term.args if type(term) is Product else (term,)  # type: ignore[attr-defined]


# -- quotient and remainder of the same thing -----------------------------------------------------------


def _join_divisions(constant: int, terms: dict[Expr, int]) -> Expr | None:
    """Find ``c*(x % m) + c*m*(x // m)`` and the like; None when there is nothing to join."""
    for term, c in terms.items():
        kind = type(term)
        if kind is FloorDiv:
            x, m = term.children()
            if type(m) is not Integer or c % m.value or divisibility.known_divisor(x) % m.value:
                continue
            used, expr, factor = (term,), x, c // m.value
        elif kind is Mod and len(terms) > 1:
            found = _joined(term, c, terms)
            if found is None:
                continue
            used, expr = found
            factor = c
        else:
            continue
        rest = {t: k for t, k in terms.items() if t not in used}
        return add(sum_of(constant, rest) if rest else Integer(constant), scale(expr, factor))
    return None


def _joined(term: Expr, c: int, terms: dict[Expr, int]) -> tuple[tuple[Expr, ...], Expr] | None:
    """The terms that ``c * term``, a remainder, joins with, and what they make (times c)."""
    x, m = term.children()
    if type(m) is not Integer:
        step = multiply(m, FloorDiv.make(x, m))
        return ((term, step), x) if c == terms.get(step) else None
    wanted = c * m.value
    if wanted not in terms.values():
        return None
    quotient = x // m
    if terms.get(quotient) == wanted:
        return (term, quotient), x
    for other, k in terms.items():  # x % m + m * ((x // m) % n) = x % (m * n)
        if type(other) is Mod and k == wanted and other.args[0] is quotient:
            n = other.args[1]
            if type(n) is Integer:
                return (term, other), x % (m.value * n.value)
    return None


# -- minimum and maximum --------------------------------------------------------------------------------


def minimum(args: Sequence[Expr]) -> Expr:
    """The least of the arguments; those that can never be the least are dropped."""
    return _extremum(args, Min, 1)


def maximum(args: Sequence[Expr]) -> Expr:
    """The greatest of the arguments; those that can never be the greatest are dropped."""
    return _extremum(args, Max, -1)


def _extremum(args: Sequence[Expr], kind: type[Min] | type[Max], sign: int) -> Expr:
    if not args:
        raise TypeError(f"{kind.__name__}() needs at least one argument")
    kept: list[Expr] = []
    for arg in args:
        for item in arg.args if type(arg) is kind else (arg,):  # type: ignore[attr-defined]
            _insert(kept, item, sign)
    if len(kept) == 1:
        return kept[0]
    return kind.make(*sorted(kept, key=_KEY))


def _insert(kept: list[Expr], item: Expr, sign: int) -> None:
    """Add ``item`` unless one of ``kept`` is always as good; drop those that it always beats."""
    survivors: list[Expr] = []
    for other in kept:
        low, high = subtract(other, item).range()
        if sign < 0:
            low, high = (None if high is None else -high), (None if low is None else -low)
        if high is not None and high <= 0:
            return
        if low is None or low < 0:
            survivors.append(other)
    survivors.append(item)
    kept[:] = survivors
