"""Loops for groups with row reductions: parallel over rows; reductions over the rows themselves by partial results.

Late reductions (over the rows, or over everything) are first done per chunk of rows, in local arrays and scalars,
and stored in a
buffer of partial results; a last phase combines the chunks, always in the same order, so results do not depend on
the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr, Integer, Min, Symbol

from ..ir.kernel import Accumulate, Accumulator, Load, Local, Loop, Stmt, Store
from ..ir.loops import Size
from ..lower.views import unflatten_index
from .blocks import as_index, closure, combine, flatten_axes, grain, identity_of, in_order
from .emitter import Reduce
from .flat import Flat, Info, substitute
from .groups import axis_symbol
from .row_passes import RowPlan, plan_row, row_body
from .rows import flat_rows

__all__ = ["Partial", "row_nest"]

CHUNKS = 32
CHUNK_WORK = 1 << 15
BLOCK = 256
SYMBOLIC_ROWS = 16


@dataclass(frozen=True, slots=True)
class Partial:
    """A buffer of partial results that the kernel needs: parameter name, dtype, elements."""

    param: str
    dtype: DType
    size: Size


def row_nest(flat: Flat) -> tuple[tuple[Loop, ...], list[Partial]]:
    """The phases, and the buffers for partial results."""
    inner = [a for a in flat.axes if a in flat.inner]
    spare = len(flat.axes)
    rows = flat.rows
    if len(rows) > 1:
        flat, row = flat_rows(flat, rows, spare)
        spare += 1
    else:
        row = rows[0] if rows else axis_symbol(spare, 1)
    extent = flat.sizes[row] if rows else 1
    late = [i for i in flat.info.values() if type(i.stmt) is Reduce and i.stmt.axes != flat.inner]
    plan = plan_row(flat)
    work = _row_work(flat, plan, inner)
    if not late:
        body = tuple(row_body(plan, inner))
        return (Loop(row, as_index(extent), "parallel", body, grain=grain(work)),), []
    return _chunked(plan, inner, row, extent, late, work, spare + 1)


def _row_work(flat: Flat, plan: RowPlan, inner: list[Symbol]) -> Any:
    size = flat.extent(inner)
    cost = sum(flat.info[k].cost for sweep in plan.passes for k in sweep.computed)
    return size * max(1, cost) if type(size) is int else None


def _chunk_rows(extent: Size, work: Any) -> int:
    if type(extent) is not int or type(work) is not int:
        return SYMBOLIC_ROWS
    chunks = max(1, min(CHUNKS, extent * work // CHUNK_WORK, extent))
    return max(1, -(-extent // chunks))


def _chunked(
    plan: RowPlan, inner: list[Symbol], row: Symbol, extent: Size, late: list[Info], work: Any, spare: int
) -> tuple[tuple[Loop, ...], list[Partial]]:
    flat = plan.flat
    per_chunk = _chunk_rows(extent, work)
    chunks = (extent + per_chunk - 1) // per_chunk
    chunk, local_row = axis_symbol(spare, chunks), axis_symbol(spare + 1, per_chunk)
    size = flat.extent(inner)
    setup: list[Stmt] = []
    finish: list[Stmt] = []
    sums: list[Accumulator] = []
    partials: list[Partial] = []
    position = flatten_axes(inner, flat)
    for number, info in enumerate(late):
        stmt = info.stmt
        param = f"p{number}"
        vector = not (stmt.axes & flat.inner) and bool(flat.info[stmt.value].axes & flat.inner)
        partials.append(Partial(param, stmt.dtype, chunks * (size if vector else 1)))
        if vector:
            array = plan.late_arrays[stmt.name] = f"{stmt.name}_a"
            setup.append(Local(array, stmt.dtype, size))  # type: ignore[arg-type]
            start = Store(array, position, identity_of(stmt.kind, stmt.dtype))
            setup.append(_over(inner, flat, (start,)))
            name = f"{stmt.name}_f"
            copy = (Load(name, stmt.dtype, array, position), Store(param, chunk * size + position, name))
            finish.append(_over(inner, flat, copy))
        else:
            sums.append(Accumulator(f"{stmt.name}_c", stmt.dtype, stmt.kind))
            finish.append(Store(param, chunk, f"{stmt.name}_c"))
    moved = {row: chunk * per_chunk + local_row}
    body = tuple([_substitute_all(s, moved) for s in row_body(plan, inner)])
    count = Min(per_chunk, extent - chunk * per_chunk)
    rows = Loop(local_row, as_index(count), "serial", body, tuple(sums))
    first = Loop(chunk, as_index(chunks), "parallel", (*setup, rows, *finish), grain=Integer(1))
    last = _finals(flat, inner, late, chunks, size, spare + 2)
    return (first, *last), partials


def _over(axes: list[Symbol], flat: Flat, body: tuple[Stmt, ...]) -> Loop:
    loop = Loop(axes[-1], as_index(flat.sizes[axes[-1]]), "simd", body)
    for axis in reversed(axes[:-1]):
        loop = Loop(axis, as_index(flat.sizes[axis]), "serial", (loop,))
    return loop


def _substitute_all(stmt: Stmt, mapping: dict[Expr, Any]) -> Stmt:
    if type(stmt) is Loop:
        body = tuple([_substitute_all(s, mapping) for s in stmt.body])
        return Loop(
            stmt.axis, stmt.extent.substitute(mapping), stmt.kind, body, stmt.accumulators, stmt.step, stmt.grain
        )
    return substitute(stmt, mapping)


# -- the last phase --------------------------------------------------------------------------------------


def _finals(flat: Flat, inner: list[Symbol], late: list[Info], chunks: Size, size: Size, spare: int) -> list[Loop]:
    numbers = {info.key: n for n, info in enumerate(late)}
    stores = [i for i in flat.info.values() if type(i.stmt) is Store and i.late]
    scalar = [i for i in stores if not (i.axes & flat.inner)]
    vector = [i for i in stores if i.axes & flat.inner]
    phases: list[Loop] = []
    if scalar:
        needed = closure(flat, [i.key for i in scalar], lambda i: i.key in numbers)
        body = [_combine_scalar(flat.info[k].stmt, numbers[k], chunks, spare) for k in _used(flat, scalar, numbers)]
        body += [i.stmt for i in in_order(flat, needed)]
        phases.append(Loop(axis_symbol(spare + 1, 1), Integer(1), "parallel", tuple(body), grain=Integer(1)))
    if vector:
        phases.append(_vector_final(flat, inner, vector, numbers, chunks, size, spare + 2))
    return phases


def _used(flat: Flat, roots: list[Info], numbers: dict[Any, int]) -> list[Any]:
    """The late reductions that the roots need."""
    keys = closure(flat, [i.key for i in roots], lambda i: False)
    return [k for k in numbers if k in keys]


def _combine_scalar(stmt: Reduce, number: int, chunks: Size, spare: int) -> Loop:
    axis = axis_symbol(spare, chunks)
    name = f"{stmt.name}_p"
    body = (Load(name, stmt.dtype, f"p{number}", axis), Accumulate(stmt.name, name))
    return Loop(axis, as_index(chunks), "simd", body, (Accumulator(stmt.name, stmt.dtype, stmt.kind),))


def _vector_final(
    flat: Flat, inner: list[Symbol], roots: list[Info], numbers: dict[Any, int], chunks: Size, size: Size, spare: int
) -> Loop:
    """Blocks of the inner positions: add up the chunks in a local array, then compute what depends on it."""
    block, place, step = axis_symbol(spare, (size + BLOCK - 1) // BLOCK), axis_symbol(spare + 1, BLOCK), None
    step = axis_symbol(spare + 2, chunks)
    count = as_index(Min(BLOCK, size - block * BLOCK))
    position = block * BLOCK + place
    used = _used(flat, roots, numbers)
    body: list[Stmt] = []
    loads: list[Stmt] = []
    for key in used:
        stmt = flat.info[key].stmt
        if stmt.axes & flat.inner or not (flat.info[stmt.value].axes & flat.inner):
            body.append(_combine_scalar(stmt, numbers[key], chunks, spare + 3))
            continue
        array = f"{stmt.name}_b"
        old, new, part = f"{stmt.name}_o", f"{stmt.name}_n", f"{stmt.name}_p"
        body.append(Local(array, stmt.dtype, BLOCK))
        start = Store(array, place, identity_of(stmt.kind, stmt.dtype))
        body.append(Loop(place, count, "simd", (start,)))
        add: tuple[Stmt, ...] = (
            Load(part, stmt.dtype, f"p{numbers[key]}", step * size + position),
            Load(old, stmt.dtype, array, place),
            combine(stmt.kind, stmt.dtype, new, old, part),
            Store(array, place, new),
        )
        body.append(Loop(step, as_index(chunks), "serial", (Loop(place, count, "simd", add),)))
        loads.append(Load(stmt.name, stmt.dtype, array, place))
    needed = closure(flat, [i.key for i in roots], lambda i: i.key in numbers)
    places = unflatten_index(position, tuple([flat.sizes[axis] for axis in inner]))
    mapping: dict[Any, Any] = dict(zip(inner, places, strict=True))
    compute = [substitute(i.stmt, mapping) for i in in_order(flat, needed)]
    body.append(Loop(place, count, "simd", (*loads, *compute)))
    return Loop(block, as_index((size + BLOCK - 1) // BLOCK), "parallel", tuple(body), grain=Integer(1))
