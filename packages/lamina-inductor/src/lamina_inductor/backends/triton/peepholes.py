"""Operators that are cheaper to print together with what made their operand.

The operand's own statement stays; the compiler drops it where nothing else reads it.
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import DType, bfloat16, float32

from ...ir.kernel import Let

__all__ = ["rounded", "shorter"]

_LOG2_E = 1.4426950408889634


def shorter(stmt: Let, values: dict[str, Let], fast: bool | None, by_row: bool = False) -> str | None:
    """Text for a statement, or None: no shorter one is known. ``values``: those of the phase by name; ``fast``: see
    ``narrow``; ``by_row``: the last operand is one number for a row of the others.

    ``x / c`` with a power of two ``c`` is ``x * (1 / c)``, exactly.
    ``(x + k) * c`` with a power of two ``c`` is ``x * c + k * c``, one operation with the same rounding.
    ``erf(x * c)`` and ``exp(x * c)`` among narrow values take ``c`` into their constants.
    ``x / row`` among narrow values, or where it is only added up, is ``x * (1 / row)``, whose division is done once for
    a row (2 ULP of float32).
    """
    if stmt.op == "div" and type(stmt.args[0]) is str:
        if by_row and fast is not None and stmt.dtype is float32:
            return f"lm_row_quotient({stmt.args[0]}, {stmt.args[1]})"
        return _multiplied(stmt.args[0], stmt.args[1])
    source = values.get(stmt.args[0]) if stmt.args and type(stmt.args[0]) is str else None
    if stmt.dtype is not float32 or source is None or source.dtype is not float32:
        return None
    inner, number = _factor(source)
    if type(inner) is not str or type(number) not in (int, float):
        return None
    if stmt.op == "mul" and source.op == "add" and type(stmt.args[1]) in (int, float):
        return _scaled_sum(inner, float(number), float(stmt.args[1]))  # type: ignore[arg-type]
    if stmt.op == "exp" and fast is not None and source.op in ("mul", "neg"):
        return f"tl.exp2({inner} * ({float(number) * _LOG2_E!r}))"  # type: ignore[arg-type]
    if stmt.op == "erf" and fast and source.op == "mul" and 0 < float(number) < 16:  # type: ignore[arg-type]
        c = float(number)  # type: ignore[arg-type]
        return f"lm_scaled_erf({inner}, {0.3275911 * c!r}, {-_LOG2_E * c * c!r})"
    return None


def rounded(stmt: Let, own: DType, values: dict[str, Let], pairs: bool) -> str | None:
    """Text for a conversion of a value of type ``own``, or None: the plain one. ``pairs``: a thread has elements in
    pairs.

    bfloat16 or float8 to float32 and back is nothing; float32 to bfloat16 and back is one function.
    """
    source = values.get(stmt.args[0])  # type: ignore[arg-type]
    if source is None or source.op != "convert_element_type":
        return f"lm_widened({stmt.args[0]})" if pairs and own is bfloat16 and stmt.dtype is float32 else None
    inner = values.get(source.args[0])  # type: ignore[arg-type]
    if source.dtype is float32 and (stmt.dtype is bfloat16 or stmt.dtype.itemsize == 1):
        return source.args[0] if inner is not None and inner.dtype is stmt.dtype else None  # type: ignore[return-value]
    if stmt.dtype is float32 and source.dtype is bfloat16 and pairs:
        return f"lm_bfloat16({source.args[0]})" if inner is not None and inner.dtype is float32 else None
    return None


def _factor(source: Let) -> tuple[Any, Any]:
    """The operand and the number of an operator on two; a negation multiplies by -1."""
    if source.op == "neg":
        return source.args[0], -1.0
    return source.args if len(source.args) == 2 else (None, None)  # type: ignore[return-value]


def _multiplied(value: str, divisor: Any) -> str | None:
    """Division by a power of two as a product."""
    if type(divisor) not in (int, float) or not 2.0**-100 < abs(divisor) < 2.0**100:
        return None
    return f"{value} * ({1 / divisor!r})" if math.frexp(abs(divisor))[0] == 0.5 else None


def _scaled_sum(inner: Any, number: float, factor: float) -> str | None:
    exact = factor != 0 and math.isfinite(factor * number) and math.frexp(abs(factor))[0] == 0.5
    if not exact or not 1e-30 < abs(factor) < 1e30 or abs(number * factor) < 1e-30:
        return None
    return f"{inner} * ({factor!r}) + ({number * factor!r})"
