"""What is known about the sizes of one compilation: symbols, hints, guards.

>>> env = ShapeEnv()
>>> n = env.create_symbol(8, "x.shape[0]", line="f.py:3")
>>> m = env.create_symbol(8, "y.shape[0]")
>>> bool(n == m), env.guards
(True, [s0 == s1  # f.py:3])
>>> m * 2
2*s0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .boolean import difference
from .expr import (
    And,
    BooleanConstant,
    BooleanExpr,
    Bounds,
    Comparison,
    Eq,
    Expr,
    Integer,
    Le,
    Lt,
    Mod,
    Ne,
    Not,
    Symbol,
    as_expr,
)  # fmt: skip
from .ranges import range_with
from .simplify import from_terms, linear, scale
from .symint import SymBool, SymInt

__all__ = ["ShapeEnv", "ShapeGuard", "UnbackedSizeError"]

Policy = Literal["dynamic", "static", "duck"]


class UnbackedSizeError(RuntimeError):
    """A definite answer was wanted about a size that only running the program tells."""


@dataclass(frozen=True, slots=True)
class ShapeGuard:
    """A condition on the inputs' sizes, and the user's line that asked for it (None when unknown)."""

    expr: BooleanExpr
    source: str | None = None

    def __repr__(self) -> str:
        return f"{self.expr}" + (f"  # {self.source}" if self.source else "")


class ShapeEnv:
    """Symbols of one compilation and what has been found out about them.

    ``where()`` names the user's line for guards. ``version`` grows with every fact that changes simplification.
    """

    def __init__(self, where: Callable[[], str | None] | None = None) -> None:
        self.where = where
        self.version = 0
        self.guards: list[ShapeGuard] = []
        self.assertions: list[ShapeGuard] = []
        self.sources: dict[Symbol, str] = {}
        """What each symbol is in the user's words, such as ``x.shape[0]``."""
        self.lines: dict[Symbol, str] = {}
        self.hints: dict[Symbol, int] = {}
        self.replacements: dict[Expr, Expr] = {}
        self.bounds: dict[Symbol, Bounds] = {}
        self._facts: set[Expr] = set()
        self._at_most: dict[Any, int] = {}
        self._duck: dict[int, SymInt] = {}
        self._unbacked = 0

    # -- symbols ---------------------------------------------------------------------------------------

    def create_symbol(
        self,
        hint: int,
        source: str,
        policy: Policy = "dynamic",
        *,
        lower: int = 0,
        upper: int | None = None,
        divisor: int = 1,
        line: str | None = None,
    ) -> Any:
        """A size whose value in the example is ``hint``.

        ``policy``: ``"dynamic"`` always makes a new symbol; ``"duck"`` reuses the symbol of an equal hint (the
        caller then guards that they stay equal); ``"static"`` returns the int.

        Raises:
            ValueError: the hint is outside the bounds.
        """
        if policy == "static":
            return hint
        if hint < lower or (upper is not None and hint > upper) or hint % divisor:
            raise ValueError(f"{source} is {hint}, outside [{lower}, {upper}] or no multiple of {divisor}")
        if policy == "duck" and hint in self._duck:
            return self._duck[hint]
        symbol = Symbol(f"s{len(self.hints)}", lower, upper, divisor)
        self.hints[symbol] = hint
        self.sources[symbol] = source
        if line is not None:
            self.lines[symbol] = line
        result = SymInt(symbol, self)
        self._duck.setdefault(hint, result)
        return result

    def create_unbacked(self, lower: int | None = 0, upper: int | None = None, source: str = "") -> SymInt:
        """A size that only running the program tells, such as the length of ``nonzero(x)``."""
        symbol = Symbol(f"u{self._unbacked}", lower, upper)
        self._unbacked += 1
        self.sources[symbol] = source
        return SymInt(symbol, self)

    def symbol(self, name: str) -> Symbol:
        """The symbol of this name.

        Raises:
            KeyError: this environment made none of that name.
        """
        for symbol in self.sources:
            if symbol.name == name:
                return symbol
        raise KeyError(f"no symbol {name!r}; known: {', '.join(s.name for s in self.sources)}")

    # -- questions ---------------------------------------------------------------------------------------

    def simplify(self, expr: Expr) -> Expr:
        """``expr`` with what is known put in."""
        return expr.substitute(self.replacements) if self.replacements else expr

    def hint_or_none(self, expr: Expr) -> int | None:
        """The value in the example inputs; None when an unbacked symbol is involved."""
        expr = self.simplify(expr)
        if type(expr) is Symbol:
            return self.hints.get(expr)
        if not expr.free_symbols <= self.hints.keys():
            return None
        return expr.evaluate(self.hints)

    def hint(self, expr: Expr | SymInt | int) -> int:
        """The value in the example inputs.

        Raises:
            UnbackedSizeError: it depends on an unbacked symbol.
        """
        expr = expr.expr if isinstance(expr, SymInt) else as_expr(expr)
        value = self.hint_or_none(expr)
        if value is None:
            raise self._unknown(expr)
        return value

    def range(self, expr: Expr) -> Bounds:
        """Least and greatest value, with what the guards add to the symbols' own bounds."""
        return range_with(self.simplify(expr), self.bounds)

    def decide(self, expr: BooleanExpr) -> bool | None:
        """True or False when known for all inputs that pass the guards, otherwise None. Never guards."""
        expr = self.simplify(expr)  # type: ignore[assignment]
        if isinstance(expr, BooleanConstant):
            return expr.value
        if not self._facts:
            return None
        if expr in self._facts:
            return True
        if Not(expr) in self._facts:
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
            if (low is not None and low > 0) or (high is not None and high < 0):
                return isinstance(expr, Ne)
            if self._negative(d) or self._negative(scale(d, -1)):
                return isinstance(expr, Ne)
            return None
        if (high is not None and high <= 0) or self._known_at_most_zero(d):
            return True
        if (low is not None and low > 0) or self._negative(scale(d, -1)):
            return False
        return None

    def _negative(self, d: Expr) -> bool:
        return self._known_at_most_zero(d + 1)

    def _known_at_most_zero(self, d: Expr) -> bool:
        constant, terms = linear(d)
        limit = self._at_most.get(terms)
        return limit is not None and limit + constant <= 0

    def statically_known(self, condition: SymBool | BooleanExpr | bool) -> bool:
        """True when the condition holds for all inputs that pass the guards. Never guards."""
        if isinstance(condition, bool):
            return condition
        return self.decide(condition.expr if isinstance(condition, SymBool) else condition) is True

    # -- guards ------------------------------------------------------------------------------------------

    def evaluate(self, condition: SymBool | BooleanExpr | bool) -> bool:
        """The answer for the example inputs; a guard makes sure that it stays the answer.

        Raises:
            UnbackedSizeError: the condition depends on an unbacked symbol and is not known.
        """
        if isinstance(condition, bool):
            return condition
        expr = condition.expr if isinstance(condition, SymBool) else condition
        known = self.decide(expr)
        if known is not None:
            return known
        expr = self.simplify(expr)  # type: ignore[assignment]
        value = self.hint_or_none(expr)
        if value is None:
            raise self._unknown(expr)
        self._guard(expr if value else Not(expr))
        return bool(value)

    def specialize(self, expr: Expr) -> int:
        """The value for the example inputs, guarded to stay so."""
        expr = self.simplify(expr)
        if isinstance(expr, Integer):
            return expr.value
        value = self.hint_or_none(expr)
        if value is None:
            raise self._unknown(expr)
        self.evaluate(Eq(expr, value))
        return value

    def require_nonzero(self, divisor: Expr) -> None:
        """Guard that a divisor is not zero, unless known.

        Raises:
            ZeroDivisionError: it is zero in the example.
        """
        low, high = divisor.range()
        if (low is not None and low > 0) or (high is not None and high < 0):
            return
        if isinstance(divisor, Integer) or (
            self.hint_or_none(divisor) is not None and not self.evaluate(Ne(divisor, 0))
        ):
            raise ZeroDivisionError(f"division by {divisor}, which is 0")

    def add_assertion(self, condition: SymBool | BooleanExpr | bool, message: str | None = None) -> None:
        """State that a condition holds when the program runs; it is checked there and may be relied on.

        Raises:
            ValueError: it is known to be false.
        """
        if isinstance(condition, bool):
            known, expr = condition, as_expr(condition)
        else:
            expr = condition.expr if isinstance(condition, SymBool) else condition
            known = self.decide(expr)
        if known is False:
            raise ValueError(f"assertion {expr} can never hold" + (f": {message}" if message else ""))
        if known is None:
            self.assertions.append(ShapeGuard(expr, message or self._where(expr)))  # type: ignore[arg-type]
            self._learn(expr)

    def _guard(self, expr: BooleanExpr) -> None:
        self.guards.append(ShapeGuard(expr, self._where(expr)))
        self._learn(expr)

    def _where(self, expr: Expr) -> str | None:
        line = self.where() if self.where is not None else None
        if line is not None:
            return line
        return next((self.lines[s] for s in sorted(expr.free_symbols, key=lambda s: s.key) if s in self.lines), None)

    def _unknown(self, expr: Expr) -> UnbackedSizeError:
        unbacked = sorted((s for s in expr.free_symbols if s not in self.hints), key=lambda s: s.key)
        listed = ", ".join(f"{s} ({self.sources.get(s) or 'unknown origin'})" for s in unbacked)
        return UnbackedSizeError(
            f"whether or what {expr} is depends on {listed}, known only when the program runs; "
            "state what holds with add_assertion, or avoid branching on it"
        )

    # -- learning ----------------------------------------------------------------------------------------

    def _learn(self, expr: Expr) -> None:
        self.version += 1
        if isinstance(expr, And):
            for arg in expr.args:
                self._learn(arg)
            return
        self._facts.add(expr)
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
        candidates = [
            (self._rank(t), i) for i, (t, c) in enumerate(terms) if abs(c) == 1 and isinstance(t, (Symbol, Mod))
        ]
        for _, index in sorted(candidates, reverse=True):
            term, c = terms[index]
            rest = scale(from_terms(constant, (*terms[:index], *terms[index + 1 :])), -c)
            if isinstance(term, Symbol) and term not in rest.free_symbols:
                low, high = range_with(term, self.bounds)
                self._replace(term, rest)
                if isinstance(rest, Symbol):
                    self._tighten(rest, low, high)
                return
            if isinstance(term, Mod) and isinstance(rest, Integer):
                self._replace(term, rest)
                return

    def _rank(self, term: Expr) -> tuple[bool, bool, Any]:
        return isinstance(term, Symbol), term not in self.hints, term.key

    def _replace(self, old: Expr, new: Expr) -> None:
        self.version += 1
        single: Mapping[Expr, Expr] = {old: new}
        for key, value in self.replacements.items():
            self.replacements[key] = value.substitute(single)
        self.replacements[old] = new
        self._facts = {fact.substitute(single) for fact in self._facts}
