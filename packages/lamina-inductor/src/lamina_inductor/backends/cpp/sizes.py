"""Size expressions in C++, and kernel sizes in terms of the program's symbols."""

from __future__ import annotations

from lamina_fx.symbolic import Expr, Integer, Symbol, as_expr, to_c

from ...ir.kernel import Loop
from ...ir.program import KernelCall
from .names import symbol_name

__all__ = ["constant", "iterations", "number", "phase_grain", "size_name"]

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


def number(value: Expr | int) -> str:
    """A size expression over the program's symbols in C++."""
    return str(value) if type(value) is int else to_c(as_expr(value), size_name)


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
