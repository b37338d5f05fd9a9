"""Transposed reads in tiles: a pass over kernel IR.

When the innermost loop reads a buffer with a large stride and the loop around it would read it with stride 1, every element costs a
cache line. Both loops are cut into blocks then: a tile is read along the memory, kept in a small array in the first-level cache, and
used from there in the other direction.

    Loop r in R: parallel                     Loop rb in R/16: parallel
      Loop c in C: simd                         Local tile[16 * 64]
        x = load b0[c*R + r]           ->       Loop cb in C/64: serial
        store out[r*C + c] = x                    Loop c in 64: serial;  Loop r in 16: simd
                                                    x = load b0[...];  store tile[c*16 + r] = x
                                                  Loop r in 16: serial;  Loop c in 64: simd
                                                    x = load tile[c*16 + r];  store out[...] = x
"""

from __future__ import annotations

from dataclasses import replace

from lamina_fx.symbolic import Expr, Integer, Min, Symbol, as_expr

from ...ir.kernel import Accumulate, BindIndex, If, IndexValue, Kernel, Let, Load, Local, Loop, Stmt, Store, walk

__all__ = ["tile_transposed"]

_LINE = 64
_COLUMNS = 64
_TOO_SMALL = 4


def tile_transposed(kernel: Kernel) -> Kernel:
    """The kernel with its transposed reads tiled; the same object when there are none."""
    body = tuple([_tiled_phase(phase, number) for number, phase in enumerate(kernel.body)])
    return kernel if all(new is old for new, old in zip(body, kernel.body, strict=True)) else replace(kernel, body=body)


def _tiled_phase(phase: Loop, number: int) -> Loop:
    if phase.kind != "parallel" or phase.step != 1 or not phase.body or type(phase.body[-1]) is not Loop:
        return phase
    inner = phase.body[-1]
    if inner.kind != "simd" or inner.step != 1 or inner.accumulators or not _is_plain(phase, inner):
        return phase
    width = _width(phase, inner)
    if width is None:
        return phase
    row = Symbol(f"tile{number}_r", 0, width - 1)
    block = Symbol(f"tile{number}_rb", 0)
    shift = {phase.axis: block * width + row}
    loads = [s for s in inner.body if type(s) is Load and _is_transposed(s, inner.axis, row, shift)]
    return _rebuild(phase, inner, loads, number, width, row, block) if loads else phase


def _is_plain(phase: Loop, inner: Loop) -> bool:
    kinds = (Let, IndexValue, Load)
    before = all(type(s) in kinds for s in phase.body[:-1])
    bound = any(type(s) in (BindIndex, If, Loop, Local, Accumulate) for s in walk(inner.body))
    return before and not bound and phase.axis not in inner.extent.free_symbols


def _width(phase: Loop, inner: Loop) -> int | None:
    """Rows of a tile: a cache line of the widest type, or less where the index has a period that this does not divide."""
    items = [s.dtype.itemsize for s in inner.body if type(s) is Load]
    if not items or _short(phase.extent) or _short(inner.extent):
        return None
    best = max(8, _LINE // max(items))
    for width in (best, best // 2, 20, 12, 10, 6, 5):
        row, block = Symbol("tile_r", 0, width - 1), Symbol("tile_b", 0)
        shift = {phase.axis: block * width + row}
        if any(type(s) is Load and _is_transposed(s, inner.axis, row, shift) for s in inner.body):
            return width
    return None


def _short(extent: Expr) -> bool:
    return type(extent) is Integer and extent.value < _TOO_SMALL


def _step(index: Expr, axis: Symbol) -> Expr:
    return index.substitute({axis: axis + 1}) - index


def _is_transposed(load: Load, axis: Symbol, row: Symbol, shift: dict[Symbol, Expr]) -> bool:
    if load.mask is not None or axis not in as_expr(load.index).free_symbols:
        return False
    index = load.index.substitute(shift)  # type: ignore[arg-type]
    along = _step(index, axis)
    if axis in along.free_symbols or along == 1 or along == 0 or along == -1:
        return False
    low, high = along.range()
    if low is not None and high is not None and low > -8 and high < 8:
        return False
    return _step(index, row) == 1


def _rebuild(phase: Loop, inner: Loop, loads: list[Load], number: int, width: int, row: Symbol, block: Symbol) -> Loop:
    columns = _COLUMNS
    column_block = Symbol(f"tile{number}_cb", 0)
    fill_column, fill_row = Symbol(f"tile{number}_fc", 0, columns - 1), Symbol(f"tile{number}_fr", 0, width - 1)
    column = Symbol(f"tile{number}_c", 0, columns - 1)
    rows = _clip(width, phase.extent, block)
    used = _clip(columns, inner.extent, column_block)
    tiles = {load.name: f"tile{number}_{i}" for i, load in enumerate(loads)}
    locals_ = [Local(tiles[load.name], load.dtype, width * columns) for load in loads]
    fill_at = {phase.axis: block * width + fill_row, inner.axis: column_block * columns + fill_column}
    fills: list[Stmt] = []
    for load in loads:
        name = f"{tiles[load.name]}_v"
        read = Load(name, load.dtype, load.buffer, load.index.substitute(fill_at))  # type: ignore[arg-type]
        write = Store(tiles[load.name], fill_column * width + fill_row, name)
        fills.append(Loop(fill_column, used, "serial", (Loop(fill_row, rows, "simd", (read, write)),)))
    at = {phase.axis: block * width + row, inner.axis: column_block * columns + column}
    before = tuple([_moved(s, at) for s in phase.body[:-1]])
    body = tuple([
        replace(s, buffer=tiles[s.name], index=column * width + row) if type(s) is Load and s.name in tiles else _moved(s, at)
        for s in inner.body
    ])  # fmt: skip
    use = Loop(row, rows, "serial", (*before, Loop(column, used, "simd", body)))
    blocks = Loop(column_block, _blocks(inner.extent, columns), "serial", (*fills, use))
    grain = None if phase.grain is None else _at_least_one(phase.grain, width)
    return Loop(block, _blocks(phase.extent, width), "parallel", (*locals_, blocks), grain=grain)


def _moved(stmt: Stmt, at: dict[Symbol, Expr]) -> Stmt:
    kind = type(stmt)
    if kind is Load or kind is Store:
        return replace(stmt, index=as_expr(stmt.index).substitute(at))  # type: ignore[union-attr, arg-type]
    if kind is IndexValue:
        return replace(stmt, expr=stmt.expr.substitute(at))  # type: ignore[union-attr, arg-type]
    return stmt


def _blocks(extent: Expr, size: int) -> Expr:
    return (extent + (size - 1)) // size


def _clip(size: int, extent: Expr, block: Symbol) -> Expr:
    if type(extent) is Integer and extent.value % size == 0:
        return Integer(size)
    return Min(size, extent - block * size)


def _at_least_one(grain: Expr, width: int) -> Expr:
    return (grain + (width - 1)) // width
