"""Size expressions in C++, and kernel sizes in terms of the program's symbols."""

from __future__ import annotations

from contextvars import ContextVar

from lamina_fx.symbolic import Expr, FloorDiv, Integer, Mod, Product, Sum, Symbol, as_expr, to_c

from ...ir.kernel import Loop
from ...ir.program import KernelCall
from .names import symbol_name

__all__ = ["SizeTerms", "constant", "iterations", "number", "phase_grain", "size_name"]

_HOST_NAMES = frozenset(
    [
        "a",
        "b",
        "c",
        "call",
        "error",
        "from",
        "g",
        "h",
        "io",
        "k",
        "n",
        "p",
        "parts",
        "s",
        "shape",
        "sizes",
        "starts",
        "to",
        "w",
        "window",
        "ws",
        "x",
        "y",
        "call_p",
        "call_s",
    ]
)


def size_name(symbol: Symbol) -> str:
    """How a size symbol is spelt in the host program, whose own variables it must not hide."""
    name = symbol_name(symbol)
    return f"{name}_" if name in _HOST_NAMES else name


class SizeTerms:
    """Products and divisions in a host program's size expressions: each is computed once, into a variable.

    A transformer with symbolic sizes has the same twenty in hundreds of places, and they were half of its compile time.
    Used as a context manager: `number` uses the terms of the innermost one.
    """

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self._symbols: dict[Expr, Symbol] = {}

    def __enter__(self) -> SizeTerms:
        self._token = _TERMS.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _TERMS.reset(self._token)

    def rewrite(self, expr: Expr) -> Expr:
        """``expr`` over the program's symbols and these variables."""
        kind = type(expr)
        if kind is Sum:
            return sum([c * self.rewrite(term) for term, c in expr.terms], start=as_expr(expr.constant))  # type: ignore[attr-defined]
        # what may divide by zero stays where it is: it may stand behind a test
        return self._variable(expr) if kind in (Product, FloorDiv, Mod) and _is_total(expr) else expr

    def _variable(self, expr: Expr) -> Symbol:
        found = self._symbols.get(expr)
        if found is None:
            inner = expr if type(expr) is Product else self._division(expr)
            text = to_c(inner, size_name)
            lower, upper = expr.range()
            found = self._symbols[expr] = Symbol(f"size_{len(self._symbols)}", lower, upper)
            self.definitions.append(f"const i64 {found.name} = {text};")
        return found

    def _division(self, expr: Expr) -> Expr:
        numerator, divisor = expr.children()
        above = self.rewrite(numerator)
        return above // divisor if type(expr) is FloorDiv else above % divisor


def _is_total(expr: Expr) -> bool:
    """Has it a value whatever the symbols are."""
    children = expr.children()
    if type(expr) in (FloorDiv, Mod) and type(children[1]) is not Integer:
        return False
    return all(map(_is_total, children))


_TERMS: ContextVar[SizeTerms | None] = ContextVar("size_terms", default=None)


def number(value: Expr | int) -> str:
    """A size expression over the program's symbols in C++."""
    if type(value) is int:
        return str(value)
    terms, expr = _TERMS.get(), as_expr(value)
    return to_c(expr if terms is None else terms.rewrite(expr), size_name)


def constant(value: Expr | int) -> int | None:
    """The value when it does not depend on a symbol."""
    return value if type(value) is int else value.value if type(value) is Integer else None


def _of_call(call: KernelCall, expr: Expr | int) -> Expr:
    values = dict(zip(call.kernel.sizes, (as_expr(s) for s in call.sizes), strict=True))
    return as_expr(expr).substitute(values) if values else as_expr(expr)  # type: ignore[arg-type]


def iterations(call: KernelCall, phase: Loop) -> Expr:
    """How often ``phase`` runs in this call: the range that a phase function divides."""
    extent = _of_call(call, phase.extent)
    return extent if phase.step == 1 else (extent + (phase.step - 1)) // phase.step


def phase_grain(call: KernelCall, phase: Loop) -> Expr:
    """Iterations worth a thread in this call; at least 1."""
    return as_expr(1) if phase.grain is None else _of_call(call, phase.grain)
