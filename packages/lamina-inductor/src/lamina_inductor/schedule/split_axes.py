"""Cut axes where indices divide them, as a reshape of a permuted tensor does, so that the indices are affine.

For ``x[i // 64 + 80 * (i % 64)]`` over ``i < 5120`` there are ``a < 80`` and ``b < 64`` with ``x[a + 80 * b]``; what
steps by ``i`` steps by ``64 * a + b``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lamina_fx.symbolic import Expr, FloorDiv, Mod, Symbol, as_expr

from ..ir.loops import Size
from .flat import indices_of, substitute
from .groups import axis_symbol

__all__ = ["split_axes"]


def split_axes(
    statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Size]
) -> tuple[list[Any], list[Symbol], dict[Symbol, Size]] | None:
    """Statements, axes and sizes with the axes cut, which have new numbers; None where nothing is to be cut."""
    indices = list(dict.fromkeys(i for s in statements for i in indices_of(s) if isinstance(i, Expr)))
    mapping: dict[Expr, Any] = {}
    new_axes: list[Symbol] = []
    new_sizes: dict[Symbol, Size] = {}
    number = len(axes)
    for axis in axes:
        steps = _steps(indices, axis, sizes[axis])
        if len(steps) < 2:
            new_axes.append(axis)
            new_sizes[axis] = sizes[axis]
            continue
        place: Any = 0
        for step, above in reversed(list(pairwise([*steps, sizes[axis]]))):
            size = _number(above // step)
            digit = axis_symbol(number, size)
            number += 1
            new_axes.append(digit)
            new_sizes[digit] = size
            place = place + digit * step
        mapping[axis] = place
    if not mapping:
        return None
    return [substitute(s, mapping) for s in statements], new_axes, new_sizes


def _steps(indices: list[Expr], axis: Symbol, size: Size) -> list[Any]:
    """Where the axis is cut: from 1 up, each a multiple of the one before. [1] where it is not cut, or cannot be."""
    found: dict[Any, None] = {1: None}
    for index in indices:
        if axis in index.free_symbols and not _collect(index, axis, found):
            return [1]
    steps = sorted(found, key=_order)
    whole = all(_divides(a, b) for a, b in pairwise([*steps, size]))
    return [s for s in steps if s != size] if whole else [1]


def _order(step: Any) -> tuple[int, int]:
    """Numbers before expressions, those by how many factors they have."""
    return (0, step) if type(step) is int else (1, len(str(step)))


def _divides(a: Any, b: Any) -> bool:
    return b % a == 0 if type(a) is int and type(b) is int else as_expr(b) % as_expr(a) == 0


def _collect(expr: Expr, axis: Symbol, found: dict[Any, None]) -> bool:
    """Put down by what an expression divides the axis; False where it divides something made of it."""
    if axis not in expr.free_symbols:
        return True
    if type(expr) is not FloorDiv and type(expr) is not Mod:
        return all(_collect(child, axis, found) for child in expr.children())
    value, divisor = expr.children()
    unit: Any = 1
    if type(value) is FloorDiv:
        value, unit = value.children()
    if value is not axis:
        return False
    for step in (unit, unit * divisor):
        found[_number(step)] = None
    return True


def _number(step: Any) -> Any:
    return step.value if isinstance(step, Expr) and step.is_constant else step  # type: ignore[attr-defined]
