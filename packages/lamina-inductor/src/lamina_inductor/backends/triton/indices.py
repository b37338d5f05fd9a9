"""Index expressions as Triton text.

>>> from lamina_fx.symbolic import Symbol
>>> i, s = Symbol("i0", 0, 99), Symbol("s3")
>>> index_text(i // 10 * 40 + i % 10 + 3), index_text(s // 2)
('40*(i0 // 10) + i0 % 10 + 3', 'lm_floor_div(s3, 2)')
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import (
    And,
    BooleanConstant,
    Comparison,
    Expr,
    FloorDiv,
    Integer,
    Max,
    Min,
    Mod,
    Or,
    Product,
    Sum,
    Symbol,
)

__all__ = ["address_text", "index_text"]

_SUM, _PRODUCT, _ATOM = 0, 1, 2


def index_text(expr: Any, names: dict[Symbol, str] | None = None) -> str:
    """The expression; ``names`` are spellings of symbols that differ from their names.

    Triton divides as C does, so a division whose operands may be negative calls a function of the prelude.
    """
    return _write(expr if isinstance(expr, Expr) else Integer(expr), names or {}, _SUM)


def _write(expr: Any, names: dict[Symbol, str], level: int) -> str:
    text, own = _node(expr, names)
    return f"({text})" if own < level else text


def _node(expr: Any, names: dict[Symbol, str]) -> tuple[str, int]:
    kind = type(expr)
    if kind is Symbol:
        return names[expr] if expr in names else str(expr), _ATOM
    if kind is Integer:
        return str(expr.value), _ATOM if expr.value >= 0 else _SUM
    if kind is Sum:
        return _sum(expr, names), _SUM
    if kind is Product:
        return "*".join([_write(f, names, _ATOM) for f in expr.children()]), _PRODUCT
    if kind is FloorDiv or kind is Mod:
        return _division(expr, names)
    if kind is Min or kind is Max:
        name = "tl.minimum" if kind is Min else "tl.maximum"
        first, *rest = [_write(a, names, _SUM) for a in expr.children()]
        for arg in rest:
            first = f"{name}({first}, {arg})"
        return first, _ATOM
    return _boolean(expr, names), _SUM


def _sum(expr: Sum, names: dict[Symbol, str]) -> str:
    text = ""
    for term, c in expr.terms:
        body = _write(term, names, _ATOM if abs(c) != 1 or c < 0 else _PRODUCT)
        body = body if abs(c) == 1 else f"{abs(c)}*{body}"
        text += (" - " if c < 0 else " + ") + body if text else ("-" if c < 0 else "") + body
    if expr.constant:
        text += f" {'-' if expr.constant < 0 else '+'} {abs(expr.constant)}"
    return text


def _division(expr: Expr, names: dict[Symbol, str]) -> tuple[str, int]:
    a, b = expr.children()
    quotient = type(expr) is FloorDiv
    low, divisor = a.range()[0], b.range()[0]
    if low is not None and low >= 0 and divisor is not None and divisor >= 0:
        return f"{_write(a, names, _ATOM)} {'//' if quotient else '%'} {_write(b, names, _ATOM)}", _PRODUCT
    name = "lm_floor_div" if quotient else "lm_remainder"
    return f"{name}({_write(a, names, _SUM)}, {_write(b, names, _SUM)})", _ATOM


def _boolean(expr: Any, names: dict[Symbol, str]) -> str:
    if isinstance(expr, Comparison):
        a, b = expr.args
        # From how a bound is divided the compiler sees for how many neighbours a mask is the same: 64, and not 63.
        if expr.symbol == "<=" and type(b) is Integer:
            return f"{_write(a, names, _SUM)} < {b.value + 1}"
        if expr.symbol in ("<", "<=") and type(a) is Integer:
            return f"{_write(b, names, _SUM)} >= {a.value + (expr.symbol == '<')}"
        return f"{_write(a, names, _SUM)} {expr.symbol} {_write(b, names, _SUM)}"
    if isinstance(expr, (And, Or)):
        word = " & " if isinstance(expr, And) else " | "
        return word.join([f"({_write(a, names, _SUM)})" for a in expr.args])
    assert isinstance(expr, BooleanConstant)
    return str(bool(expr.value))


def address_text(buffer: str, index: str) -> str:
    """The address of an element of a buffer."""
    if index == "0":
        return buffer
    return f"{buffer} + {index}" if index.isidentifier() or index.startswith("tl.zeros") else f"{buffer} + ({index})"
