"""Expressions as Python and as C.

>>> from lamina_fx.symbolic import Symbol, to_c
>>> i, n = Symbol("i", 0, 99), Symbol("n")
>>> to_c(i // 8 + 1), to_c(n // 8)
('i / 8 + 1', 'lamina_floor_div(n, 8)')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .expr import Expr, Integer, Sum, Symbol
from .operations import And, Comparison, FloorDiv, Max, Min, Mod, Or, Product
from .truth import BooleanConstant

__all__ = ["C_PRELUDE", "to_c", "to_python"]

C_PRELUDE = """\
static inline long long lamina_floor_div(long long a, long long b) {
    long long q = a / b;
    return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static inline long long lamina_floor_mod(long long a, long long b) {
    long long r = a % b;
    return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
static inline long long lamina_min(long long a, long long b) { return a < b ? a : b; }
static inline long long lamina_max(long long a, long long b) { return a > b ? a : b; }
"""
"""C definitions of what ``to_c`` calls; needs no header."""

_OR, _AND, _COMPARE, _SUM, _PRODUCT, _ATOM = 1, 2, 3, 4, 5, 9
Names = Mapping[Symbol, str] | Callable[[Symbol], str] | None


def to_python(expr: Expr, names: Names = None) -> str:
    """Python source; ``parse_expr`` reads it back. ``names`` renames symbols."""
    return _Writer(names).write(expr, 0)


def to_c(expr: Expr, names: Names = None) -> str:
    """C source on 64-bit signed integers.

    Plain ``/`` and ``%`` where the ranges show that both operands are not negative, otherwise the functions of
    ``C_PRELUDE``. Symbols must be 64-bit variables.

    Raises:
        OverflowError: a constant does not fit.
    """
    return _CWriter(names).write(expr, 0)


class _Writer:
    """Writes with as few parentheses as the grammar allows."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def name(self, symbol: Symbol) -> str:
        """How a symbol is called here."""
        if self.names is None:
            return symbol.name
        return self.names(symbol) if callable(self.names) else self.names.get(symbol, symbol.name)

    def write(self, expr: Expr, level: int) -> str:
        kind = type(expr)
        if kind is Symbol:
            return self.name(expr)  # type: ignore[arg-type]
        if kind is Integer:
            text = self.constant(expr.value)  # type: ignore[attr-defined]
            return f"({text})" if text[0] == "-" and level > _SUM else text
        if kind is Sum:
            text, own = self.sum(expr)  # type: ignore[arg-type]
        elif kind is Product:
            text, own = "*".join([self.write(f, _PRODUCT + 1) for f in expr.children()]), _PRODUCT
        elif kind is FloorDiv or kind is Mod:
            text, own = self.division(expr)
        elif kind is Min or kind is Max:
            text, own = self.extremum(expr), _ATOM
        else:
            text, own = self.boolean(expr)
        return f"({text})" if own < level else text

    def sum(self, expr: Sum) -> tuple[str, int]:
        parts: list[str] = []
        for term, c in expr.terms:
            sign = "-" if c < 0 else "+"
            divides = type(term) is FloorDiv or type(term) is Mod
            tight = divides and (abs(c) != 1 or (c < 0 and not parts))  # -(a % b) is not -a % b
            body = self.write(term, _PRODUCT + 1 if tight else _PRODUCT)
            if abs(c) != 1:
                body = f"{self.constant(abs(c))}*{body}"
            if parts:
                parts.append(f" {sign} {body}")
            else:
                parts.append(body if c > 0 else f"-{body}")
        if expr.constant:
            parts.append(f" {'-' if expr.constant < 0 else '+'} {self.constant(abs(expr.constant))}")
        text = "".join(parts)
        return text, _PRODUCT if len(parts) == 1 and text[0] != "-" else _SUM

    def division(self, expr: Expr) -> tuple[str, int]:
        a, b = expr.children()
        operator = "//" if type(expr) is FloorDiv else "%"
        return f"{self.write(a, _PRODUCT)} {operator} {self.write(b, _PRODUCT + 1)}", _PRODUCT

    def extremum(self, expr: Expr) -> str:
        name = "min" if type(expr) is Min else "max"
        return f"{name}({', '.join([self.write(a, 0) for a in expr.children()])})"

    def boolean(self, expr: Expr) -> tuple[str, int]:
        if isinstance(expr, Comparison):
            a, b = expr.args
            return f"{self.write(a, _SUM)} {expr.symbol} {self.write(b, _SUM)}", _COMPARE
        if isinstance(expr, And):
            return self.words[0].join([self.write(a, _AND + 1) for a in expr.args]), _AND
        if isinstance(expr, Or):
            return self.words[1].join([self.write(a, _OR + 1) for a in expr.args]), _OR
        assert isinstance(expr, BooleanConstant)
        return self.truths[expr.value], _ATOM

    words = (" and ", " or ")
    truths = ("False", "True")

    def constant(self, value: int) -> str:
        return str(value)


class _CWriter(_Writer):
    words = (" && ", " || ")
    truths = ("0", "1")

    def division(self, expr: Expr) -> tuple[str, int]:
        a, b = expr.children()
        quotient = type(expr) is FloorDiv
        a_low, b_low = a.range()[0], b.range()[0]
        if a_low is not None and a_low >= 0 and b_low is not None and b_low >= 0:
            return f"{self.write(a, _PRODUCT)} {'/' if quotient else '%'} {self.write(b, _PRODUCT + 1)}", _PRODUCT
        name = "lamina_floor_div" if quotient else "lamina_floor_mod"
        return f"{name}({self.write(a, 0)}, {self.write(b, 0)})", _ATOM

    def extremum(self, expr: Expr) -> str:
        name = "lamina_min" if type(expr) is Min else "lamina_max"
        first, *rest = [self.write(a, 0) for a in expr.children()]
        for arg in rest:
            first = f"{name}({first}, {arg})"
        return first

    def constant(self, value: int) -> str:
        if not -(2**63) < value < 2**63:
            raise OverflowError(f"{value} does not fit in 64 bits")
        return str(value) if abs(value) < 2**31 else f"{value}LL"
