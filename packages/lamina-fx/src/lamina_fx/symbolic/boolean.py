"""Canonical comparisons and logic.

A comparison is brought to one side, divided by what all coefficients share, decided when the range decides it,
and written with positive coefficients on both sides: ``2*x + 2 < 2*y`` and ``x <= y - 2`` are one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from operator import attrgetter

from .expr import Expr, Integer, Symbol
from .operations import And, Eq, Le, Lt, Mod, Ne, Or
from .simplify import Terms, from_terms, linear, scale, shift, subtract
from .truth import FALSE, TRUE, BooleanConstant, BooleanExpr

__all__ = ["conjunction", "difference", "disjunction", "equal", "less", "less_equal", "negation"]


def _integer(value: Expr) -> Expr:
    return Integer(int(value.value)) if isinstance(value, BooleanConstant) else value


def less(a: Expr, b: Expr) -> BooleanExpr:
    """a < b."""
    return _at_most_zero(shift(subtract(_integer(a), _integer(b)), 1))


def less_equal(a: Expr, b: Expr) -> BooleanExpr:
    """a <= b."""
    return _at_most_zero(subtract(_integer(a), _integer(b)))


def difference(comparison: Expr) -> Expr:
    """The expression that a comparison compares with zero: ``d <= 0``, ``d == 0`` or ``d != 0``."""
    assert isinstance(comparison, (Eq, Ne, Lt, Le))
    result = subtract(comparison.args[0], comparison.args[1])
    return shift(result, 1) if isinstance(comparison, Lt) else result


_known: dict[Expr, BooleanExpr] = {}
_CACHE_LIMIT = 200_000


def _at_most_zero(d: Expr) -> BooleanExpr:
    """d <= 0."""
    known = _known.get(d)
    if known is None:
        if len(_known) > _CACHE_LIMIT:
            _known.clear()
        known = _known[d] = _make_at_most_zero(d)
    return known


def _make_at_most_zero(d: Expr) -> BooleanExpr:
    low, high = d.range()
    if high is not None and high <= 0:
        return TRUE
    if low is not None and low > 0:
        return FALSE
    high, low = _with_bounds(d, 1).range()[1], _with_bounds(d, -1).range()[0]
    if high is not None and high <= 0:
        return TRUE
    if low is not None and low > 0:
        return FALSE
    constant, terms = linear(d)
    common = gcd(*[c for _, c in terms])
    bound = -constant // common  # terms / common <= bound
    left, right = _sides(terms, common)
    if bound == -1 and right:
        return Lt.make(from_terms(0, left), from_terms(0, right))
    if not left:
        return Le.make(Integer(-bound), from_terms(0, right))
    if bound < 0 and right:
        return Le.make(from_terms(-bound, left), from_terms(0, right))
    return Le.make(from_terms(0, left), from_terms(bound, right))


def _with_bounds(d: Expr, sign: int) -> Expr:
    """An expression that is never below (``sign`` 1) or never above (-1): sizes stand where they bound terms, as
    ``n - 1`` for ``x % n`` and for a symbol that goes so far."""
    constant, terms = linear(d)
    bounds = [(_bound_of(term) if c * sign > 0 else None) for term, c in terms]
    if not any(bound is not None for bound in bounds):
        return d
    result: Expr = Integer(constant)
    for (term, c), bound in zip(terms, bounds, strict=True):
        result = result + (term if bound is None else bound) * c
    return result


def _bound_of(term: Expr) -> Expr | None:
    """What a term is never above, where that depends on sizes."""
    if isinstance(term, Symbol):
        return term.upper if isinstance(term.upper, Expr) else None
    if isinstance(term, Mod):
        divisor = term.args[1]
        low, high = divisor.range()
        return divisor - 1 if low is not None and low > 0 and low != high else None
    return None


def equal(a: Expr, b: Expr) -> BooleanExpr:
    """a == b."""
    if a is b:
        return TRUE
    if isinstance(a, BooleanExpr) and isinstance(b, BooleanExpr) and not (a.is_constant and b.is_constant):
        return disjunction((conjunction((a, b)), conjunction((negation(a), negation(b)))))
    d = subtract(_integer(a), _integer(b))
    low, high = d.range()
    if low == high == 0:
        return TRUE
    if (low is not None and low > 0) or (high is not None and high < 0):
        return FALSE
    constant, terms = linear(d)
    common = gcd(*[c for _, c in terms])
    if constant % common:
        return FALSE
    if terms[0][1] < 0:
        common = -common
    left, right = _sides(terms, common)
    return _ordered_equal(left, right, -constant // common)


def _ordered_equal(left: Terms, right: Terms, bound: int) -> BooleanExpr:
    if bound >= 0:
        return Eq.make(from_terms(0, left), from_terms(bound, right))
    if right:
        return Eq.make(from_terms(-bound, left), from_terms(0, right))
    return Eq.make(from_terms(0, left), Integer(bound))


def _sides(terms: Terms, common: int) -> tuple[Terms, Terms]:
    left = tuple([(t, c // common) for t, c in terms if c // common > 0])
    right = tuple([(t, -c // common) for t, c in terms if c // common < 0])
    return left, right


def negation(value: Expr) -> BooleanExpr:
    """Not value."""
    if value is TRUE or value is FALSE:
        return FALSE if value is TRUE else TRUE
    if isinstance(value, Eq):
        return Ne.make(*value.args)
    if isinstance(value, Ne):
        return Eq.make(*value.args)
    if isinstance(value, (Lt, Le)):
        return _at_most_zero(scale(shift(difference(value), -1), -1))
    if isinstance(value, And):
        return disjunction(tuple([negation(a) for a in value.args]))
    if isinstance(value, Or):
        return conjunction(tuple([negation(a) for a in value.args]))
    raise TypeError(f"not a truth value: {value}")


def conjunction(args: Sequence[Expr]) -> BooleanExpr:
    """All of ``args``."""
    return _junction(args, And, TRUE, FALSE)


def disjunction(args: Sequence[Expr]) -> BooleanExpr:
    """One of ``args``."""
    return _junction(args, Or, FALSE, TRUE)


def _junction(
    args: Sequence[Expr], kind: type[And] | type[Or], neutral: BooleanExpr, absorbing: BooleanExpr
) -> BooleanExpr:
    kept: dict[Expr, None] = {}
    for arg in args:
        if not isinstance(arg, BooleanExpr):
            raise TypeError(f"{kind.__name__} takes comparisons, got {arg}")
        for item in arg.args if isinstance(arg, kind) else (arg,):
            if item is absorbing:
                return absorbing
            if item is not neutral:
                kept[item] = None
    if any(negation(item) in kept for item in kept if isinstance(item, (Eq, Le, Lt))):
        return absorbing
    if len(kept) < 2:
        return next(iter(kept), neutral)  # type: ignore[return-value]
    return kind.make(*sorted(kept, key=attrgetter("key")))
