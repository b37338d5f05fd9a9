"""Loops for a grid of programs: one parallel axis over tiles of everything kept, one vector axis over what is reduced.

A pointwise group is ``parallel simd x``, or has tiles of several axes (``tiled_nest``). A group with reductions is
``parallel x`` with a ``simd r`` loop for each pass over the reduced elements and the values of a row between them;
nothing is kept in local arrays, so a backend may hold the whole row in a tile (then the passes are one straight line)
or walk it in blocks (then they are computed again).

    x[R, C] - x.mean(1):   parallel i2 < R                       (i3: what is reduced)
                             simd i3 < C, r2 = sum:  v1 = x[..];  r2 <- v1
                             v3 = div(r2, C)
                             simd i3 < C:            v1 = x[..];  v4 = sub(v1, v3);  out[..] = v4

A scan over the same axis is made by the pass that makes its operand, as an accumulator that says what it has so far.

Few long reductions are split: one phase makes a partial result per block, the next one combines them, in order. Where
elements wait for them, or reductions for each other, see ``staged_nest``.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.dtypes import compute_dtype
from ..ir.kernel import Load, Loop, Sort, Stmt
from ..ir.loops import Index, Size, Value
from .blocks import as_index
from .coalesce import coalesce, fast_axis, order_axes, walked_axis, walked_last
from .emitter import Emitter, Reduce, Scan, Unfusable, linear_index
from .flat import Flat, affine, analyse
from .groups import axis_symbol
from .late_nest import late_nest, late_reductions
from .row_nest import Partial
from .rows import flat_rows
from .split_reduction import is_root, of_row, split_reduction, sweep
from .staged_nest import column_blocks, staged_nest
from .tile_nest import tile_nest
from .tiled_nest import tiled_nest

__all__ = ["axes_over", "grid_nest", "grid_scatter"]

BLOCK = 4096
"""Elements of a row that one program adds up when a reduction is split."""

COLUMN_BLOCK = 512
"""The same for columns, of which a program has 32 side by side."""

FEWEST_SCANNED, MOST_SCANNED = 1024, 16384
"""Elements of the smallest block of a scan, and blocks of a row whose totals one program scans."""

FEWEST = 256
"""Elements of an axis that make a block of a reduction of everything, where operands walk memory by another one."""

WHOLE_ROW, FEW_LONG = 32768, 132
"""Longer rows are not held by a tile; so many of them, a program for each, are as fast in one launch."""

FEW = 512
"""Fewer rows, or groups of 32 columns, than these leave the machine idle: long reductions are split."""


def grid_nest(
    statements: list[Any],
    axes: list[Symbol],
    sizes: dict[Symbol, Any],
    inner: frozenset[Symbol] | None,
    columns: Any = None,
) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """(phases, partial buffers, what was chosen) for a group's statements; as ``nests.build_nest``."""
    inner = inner or frozenset()
    over_rows = any(type(s) in (Reduce, Scan, Sort) for s in statements)
    if columns is not None and not over_rows:
        tile = tile_nest(statements, axes, sizes, columns)
        if tile:
            return tile, [], "a product's tile"
    rows = order_axes(statements, [a for a in axes if a not in inner])
    within = order_axes(statements, [a for a in axes if a in inner])
    if not within:
        rows = walked_last(statements, rows)
    flat = analyse(*coalesce(statements, [*rows, *within], sizes, inner))
    if any(type(s) is int and s == 0 for s in flat.sizes.values()):
        return (Loop(axis_symbol(0, 1), as_index(0), "parallel", ()),), [], "nothing"
    spare = len(flat.axes)
    if not over_rows:
        tiled = tiled_nest(flat)
        if tiled is not None:
            return (tiled,), [], "pointwise, in tiles"
        flat, x = _one_axis(flat, flat.axes, spare)
        body = tuple([i.stmt for i in flat.info.values()])
        return (Loop(x, as_index(flat.sizes.get(x, 1)), "parallel simd", body),), [], "pointwise"
    line = _turned_line(flat)
    flat, x = _one_axis(flat, flat.rows, spare)
    flat, r = _one_axis(flat, [a for a in flat.axes if a in flat.inner], spare + 1)
    flat = analyse(flat.statements, flat.axes, flat.sizes, frozenset((r,)))
    late = late_reductions(flat)
    if any(s.stmt.axes != {x} for s in late):
        raise Unfusable("a reduction over everything in a kernel of rows")
    if late:
        phases, partials = late_nest(flat, x, r, _passes, spare + 2)
        return phases, partials, "whole rows and sums over them"
    sorts = any(type(s) is Sort for s in flat.statements)
    block = None if sorts else _split_block(flat, x, r, line)
    if block is not None and _is_plain(flat):
        return split_reduction(flat, x, r, block, spare + 2)
    staged = _staged(flat, x, r, spare + 2) if block is not None else None
    if staged is not None:
        return *staged, "rows in stages"
    extent = as_index(flat.sizes.get(x, 1))
    return (Loop(x, extent, "parallel", tuple(_passes(flat, r))),), [], "whole rows"


def _one_axis(flat: Flat, axes: list[Symbol], number: int) -> tuple[Flat, Symbol]:
    """``axes`` as one axis; one of extent 1 where there are none."""
    return flat_rows(flat, axes, number) if axes else (flat, axis_symbol(number, 1))


# -- rows ------------------------------------------------------------------------------------------------


