"""Bounds of integers that a kernel computes: indices that are seen to be in range need no check.

v3 = maximum(v2, 0);  v4 = minimum(v3, H - 1);  v7 = v4 * W + v6    (v6 likewise):    0 <= v7 <= H * W - 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamina_fx import int64
from lamina_fx.symbolic import as_expr

from ..ir.kernel import IndexValue, Let, Operand
from ..ir.loops import Size

__all__ = ["Definitions", "is_index"]

Definitions = Mapping[str, Let | IndexValue]
"""Name -> the statement that defines it."""


def is_index(value: str, size: Size, known: Definitions) -> bool:
    """Is ``0 <= value < size`` certain?"""
    most = _most(value, known)
    if most is None or not _is_natural(value, known):
        return False
    least_left = (as_expr(size) - 1 - as_expr(most)).range()[0]
    return least_left is not None and least_left >= 0


def _is_natural(value: Operand, known: Definitions) -> bool:
    """Is the value at least 0?"""
    if type(value) is not str:
        return type(value) is int and value >= 0
    stmt = known.get(value)
    if stmt is None or stmt.dtype is not int64:
        return False
    if type(stmt) is IndexValue:
        least = as_expr(stmt.expr).range()[0]
        return least is not None and least >= 0
    if stmt.op == "maximum":
        return any(_is_natural(a, known) for a in stmt.args)
    if stmt.op in ("minimum", "add", "mul", "constant"):
        return all(_is_natural(a, known) for a in stmt.args)
    return stmt.op == "where" and all(_is_natural(a, known) for a in _chosen(stmt, known))


def _most(value: Operand, known: Definitions) -> Any:
    """The most that a value may be, where that is known and nothing overflows."""
    if type(value) is not str:
        return value if type(value) is int else None
    stmt = known.get(value)
    if stmt is None or stmt.dtype is not int64:
        return None
    if type(stmt) is IndexValue:
        return stmt.expr
    if stmt.op == "where":
        taken = _chosen(stmt, known)
        return _most(taken[0], known) if len(taken) == 1 else None
    bounds = [_most(a, known) for a in stmt.args]
    if stmt.op == "minimum":
        return min([b for b in bounds if b is not None], key=lambda b: type(b) is not int, default=None)
    if stmt.op == "constant":
        return bounds[0]
    if None in bounds or stmt.op not in ("add", "mul") or not all(_is_natural(a, known) for a in stmt.args):
        return None
    left, right = bounds
    return left + right if stmt.op == "add" else left * right


def _chosen(stmt: Let, known: Definitions) -> tuple[Operand, ...]:
    """What a ``where`` may give: where it asks whether an index is negative that is not, the other one."""
    condition, yes, no = stmt.args
    asked = known.get(condition) if type(condition) is str else None
    if type(asked) is Let and asked.op == "lt" and asked.args[1] == 0 and _is_natural(asked.args[0], known):
        return (no,)
    return yes, no
