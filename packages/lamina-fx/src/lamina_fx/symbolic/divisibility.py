"""What divides an expression whatever the values of its symbols.

>>> from lamina_fx.symbolic import Symbol, divides
>>> x = Symbol("x", divisor=4)
>>> divides(2 * x + 8, 8), divides(x + 2, 4)
(True, False)
"""

# pyright: reportPrivateUsage=false
# (what is remembered of an expression)

from __future__ import annotations

from math import gcd

from . import simplify
from .expr import Expr, ExprLike, Integer, Sum, Symbol, as_expr
from .operations import Max, Min, Mod, Product

__all__ = ["divides", "exact_quotient", "known_divisor"]


def known_divisor(expr: Expr) -> int:
    """The greatest number known to divide ``expr`` always (0 for the constant 0)."""
    known = expr._divisor
    if known is None:
        known = expr._divisor = _divisor(expr)
    return known


def _divisor(expr: Expr) -> int:
    if isinstance(expr, Integer):
        return abs(expr.value)
    if isinstance(expr, Symbol):
        return expr.divisor
    if isinstance(expr, Sum):
        result = abs(expr.constant)
        for term, c in expr.terms:
            result = gcd(result, c * known_divisor(term))
        return result
    if isinstance(expr, Product):
        result = 1
        for factor in expr.args:
            result *= known_divisor(factor)
        return result
    if isinstance(expr, (Min, Max, Mod)):
        result = 0
        for arg in expr.args:
            result = gcd(result, known_divisor(arg))
        return result
    return 1


def divides(expr: ExprLike, k: ExprLike) -> bool:
    """True when ``k`` (an int or an expression) is known to divide ``expr``. False means: not known."""
    expr, k = as_expr(expr), as_expr(k)
    if isinstance(k, Integer):
        return k.value != 0 and known_divisor(expr) % k.value == 0
    return expr is k or exact_quotient(expr, k) is not None


def exact_quotient(expr: Expr, divisor: Expr) -> Expr | None:
    """``q`` with ``q * divisor == expr`` as polynomials, or None."""
    _, divisor_terms = simplify.linear(divisor)
    if not divisor_terms:
        return None
    lead, lead_c = max(divisor_terms, key=lambda t: (_degree(t[0]), t[0].key))
    quotient: Expr = Integer(0)
    for _ in range(32):
        if isinstance(expr, Integer):
            return quotient if expr.value == 0 else None
        step = None
        for term, c in simplify.linear(expr)[1]:
            rest = monomial_quotient(term, lead)
            if rest is not None and c % lead_c == 0:
                step = rest * (c // lead_c)
                break
        if step is None:
            return None
        quotient = quotient + step
        expr = expr - step * divisor
    return None


def monomial_quotient(term: Expr, divisor: Expr) -> Expr | None:
    """``term`` without the factors of ``divisor``, or None when one is missing."""
    if term is divisor:
        return Integer(1)
    if not isinstance(term, Product):
        return None
    left = list(term.args)
    for factor in divisor.args if isinstance(divisor, Product) else (divisor,):
        if factor not in left:
            return None
        left.remove(factor)
    return Product(*left)


def _degree(term: Expr) -> int:
    return len(term.args) if isinstance(term, Product) else 1
