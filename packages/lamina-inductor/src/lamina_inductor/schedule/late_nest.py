"""Loops for a grid where a kernel of rows also reduces over them (a norm's weight's gradient beside its input's).

A program takes a chunk of rows, one after the other, and keeps the sums over them in local arrays; the last phases add
up what the programs have, in order.

    parallel c < chunks
      local a: [C];  simd r < C: a[r] = 0
      serial k < K (and not past the last row):  the passes over row c*K + k, which add to a[r]
      simd r < C: p[c*C + r] = a[r]
    parallel r < C
      simd c < chunks, s = sum: s <- p[c*C + r];  out[r] = s
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import Expr, Integer, Max, Min, Symbol

from ..ir.kernel import Accumulate, Accumulator, Load, Local, Loop, Stmt, Store
from .blocks import as_index, closure, combine, identity_of, in_order
from .emitter import Reduce
from .flat import Flat, Info, substitute
from .groups import axis_symbol
from .row_nest import Partial

__all__ = ["CHUNKS", "late_nest", "late_reductions"]

CHUNKS = 512
"""Programs that rows are shared out among: some for each multiprocessor."""


def late_reductions(flat: Flat) -> list[Info]:
    """The reductions over the rows."""
    return [i for i in flat.info.values() if type(i.stmt) is Reduce and i.stmt.axes != flat.inner]


def late_nest(
    flat: Flat, x: Symbol, r: Symbol, passes: Callable[..., list[Stmt]], spare: int
) -> tuple[tuple[Loop, ...], list[Partial]]:
    """(phases, partial buffers). ``passes(flat, r, late)``: the loops over a row; ``late(level)`` gives statements that
    are run for each element when that many reductions of the row are known."""
    late = late_reductions(flat)
    rows, size = flat.sizes[x], flat.sizes[r]
    count, chunks = _shares(rows)
    chunk, local_row = axis_symbol(spare, chunks), axis_symbol(spare + 1, count)
    setup: list[Stmt] = []
    finish: list[Stmt] = []
    partials: list[Partial] = []
    for number, info in enumerate(late):
        stmt, vector = info.stmt, _is_vector(flat, info)
        array, param, name = f"{stmt.name}_a", f"p{number}", f"{stmt.name}_f"
        length: Any = size if vector else 1
        place: Any = r if vector else Integer(0)
        setup.append(Local(array, stmt.dtype, length))
        start: Stmt = Store(array, place, identity_of(stmt.kind, stmt.dtype))
        setup.append(Loop(r, as_index(size), "simd", (start,)) if vector else start)
        copy: tuple[Stmt, ...] = (Load(name, stmt.dtype, array, place), Store(param, chunk * length + place, name))
        finish.extend((Loop(r, as_index(size), "simd", copy),) if vector else copy)
        partials.append(Partial(param, stmt.dtype, chunks * length))
    moved: dict[Expr, Any] = {x: chunk * count + local_row}
    body = tuple([_moved(s, moved) for s in passes(flat, r, lambda level, inside: _adds(flat, late, level, inside, r))])
    most = count
    if type(rows) is not int:
        most = Max(Min(count, rows - chunk * count), 0)
    elif rows % count:
        most = Min(count, rows - chunk * count)
    serial = Loop(local_row, as_index(most), "serial", body)
    first = Loop(chunk, as_index(chunks), "parallel", (*setup, serial, *finish))
    return (first, *_finals(flat, r, late, chunks, spare + 2)), partials


def _shares(rows: Any) -> tuple[Any, Any]:
    """(rows of a chunk, chunks); of an unknown number of rows some chunks may have none."""
    if type(rows) is not int:
        return (rows + (CHUNKS - 1)) // CHUNKS, CHUNKS
    count = 1 << max(0, -(-rows // CHUNKS) - 1).bit_length()
    return count, -(-rows // count)


def _is_vector(flat: Flat, info: Info) -> bool:
    return bool(flat.info[info.stmt.value].axes & flat.inner)


def _adds(flat: Flat, late: list[Info], level: int, inside: bool, r: Symbol) -> list[Stmt]:
    """What the sums over rows take from a row: for each element (``inside``), or from values of the row."""
    result: list[Stmt] = []
    for info in late:
        if info.level != level or _is_vector(flat, info) is not inside:
            continue
        stmt, place = info.stmt, r if inside else Integer(0)
        old, new = f"{stmt.name}_o", f"{stmt.name}_n"
        result.append(Load(old, stmt.dtype, f"{stmt.name}_a", place))
        result.append(combine(stmt.kind, stmt.dtype, new, old, stmt.value))
        result.append(Store(f"{stmt.name}_a", place, new))
    return result


def _moved(stmt: Stmt, mapping: dict[Expr, Any]) -> Stmt:
    if type(stmt) is Loop:
        body = tuple([_moved(s, mapping) for s in stmt.body])
        return Loop(stmt.axis, stmt.extent.substitute(mapping), stmt.kind, body, stmt.accumulators)
    return substitute(stmt, mapping)


def _finals(flat: Flat, r: Symbol, late: list[Info], chunks: Any, spare: int) -> list[Loop]:
    """A phase over the elements of a row, and one for single numbers."""
    phases: list[Loop] = []
    stores = [i for i in flat.info.values() if type(i.stmt) is Store and i.late]
    keys = {info.key: number for number, info in enumerate(late)}
    for vector in (True, False):
        roots = [i for i in stores if bool(i.axes & flat.inner) is vector]
        if not roots:
            continue
        needed = closure(flat, [i.key for i in roots], lambda i: i.key in keys)
        used = [k for k in keys if k in closure(flat, [i.key for i in roots], lambda i: False)]
        body: list[Stmt] = []
        for number, key in enumerate(used):
            info = flat.info[key]
            again = axis_symbol(spare + number, chunks)
            whole = _is_vector(flat, info)
            place = again * flat.sizes[r] + r if whole else again
            name, stmt = f"{info.stmt.name}_p", info.stmt
            read = Load(name, stmt.dtype, f"p{keys[key]}", as_index(place))
            sums = (Accumulator(stmt.name, stmt.dtype, stmt.kind),)
            body.append(Loop(again, as_index(chunks), "simd", (read, Accumulate(stmt.name, name)), sums))
        loads, after = _loads_apart([i.stmt for i in in_order(flat, needed)])
        axis = r if vector else axis_symbol(spare + len(used), 1)
        extent = as_index(flat.sizes[r] if vector else 1)
        phases.append(Loop(axis, extent, "parallel", (*loads, *_joined(body), *after)))
    return phases


def _loads_apart(statements: list[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
    """What is loaded, which is under way while the chunks are added up, and the rest with its stores last: each store
    would make the loads behind it wait. ([], all) where an element is read after it was written."""
    stored: set[str] = set()
    for stmt in statements:
        if type(stmt) is Load and stmt.buffer in stored:
            return [], statements
        if type(stmt) is Store:
            stored.add(stmt.buffer)
    known = {getattr(s, "name", None) for s in statements}
    loads = [s for s in statements if type(s) is Load and s.mask is None and not _named(s) & known]
    rest = [s for s in statements if s not in loads]
    return loads, [s for s in rest if type(s) is not Store] + [s for s in rest if type(s) is Store]


def _named(stmt: Load) -> set[str]:
    return {s.name for s in stmt.index.free_symbols} if isinstance(stmt.index, Expr) else set()


def _joined(loops: list[Any]) -> list[Stmt]:
    """Loops over the same chunks as one."""
    if not loops:
        return []
    first = loops[0]
    body: list[Stmt] = []
    for loop in loops:
        for stmt in loop.body:
            body.append(substitute(stmt, {loop.axis: first.axis}))
    sums = tuple([acc for loop in loops for acc in loop.accumulators])
    return [Loop(first.axis, first.extent, "simd", tuple(body), sums)]
