"""Read expressions back from the Python that ``to_python`` writes.

>>> from lamina_fx.symbolic import Symbol
>>> s0 = Symbol("s0", 0)
>>> parse_expr("(s0*4 + 6)//2 <= max(s0, 3)", {"s0": s0})
2*s0 + 3 <= max(s0, 3)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from .expr import Expr, Integer
from .operations import And, Eq, Max, Min, Ne, Not, Or
from .truth import FALSE, TRUE

__all__ = ["parse_expr"]

_TOKEN = re.compile(r"\s*(?:(\d+)|(\w+)|(//|\*\*|==|!=|<=|>=|[-+*%<>(),]))")
_END = ""

_BINARY: dict[str, tuple[int, Callable[[Expr, Expr], Expr]]] = {
    "or": (1, lambda a, b: Or(a, b)),  # type: ignore[arg-type]
    "and": (2, lambda a, b: And(a, b)),  # type: ignore[arg-type]
    "==": (4, Eq),
    "!=": (4, Ne),
    "<": (4, lambda a, b: a < b),
    "<=": (4, lambda a, b: a <= b),
    ">": (4, lambda a, b: a > b),
    ">=": (4, lambda a, b: a >= b),
    "+": (5, lambda a, b: a + b),
    "-": (5, lambda a, b: a - b),
    "*": (6, lambda a, b: a * b),
    "//": (6, lambda a, b: a // b),
    "%": (6, lambda a, b: a % b),
}
_NOT, _UNARY, _POWER = 3, 7, 8


def parse_expr(text: str, symbols: Mapping[str, Expr] | Callable[[str], Expr]) -> Expr:
    """The expression that ``text`` says. ``symbols`` gives the symbol of a name.

    Raises:
        ValueError: the text is no expression; says where.
        KeyError: an unknown symbol (from ``symbols``).
    """
    parser = _Parser(text, symbols if callable(symbols) else symbols.__getitem__)
    result = parser.expression(0)
    if parser.token != _END:
        raise parser.error("unexpected")
    return result


class _Parser:
    def __init__(self, text: str, lookup: Callable[[str], Expr]) -> None:
        self.text = text
        self.lookup = lookup
        self.start = self.end = 0
        self.token = _END
        self.advance()

    def advance(self) -> str:
        """Move to the next token; returns the one left behind."""
        previous = self.token
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            if self.text[self.end :].strip():
                self.start = self.end
                raise self.error("cannot read")
            self.token, self.start = _END, len(self.text)
        else:
            self.token = match[match.lastindex or 0]
            self.start, self.end = match.start(match.lastindex or 0), match.end()
        return previous

    def error(self, what: str) -> ValueError:
        return ValueError(f"{what} {self.text[self.start :]!r} at column {self.start} of the expression {self.text!r}")

    def expression(self, level: int) -> Expr:
        left = self.prefix()
        while True:
            entry = _BINARY.get(self.token)
            if entry is None or entry[0] <= level:
                return left
            self.advance()
            left = entry[1](left, self.expression(entry[0]))

    def prefix(self) -> Expr:
        token = self.token
        if token == "-":
            self.advance()
            return -self.expression(_UNARY)
        if token == "not":
            self.advance()
            return Not(self.expression(_NOT))  # type: ignore[arg-type]
        if token == "(":
            self.advance()
            inner = self.expression(0)
            self.expect(")")
            return self.power(inner)
        if token.isdigit():
            return self.power(Integer(int(self.advance())))
        if token.isidentifier():
            return self.power(self.name(self.advance()))
        raise self.error("expected a number, a name or '(' before")

    def power(self, base: Expr) -> Expr:
        if self.token != "**":
            return base
        self.advance()
        exponent = self.expression(_POWER)
        if not isinstance(exponent, Integer) or exponent.value < 0:
            raise self.error("a power must be a number that is not negative, before")
        return base**exponent.value

    def name(self, name: str) -> Expr:
        if self.token == "(" and name in ("min", "max"):
            self.advance()
            args = [self.expression(0)]
            while self.take(","):
                args.append(self.expression(0))
            self.expect(")")
            return Min(*args) if name == "min" else Max(*args)
        if name == "True" or name == "False":
            return TRUE if name == "True" else FALSE
        return self.lookup(name)

    def take(self, token: str) -> bool:
        if self.token != token:
            return False
        self.advance()
        return True

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.error(f"expected {token!r} before")
        self.advance()