def _passes(flat: Flat, r: Symbol, late: Any = None) -> list[Stmt]:
    """For each level: values of the row, then a loop over ``r`` for the reductions and stores of that level.

    ``late``: see ``late_nest``."""
    body: list[Stmt] = []
    for level in range(1 + max(i.level for i in flat.info.values())):
        body.extend(i.stmt for i in flat.info.values() if i.level == level and of_row(flat, i))
        roots = [i for i in flat.info.values() if is_root(flat, i, level)]
        adds = late(level, True) if late is not None else []
        if roots or adds:
            body.append(sweep(flat, r, roots, "", adds))
        if late is not None:
            body.extend(late(level, False))
    return body


# -- split reductions ------------------------------------------------------------------------------------


def _turned_line(flat: Flat) -> int | None:
    """Where everything is reduced, and an access walks memory by another axis than the last: the size of that one."""
    axes = [a for a in flat.axes if a in flat.inner]
    size = flat.sizes[axes[-1]]
    if flat.rows or len(axes) < 2 or type(size) is not int or not FEWEST <= size <= WHOLE_ROW:
        return None
    for stmt in flat.statements:
        steps = affine(stmt.index, flat.inner) if type(stmt) is Load else None
        if steps and axes[-1] in steps and walked_axis(steps, axes[-1]) not in (None, axes[-1]):
            return size
    return None


def _split_block(flat: Flat, x: Symbol, r: Symbol, line: int | None) -> int | None:
    """Elements of a block when there are few results of many elements each (a symbolic number counts as many); None: do
    not split. ``line``: of which a program has several side by side."""
    kept, reduced = flat.sizes.get(x, 1), flat.sizes[r]
    if type(kept) is not int:
        return None
    columns = fast_axis(flat.statements, flat.axes) is x
    block, programs = (COLUMN_BLOCK, kept // 32) if columns else (line or BLOCK, kept)
    if programs >= FEW or (type(reduced) is int and reduced < 4 * block):
        return None
    return block


def _staged(flat: Flat, x: Symbol, r: Symbol, spare: int) -> tuple[tuple[Loop, ...], list[Partial]] | None:
    """Few rows that no tile holds, in blocks."""
    kept, reduced = flat.sizes.get(x, 1), flat.sizes[r]
    if fast_axis(flat.statements, flat.axes) is x:
        return staged_nest(flat, x, r, *column_blocks(kept, reduced), spare)  # type: ignore[arg-type]
    if kept >= FEW_LONG or (type(reduced) is int and reduced <= WHOLE_ROW):
        return None
    block = _scan_block(flat, kept, reduced) if any(type(s) is Scan for s in flat.statements) else BLOCK
    return staged_nest(flat, x, r, block, block, spare)


def _scan_block(flat: Flat, kept: Any, reduced: Any) -> int:
    """Elements of a block whose total and scans a program makes."""
    widest = max([s.dtype.itemsize for s in flat.statements if type(s) is Scan])
    block = BLOCK * 2 if widest <= 4 else BLOCK
    if type(reduced) is not int:
        return block
    while block > FEWEST_SCANNED and kept * -(-reduced // block) < FEW:
        block //= 2
    return block * -(-reduced // (block * MOST_SCANNED))


def _is_plain(flat: Flat) -> bool:
    """One level of reductions, whose results no element waits for, and no scans."""
    for info in flat.info.values():
        if type(info.stmt) is Scan:
            return False
        if type(info.stmt) is Reduce and info.level > 1:
            return False
        if info.level and info.axes & flat.inner:
            return False
    return True


# -- scatters --------------------------------------------------------------------------------------------


def grid_scatter(
    value: Value,
    emitter: Emitter,
    target: tuple[str, tuple[Size, ...]],
    in_place: bool = False,
    before: tuple[Value, ...] = (),
) -> tuple[Loop, ...]:
    """As ``scatter_nest.scatter_phases``: a copy of the input, then the updates with atomic stores, those of the
    scatters ``before`` this one, too.

    Sums of several updates of one element are added in no certain order; of several that are set, one stays.
    """
    chain = (*before, value)
    first = () if in_place else _copied(chain[0], emitter, target)
    axes, index = axes_over(value.inputs[1].shape)
    for item in chain:
        plan, updates = item.attrs, emitter.read(item.inputs[1], index)
        place = linear_index(plan.target(emitter, item, index), target[1])
        emitter.store(target[0], item.dtype, place, updates, item.dtype, mode=plan.mode, atomic=plan.mode != "set")
    second, _, _ = grid_nest(emitter.statements, list(axes), axes, None)
    return (*first, *second)


def _copied(value: Value, emitter: Emitter, target: tuple[str, tuple[Size, ...]]) -> tuple[Loop, ...]:
    axes, index = axes_over(value.shape)
    operand = emitter.read(value.inputs[0], index)
    held = emitter.named(operand, compute_dtype(value.dtype))
    emitter.store(target[0], value.dtype, linear_index(index, target[1]), held, value.dtype)
    phases, _, _ = grid_nest(emitter.statements, list(axes), axes, None)
    emitter.statements, emitter.memo = [], {}
    return phases


def axes_over(shape: tuple[Size, ...]) -> tuple[dict[Symbol, Size], Index]:
    """An axis for each dimension that has more than one element, and the index over them."""
    axes: dict[Symbol, Size] = {}
    index: list[Size] = []
    for size in shape:
        axis: Size = 0
        if not (type(size) is int and size == 1):
            axis = axis_symbol(len(axes), size)
            axes[axis] = size  # type: ignore[index]
        index.append(axis)
    return axes, tuple(index)
