"""How reductions combine and where they start, as C++ text."""

from __future__ import annotations

from lamina_fx import DType

from ...ir.kernel import Accumulator
from .elementwise import expression
from .literals import literal

__all__ = ["CLAUSE", "STORE_MODES", "combine", "identity"]

CLAUSE: dict[str, str] = {"sum": "+", "prod": "*", "max": "max", "min": "min", "any": "|", "all": "&", "xor": "^"}
"""Kind of accumulator -> operator of an OpenMP reduction clause."""

STORE_MODES: dict[str, str] = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
"""Mode of a combining store -> kind of accumulator that combines alike."""


def combine(kind: str, dtype: DType, a: str, b: str) -> str:
    """``a`` and ``b`` combined by a reduction of this kind."""
    if kind in ("any", "all", "xor"):
        return f"{a} {dict(any='|', all='&', xor='^')[kind]} {b}"
    if dtype.kind == "bool":
        return f"{a} {'|' if kind in ('sum', 'max') else '&'} {b}"
    if kind in ("max", "min"):
        return f"lm_{kind}({a}, {b})"
    return expression("add" if kind == "sum" else "multiply", dtype, dtype, [a, b])


def identity(accumulator: Accumulator) -> str:
    """The value a reduction starts from, as a literal."""
    kind, dtype = accumulator.kind, accumulator.dtype
    if kind in ("sum", "any", "xor"):
        return literal(0, dtype)
    if kind in ("prod", "all"):
        return literal(1, dtype) if dtype.kind != "int" or kind == "prod" else literal(-1, dtype)
    lowest = kind in ("max", "argmax")
    if dtype.kind == "float":
        return literal(float("-inf") if lowest else float("inf"), dtype)
    if dtype.kind == "bool":
        return literal(not lowest, dtype)
    bits = dtype.itemsize * 8 - dtype.is_signed
    smallest = -(1 << bits) if dtype.is_signed else 0
    return literal(smallest if lowest else (1 << bits) - 1, dtype)
