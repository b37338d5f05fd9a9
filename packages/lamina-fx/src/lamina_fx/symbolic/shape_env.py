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

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from .boolean import negation
from .expr import Bounds, Expr, Integer, Symbol, as_expr
from .facts import Facts
from .operations import Eq, Ne
from .symint import SymBool, SymInt
from .truth import BooleanExpr

__all__ = ["ShapeEnv", "ShapeGuard", "UnbackedSizeError"]

Policy = Literal["dynamic", "static", "duck"]


class UnbackedSizeError(RuntimeError):
    """A definite answer was wanted about a size that only running the program tells."""


class ShapeGuard(NamedTuple):
    """A condition on the inputs' sizes, and the user's line that asked for it (None when unknown)."""

    expr: BooleanExpr
    source: str | None = None

    def __repr__(self) -> str:
        return f"{self.expr}" + (f"  # {self.source}" if self.source else "")


class ShapeEnv:
    """Symbols of one compilation and what has been found out about them.

    ``where()`` names the user's line for guards.
    """

    def __init__(self, where: Callable[[], str | None] | None = None) -> None:
        self.where = where
        self.guards: list[ShapeGuard] = []
        self.assertions: list[ShapeGuard] = []
        self.sources: dict[Symbol, str] = {}
        """What each symbol is in the user's words, such as ``x.shape[0]``."""
        self.lines: dict[Symbol, str] = {}
        self.hints: dict[Expr, int] = {}
        self.facts = Facts(self._preference)
        self._duck: dict[int, SymInt] = {}
        self._names: set[str] = set()

    @property
    def version(self) -> int:
        """Grows with every fact that changes simplification."""
        return self.facts.version

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
        symbol = Symbol(self._fresh("s"), lower, upper, divisor)
        self.hints[symbol] = hint
        self.sources[symbol] = source
        if line is not None:
            self.lines[symbol] = line
        result = SymInt(symbol, self)
        self._duck.setdefault(hint, result)
        return result

    def create_unbacked(self, lower: int | None = 0, upper: int | None = None, source: str = "") -> SymInt:
        """A size that only running the program tells, such as the length of ``nonzero(x)``."""
        symbol = Symbol(self._fresh("u"), lower, upper)
        self.sources[symbol] = source
        return SymInt(symbol, self)

    def declare(self, symbol: Symbol, hint: int | None, source: str = "") -> SymInt:
        """Take over a symbol that was made elsewhere, for instance read from a file; unbacked without a hint."""
        self._names.add(symbol.name)
        self.sources[symbol] = source
        if hint is not None:
            self.hints[symbol] = hint
        return SymInt(symbol, self)

    def _fresh(self, letter: str) -> str:
        count = sum(name[0] == letter for name in self._names)
        while (name := f"{letter}{count}") in self._names:
            count += 1
        self._names.add(name)
        return name

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
        return self.facts.simplify(expr)

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
        return self.facts.range(expr)

    def decide(self, expr: BooleanExpr) -> bool | None:
        """True or False when known for all inputs that pass the guards, otherwise None. Never guards."""
        return self.facts.decide(expr)

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
        self._guard(expr if value else negation(expr))  # type: ignore[arg-type]
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
            self.facts.learn(expr)  # type: ignore[arg-type]

    def _guard(self, expr: BooleanExpr) -> None:
        self.guards.append(ShapeGuard(expr, self._where(expr)))
        self.facts.learn(expr)  # type: ignore[arg-type]

    def _where(self, expr: Expr) -> str | None:
        line = self.where() if self.where is not None else None
        if line is not None:
            return line
        return next((self.lines[s] for s in sorted(expr.free_symbols, key=lambda s: s.key) if s in self.lines), None)

    def _preference(self, term: Expr) -> tuple[bool, bool, Any]:
        return isinstance(term, Symbol), term not in self.hints, term.key

    def _unknown(self, expr: Expr) -> UnbackedSizeError:
        unbacked = sorted((s for s in expr.free_symbols if s not in self.hints), key=lambda s: s.key)
        listed = ", ".join(f"{s} ({self.sources.get(s) or 'unknown origin'})" for s in unbacked)
        return UnbackedSizeError(
            f"{expr} is not known: it depends on {listed}, known only when the program runs; "
            "state what holds with add_assertion, or avoid branching on it"
        )
