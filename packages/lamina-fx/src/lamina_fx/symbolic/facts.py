"""What guards and assertions have established: bounds, equalities, replacements.

>>> from lamina_fx.symbolic import Eq, Symbol
>>> x, y = Symbol("x", 0), Symbol("y", 0)
>>> facts = Facts()
>>> facts.learn(Eq(x, y + 1)), facts.learn(y < 5)
(None, None)
>>> facts.simplify(2 * y), facts.decide(x < 7), facts.decide(x < 3), facts.range(x)
(2*x - 2, True, None, (1, 5))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from .boolean import difference
from .divisibility import known_divisor
from .expr import Bounds, Expr, Integer, Symbol
from .operations import And, Comparison, Eq, Le, Lt, Ne, Not
from .ranges import range_with
from .simplify import from_terms, linear, scale
from .truth import BooleanConstant, BooleanExpr

__all__ = ["Facts"]


class Facts:
    """A growing set of conditions taken as true.

    ``preference(symbol)`` ranks symbols: of two equal ones the greater is replaced by the lesser.
    ``version`` grows whenever simplification may give something else than before.
    """

    def __init__(self, preference: Callable[[Expr], Any] = attrgetter("key")) -> None:
        self.preference = preference
        self.version = 0
        self.replacements: dict[Expr, Expr] = {}
        self.bounds: dict[Symbol, Bounds] = {}
        self._true: set[Expr] = set()
        self._at_most: dict[Any, int] = {}

    # -- questions -----------------------------------------------------------------------------------

    def simplify(self, expr: Expr) -> Expr:
        """``expr`` with what is known put in."""
        return expr.substitute(self.replacements) if self.replacements else expr

    def range(self, expr: Expr) -> Bounds:
        """Least and greatest value."""
        return range_with(self.simplify(expr), self.bounds)

    def decide(self, expr: BooleanExpr) -> bool | None:
        """Whether ``expr`` follows (True), its opposite follows (False), or neither is known (None)."""
        if self._true:
            expr = self.simplify(expr)  # type: ignore[assignment]
        if isinstance(expr, BooleanConstant):
            return expr.value
        if not self._true:
            return None
        if expr in self._true:
            return True
        if Not(expr) in self._true:
            return False
        if isinstance(expr, Comparison):
            return self._decide_comparison(expr)
        parts = [self.decide(a) for a in expr.children()]  # type: ignore[arg-type]
        absorbing = not isinstance(expr, And)
        if absorbing in parts:
            return absorbing
        return None if None in parts else not absorbing

    def _decide_comparison(self, expr: Comparison) -> bool | None:
        d = difference(expr)
        low, high = range_with(d, self.bounds)
        if isinstance(expr, (Eq, Ne)):
            apart = (low is not None and low > 0) or (high is not None and high < 0)
            if apart or self._at_most_zero(d + 1) or self._at_most_zero(scale(d, -1) + 1):
                return isinstance(expr, Ne)
            return isinstance(expr, Eq) if low == high == 0 else None
        if (high is not None and high <= 0) or self._at_most_zero(d):
            return True
        if (low is not None and low > 0) or self._at_most_zero(scale(d, -1) + 1):
            return False
        return None

    def _at_most_zero(self, d: Expr) -> bool:
        constant, terms = linear(d)
        limit = self._at_most.get(terms)
        return limit is not None and limit + constant <= 0

    # -- learning ------------------------------------------------------------------------------------

    def learn(self, expr: BooleanExpr) -> None:
        """Take ``expr`` as true."""
        expr = self.simplify(expr)  # type: ignore[assignment]
        if isinstance(expr, BooleanConstant):
            return
        self.version += 1
        if isinstance(expr, And):
            for arg in expr.args:
                self.learn(arg)  # type: ignore[arg-type]
            return
        self._true.add(expr)
        if isinstance(expr, (Le, Lt)):
            self._learn_bound(difference(expr))
        elif isinstance(expr, Eq):
            self._learn_equal(expr)
        elif isinstance(expr, Ne):
            self._learn_different(difference(expr))

    def _learn_bound(self, d: Expr) -> None:
        constant, terms = linear(d)
        limit = -constant
        self._at_most[terms] = min(limit, self._at_most.get(terms, limit))
        if len(terms) == 1 and isinstance(terms[0][0], Symbol):
            symbol, c = terms[0]
            if c > 0:
                self._tighten(symbol, None, limit // c)  # type: ignore[arg-type]
            else:
                self._tighten(symbol, -(limit // -c), None)  # type: ignore[arg-type]

    def _tighten(self, symbol: Symbol, low: int | None, high: int | None) -> None:
        old_low, old_high = range_with(symbol, self.bounds)
        low = old_low if low is None else low if old_low is None else max(low, old_low)
        high = old_high if high is None else high if old_high is None else min(high, old_high)
        self.bounds[symbol] = (low, high)
        if low is not None and low == high:
            self._replace(symbol, Integer(low))

    def _learn_different(self, d: Expr) -> None:
        """``s0 != 0`` with ``0 <= s0`` gives ``1 <= s0``; the same at the upper end."""
        constant, terms = linear(d)
        if len(terms) != 1 or not isinstance(terms[0][0], Symbol) or constant % terms[0][1]:
            return
        symbol, value = terms[0][0], -constant // terms[0][1]
        low, high = range_with(symbol, self.bounds)
        if low == value:
            self._tighten(symbol, value + 1, None)
        if high == value:
            self._tighten(symbol, None, value - 1)

    def _learn_equal(self, expr: Eq) -> None:
        constant, terms = linear(difference(expr))
        order = sorted(range(len(terms)), key=lambda i: self.preference(terms[i][0]), reverse=True)
        for index in order:
            term, c = terms[index]
            if abs(c) != 1:
                continue
            rest = scale(from_terms(constant, (*terms[:index], *terms[index + 1 :])), -c)
            if isinstance(term, Symbol):
                if term not in rest.free_symbols and known_divisor(rest) % term.divisor == 0:
                    self._replace(term, rest)
                    return
            elif isinstance(rest, Integer):  # a remainder, quotient or product that is a known number
                self._replace(term, rest)
                return

    def _replace(self, old: Expr, new: Expr) -> None:
        """Put ``new`` for ``old`` from now on, and keep what was known of ``old``."""
        self.version += 1
        single: Mapping[Expr, Expr] = {old: new}
        low, high = range_with(old, self.bounds)
        for key, value in self.replacements.items():
            self.replacements[key] = value.substitute(single)
        self.replacements[old] = new
        known = [fact.substitute(single) for fact in self._true]
        self._true = set(known)
        for fact in known:
            if isinstance(fact, (Le, Lt)):
                self._learn_bound(difference(fact))
        for bound in (new <= high if high is not None else None, new >= low if low is not None else None):
            if isinstance(bound, (Le, Lt)):
                self._true.add(bound)
                self._learn_bound(difference(bound))
