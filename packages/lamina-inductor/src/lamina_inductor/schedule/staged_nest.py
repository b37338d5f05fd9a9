"""Loops where elements wait for what is reduced, and a row is longer than a tile: phases over blocks of rows, each
followed by one that combines the blocks, and at last one over all elements, if any wait.

    x[R, C] - x.mean(1):   parallel i2 < R:  blocks i4 < K:  simd i5 < B, r2_p = sum: v1 = x[..];  r2_p <- v1
                                                             p0[i4*R + i2] = r2_p
                           parallel i2 < R:  simd i6 < K, r2 = sum: r2 <- p0[i6*R + i2];  v3 = div(r2, C);  q0[i2] = v3
                           parallel i2 < R:  v3 = q0[i2]
                                             blocks i4 < K:  simd i5 < B: v1 = x[..];  v4 = sub(v1, v3);  out[..] = v4
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.kernel import BindIndex, Load, Loop, Stmt, Store
from .blocks import as_index, closure, dtype_of, in_order
from .emitter import Reduce
from .flat import Flat
from .row_blocks import RowBlocks, block_loops, combine_blocks, cut_rows, of_row
from .row_nest import Partial

__all__ = ["BLOCK_WIDTH", "column_blocks", "staged_nest"]

BLOCK_WIDTH = 1024
"""Columns side by side that a program takes of a block: each warp has whole lines of memory, and each thread the same
columns of all rows, which it adds up alone."""

FEWEST_ROWS, MOST_ROWS = 32, 512
"""Of a block of columns."""

MOST_BLOCKS, MANY_WARPS = 1024, 2048
"""Most blocks of a column; warps that are enough: some sixteen for each multiprocessor."""

AREA = 4096
"""Elements of a block of columns where nothing is reduced."""


def column_blocks(kept: int, reduced: Any) -> tuple[int, int]:
    """Rows of a block of columns, and of one in the last phase."""
    block = MOST_ROWS
    last = max(4, AREA // min(1 << max(0, kept - 1).bit_length(), BLOCK_WIDTH))
    if type(reduced) is not int:
        return block, last
    while block > FEWEST_ROWS and -(-kept // 256) * -(-reduced // block) < MANY_WARPS:
        block //= 2
    fewest = -(-reduced // max(block, -(-reduced // MOST_BLOCKS)))
    count = next((n for n in range(fewest, 2 * fewest) if reduced % n == 0), fewest)
    return -(-reduced // count), last


def staged_nest(
    flat: Flat, x: Symbol, r: Symbol, block: int, last: int, spare: int
) -> tuple[tuple[Loop, ...], list[Partial]] | None:
    """(phases, partial buffers); ``block``: elements of a row that one program takes, in the ``last`` phase another
    number. None: the statements are not of this form."""
    rows = cut_rows(flat, x, r, block, spare)
    elements = rows if rows is not None and rows.starts else cut_rows(flat, x, r, last, spare + 3)
    if rows is None or elements is None:
        return None
    handed = _handed_on(rows)
    if any(type(rows.flat.info[key].stmt) is BindIndex for key in handed):
        return None
    params = {key: f"q{number}" for number, key in enumerate(handed)}
    phases: list[Loop] = []
    for stage in range(1 + rows.last):
        phases += [_over_rows(rows, stage, params)] if stage else []
        cut = rows if stage < rows.last else elements
        blocks = block_loops(cut, stage)
        phases += [_over_blocks(cut, stage, blocks, params)] if blocks else []
    held = [Partial(p, dtype_of(rows.flat.info[key].stmt), rows.kept) for key, p in params.items()]
    return tuple(phases), [*rows.partials, *held]


def _handed_on(rows: RowBlocks) -> list[Any]:
    """Values of the row, reductions among them, that a later phase than the one that makes them reads."""
    found: dict[Any, None] = {}
    roots = [key for key, info in rows.flat.info.items() if type(info.stmt) in (Store, Reduce)]
    used = closure(rows.flat, roots, lambda i: i.key in rows.beside)  # those are not made of what they stand beside
    for info in in_order(rows.flat, used):
        stage, over_blocks = rows.stages[info.key], type(info.stmt) is Reduce or not of_row(rows.flat, info)
        for need in info.needs:
            made = rows.stages[need] if _is_row_value(rows, need) else 0
            if made and (over_blocks or made < stage):
                found[need] = None
    return list(found)


def _is_row_value(rows: RowBlocks, key: Any) -> bool:
    info = rows.flat.info[key]
    return type(info.stmt) is Reduce or of_row(rows.flat, info)


def _own_values(rows: RowBlocks, roots: list[Any], params: dict[Any, str], made: set[Any]) -> list[Stmt]:
    """What a phase needs of its row beside what it makes itself (``made``): loads of what was handed on to it, then
    what waits for nothing."""
    keys = closure(rows.flat, roots, lambda i: i.key in made or i.key in params)
    values = [i.stmt for i in in_order(rows.flat, keys) if of_row(rows.flat, i)]
    return [*_loads(rows, keys, roots, params, made), *values]


def _loads(rows: RowBlocks, keys: set[Any], roots: list[Any], params: dict[Any, str], made: set[Any]) -> list[Stmt]:
    """Loads of the values that were handed on to the statements of these keys."""
    info = rows.flat.info
    wanted = {need for key in keys for need in info[key].needs}.union(roots) - made
    return [Load(k, dtype_of(info[k].stmt), p, _place(rows)) for k, p in params.items() if k in wanted]


def _place(rows: RowBlocks) -> Any:
    return as_index(rows.x if rows.x in rows.flat.sizes else 0)


def _over_blocks(rows: RowBlocks, stage: int, inside: list[Stmt], params: dict[Any, str]) -> Loop:
    flat = rows.flat
    reduces = [s for s in rows.reduces.values() if rows.stages[s.name] == stage + 1]
    stores = [i for i in flat.info.values() if type(i.stmt) is Store and i.axes & flat.inner]
    roots: list[Any] = [s.value for s in reduces if s.name not in rows.beside]
    roots += [n for i in stores if rows.stages[i.key] == stage for n in i.needs]
    blocks = Loop(rows.member, as_index(rows.members), "blocks", tuple(inside))
    return Loop(rows.x, as_index(rows.kept), "parallel", (*_own_values(rows, roots, params, set()), blocks))


def _over_rows(rows: RowBlocks, stage: int, params: dict[Any, str]) -> Loop:
    own = [*(rows.values(0) if stage == 1 else []), *rows.values(stage)]
    before = [i for i in own if rows.stages[i.key] == 0 and type(i.stmt) is Store]
    after = [i for i in own if rows.stages[i.key] == stage]
    made = {i.key for i in after} | {n for n in rows.reduces if rows.stages[n] == stage}
    roots = [need for i in (*before, *after) for need in i.needs]
    body = [*_own_values(rows, roots, params, made), *[i.stmt for i in before], *combine_blocks(rows, stage)]
    body += [i.stmt for i in after]
    body += [Store(param, _place(rows), key) for key, param in params.items() if key in made]
    return Loop(rows.x, as_index(rows.kept), "parallel", tuple(body))
