"""Reductions that need another one, but can be made beside it: the sum of exp(x - max) beside the maximum, the sum of
squared distances from the mean beside the sum.

Each part of a row has them of its own maximum (or mean); parts are combined by what lies between theirs and the row's:
rescaled sums (Milakov, Gimelshein 2018), sums of squares (Welford 1962; Chan, Golub, LeVeque 1979).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Integer

from ..ir.kernel import Let

__all__ = ["Fed", "find_beside"]


@dataclass(frozen=True, slots=True)
class Fed:
    """A reduction: its kind, its dtype and the operand that it is fed."""

    kind: str
    dtype: DType
    value: Any


def find_beside(values: Mapping[Any, Any], known: Mapping[Any, Fed], fed: Fed, count: Any) -> tuple[str, str] | None:
    """(``"exp"`` or ``"square"``, the maximum or sum among ``known`` that ``fed`` stands beside), if it does.

    ``values``: the statements that define values, by name. ``count``: elements that are reduced.
    """
    term = values.get(fed.value)
    if fed.kind != "sum" or fed.dtype.kind != "float" or type(term) is not Let or term.dtype is not fed.dtype:
        return None
    squares = term.op == "square" or (term.op == "mul" and term.args[0] == term.args[1])
    distance = values.get(term.args[0]) if squares or term.op == "exp" else None
    if type(distance) is not Let or distance.op != "sub":
        return None
    value, base = distance.args
    of = _mean_of(values.get(base), count) if squares else base
    wanted = Fed("sum" if squares else "max", fed.dtype, value)
    return ("square" if squares else "exp", of) if known.get(of) == wanted else None  # type: ignore[return-value]


def _mean_of(stmt: Any, count: Any) -> Any:
    """The sum that a value of the row divides by the number of elements."""
    number = count.value if type(count) is Integer else count
    if type(number) is not int or not number or type(stmt) is not Let or stmt.op not in ("div", "mul"):
        return None
    if type(stmt.args[1]) not in (int, float):
        return None
    factor = float(stmt.args[1])  # type: ignore[arg-type]
    right = factor == number if stmt.op == "div" else abs(factor * number - 1.0) < 1e-6
    return stmt.args[0] if right and type(stmt.args[0]) is str else None
