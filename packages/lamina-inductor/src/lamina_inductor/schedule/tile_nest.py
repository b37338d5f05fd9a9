"""Loops of a pointwise kernel over the rows and columns of a product, for templates that print it on their tiles.

    out[m, n] = relu(product[m, n] + bias[n])      parallel i2 < M:  simd i3 < N:  v1 = product[i2*N + i3]; ...

As kernel IR this is an ordinary kernel over rows; ``fits_tile`` says whether a template may take it.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.kernel import BindIndex, IndexValue, Let, Load, Loop, Sort, Stmt, Store, walk
from ..ir.loops import Size
from .blocks import as_index
from .coalesce import coalesce
from .flat import Flat, analyse, substitute
from .groups import axis_symbol
from .kernels import BuiltKernel
from .rows import flat_rows
from .trace import rows_of, same_size

__all__ = ["fits_tile", "tile_nest"]


def tile_nest(statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Any], columns: Size) -> tuple[Loop, ...]:
    """The phase over rows and columns for statements without reductions; () when the axes do not fall into such."""
    flat, row, column = _rows_and_columns(statements, axes, sizes, columns)
    if flat is None or row is None or column is None:
        return ()
    of_row: list[Stmt] = []
    inside: list[Stmt] = []
    for info in flat.info.values():
        (inside if column in info.axes or type(info.stmt) is Store else of_row).append(info.stmt)
    loop = Loop(column, as_index(flat.sizes[column]), "simd", tuple(inside))
    return (Loop(row, as_index(flat.sizes.get(row, 1)), "parallel", (*of_row, loop)),)


def _rows_and_columns(
    statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Any], columns: Size
) -> tuple[Flat | None, Symbol | None, Symbol | None]:
    across: Any = 1
    for first in range(len(axes) - 1, -1, -1):
        across = across * sizes[axes[first]]
        if same_size(across, columns):
            flat = analyse(statements, axes, sizes, frozenset())
            flat, row = _one_axis(flat, axes[:first], len(axes))
            flat, column = _one_axis(flat, axes[first:], len(axes) + 1)
            return flat, row, column
    statements, axes, sizes, _ = coalesce(statements, axes, sizes, frozenset())
    rows = rows_of(sizes[axes[0]], columns) if len(axes) == 1 else None
    if rows is None or (type(columns) is int and columns < 2):
        return None, None, None
    row, column = axis_symbol(1, rows), axis_symbol(2, columns)
    moved = [substitute(s, {axes[0]: row * columns + column}) for s in statements]
    return analyse(moved, [row, column], {row: rows, column: columns}, frozenset()), row, column


def _one_axis(flat: Flat, axes: list[Symbol], number: int) -> tuple[Flat, Symbol]:
    return flat_rows(flat, axes, number) if axes else (flat, axis_symbol(number, 1))


def fits_tile(built: BuiltKernel, buffer: str, rows: Size, columns: Size) -> bool:
    """Does the kernel's one phase run over ``rows`` and ``columns`` and read of ``buffer`` only its own element?"""
    kernel = built.kernel
    if len(kernel.body) != 1 or kernel.body[0].kind != "parallel" or not _equal(kernel.body[0].extent, rows):
        return False
    (phase,) = kernel.body
    loops = [s for s in phase.body if type(s) is Loop]
    if len(loops) != 1 or loops[0] is not phase.body[-1] or loops[0].kind != "simd":
        return False
    if loops[0].accumulators or any(type(s) is Sort for s in loops[0].body):
        return False
    (loop,) = loops
    if not _equal(loop.extent, columns):
        return False
    names = {p.name for p, b in zip(kernel.params, built.buffers, strict=True) if b == buffer}
    own = phase.axis * columns + loop.axis
    for stmt in walk(kernel.body):
        if type(stmt) not in (Loop, Let, Load, Store, IndexValue, BindIndex):
            return False
        if type(stmt) in (Load, Store) and stmt.buffer in names and (stmt.index != own or stmt.mask is not None):
            return False
    return bool(names)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) if a.is_constant else a is b
