"""Loops for groups with scans.

Where another axis walks memory element by element, it is the vector loop, and each lane carries its own value::

    for row: for scan: for lane (simd): carried[lane] = carried[lane] + x

Otherwise the scan's axis is cut into blocks: a vector loop computes what is scanned into a local array, a serial loop
runs through it, and a vector loop computes what comes behind.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Integer, Min, Symbol

from ..ir.kernel import Let, Load, Local, Loop, Stmt, Store
from .blocks import COMBINE, as_index, before_all, closure, grain, in_order, nest
from .emitter import Scan
from .flat import Flat, Info, analyse, substitute
from .groups import axis_symbol
from .rows import flat_rows

__all__ = ["scan_nest"]

BLOCK = 256
"""Elements of a row between two turns of the serial loop."""

LANES = 128
"""Lanes that carry values at once."""


def scan_nest(statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Any]) -> tuple[Loop, ...]:
    """The one phase of a group with scans (all over one axis); ``axes`` in the order of memory."""
    (axis,) = {s.axis for s in statements if type(s) is Scan}
    if any(type(n) is int and n == 0 for n in sizes.values()):
        return (Loop(axis_symbol(0, 1), Integer(0), "parallel", (), grain=Integer(1)),)
    cut = axes[-1]
    block = axis_symbol(len(axes), 1 if cut is axis else _blocks(sizes[cut], LANES))
    width = BLOCK if cut is axis else LANES
    size = sizes[cut]
    if type(size) is int and size <= width:
        block_count, place, moved = None, axis_symbol(len(axes) + 1, size), None
        statements = [substitute(s, {cut: place}) for s in statements]
        moved = {place: size}
    else:
        block_count = _blocks(size, width)
        block, place = axis_symbol(len(axes), block_count), axis_symbol(len(axes) + 1, width)
        statements = [substitute(s, {cut: block * width + place}) for s in statements]
        moved = {block: block_count, place: Min(width, size - block * width)}
    outer = [a for a in axes if a is not cut and a is not axis]
    kept = {a: s for a, s in sizes.items() if a is not cut} | moved
    order = [*outer, *([block] if block_count is not None else []), *([axis] if cut is not axis else []), place]
    flat = analyse(statements, order, kept, frozenset())
    rows = [a for a in order if a is not place and a is not axis and not (cut is axis and a is block)]
    if rows:
        flat, row = flat_rows(flat, rows, len(axes) + 2)
        extent = as_index(flat.sizes[row])
    else:
        row, extent = axis_symbol(len(axes) + 2, 1), Integer(1)
    if cut is axis:
        body = _in_blocks(flat, block if block_count is not None else None, place, width)
    else:
        body = _in_lanes(flat, axis, place, width)
    work = sum(i.cost for i in flat.info.values())
    count = flat.extent([a for a in flat.axes if a is not row])
    return (Loop(row, extent, "parallel", body, grain=grain(work * count if type(count) is int else None)),)


def _blocks(size: Any, width: int) -> Any:
    return (size + width - 1) // width


def _scans(flat: Flat) -> list[Info]:
    return [i for i in flat.info.values() if type(i.stmt) is Scan]


def _carried(scan: Scan) -> str:
    return f"{scan.name}_carried"


def _start(flat: Flat, place: Symbol | None, width: int) -> list[Stmt]:
    """Local arrays with the values that scans start from; one element without a ``place``."""
    body: list[Stmt] = []
    for info in _scans(flat):
        scan = info.stmt
        first = f"{scan.name}_first"
        body.append(Local(_carried(scan), scan.dtype, width if place is not None else 1))
        body.append(Let(first, scan.dtype, "constant", (before_all(scan.kind, scan.dtype),)))
        if place is None:
            body.append(Store(_carried(scan), Integer(0), first))
        else:
            body.append(Loop(place, as_index(flat.sizes[place]), "simd", (Store(_carried(scan), place, first),)))
    return body


def _step(scan: Scan, place: Any) -> tuple[Stmt, ...]:
    """Combine the carried value at ``place`` with the scan's operand; the result has the scan's name."""
    before, buffer = f"{scan.name}_before", _carried(scan)
    return (
        Load(before, scan.dtype, buffer, place),
        Let(scan.name, scan.dtype, COMBINE[scan.kind], (before, scan.value)),
        Store(buffer, place, scan.name),
    )


# -- lanes -----------------------------------------------------------------------------------------------


def _in_lanes(flat: Flat, axis: Symbol, place: Symbol, width: int) -> tuple[Stmt, ...]:
    infos: list[Info] = []
    for info in flat.info.values():
        if type(info.stmt) is Scan:
            everything = frozenset(flat.axes)
            infos += [Info(s, None, everything, 0, False, (), 1) for s in _step(info.stmt, place)]
        else:
            infos.append(info)
    deep = frozenset((axis, place))
    outside = [i.stmt for i in infos if not (i.axes & deep) and type(i.stmt) is not Store]
    inside = [i for i in infos if (i.axes & deep) or type(i.stmt) is Store]
    return (*outside, *_start(flat, place, width), *nest([axis, place], flat, inside))


# -- blocks ----------------------------------------------------------------------------------------------


def _in_blocks(flat: Flat, block: Symbol | None, place: Symbol, width: int) -> tuple[Stmt, ...]:
    scans = _scans(flat)
    fixed = {key for key, i in flat.info.items() if place not in i.axes and type(i.stmt) is not Store}
    body: list[Stmt] = []
    for level in sorted({i.level for i in scans}):
        now = [i for i in scans if i.level == level]
        body.append(_pass(flat, place, fixed, [i.stmt.value for i in now], _fill(now, place)))
        body.append(_turn(flat, place, now))
    stores = [key for key, i in flat.info.items() if type(i.stmt) is Store]
    body.append(_pass(flat, place, fixed, stores, []))
    arrays: list[Stmt] = [Local(f"{i.stmt.name}_{what}", i.stmt.dtype, width) for i in scans for what in ("in", "out")]
    head = [i.stmt for i in in_order(flat, fixed)]
    start = [*head, *arrays, *_start(flat, None, 1)]
    if block is None:
        return (*start, *body)
    return (*start, Loop(block, as_index(flat.sizes[block]), "serial", tuple(body)))


def _fill(scans: list[Info], place: Symbol) -> list[Stmt]:
    return [Store(f"{i.stmt.name}_in", place, i.stmt.value) for i in scans]


def _pass(flat: Flat, place: Symbol, fixed: set[Any], roots: list[Any], more: list[Stmt]) -> Stmt:
    """A vector loop that computes ``roots`` from what is known before the block, and from the scans' results."""
    found = closure(flat, roots, lambda i: i.key in fixed or type(i.stmt) is Scan)
    read = dict.fromkeys(n for key in found for n in flat.info[key].needs if _is_scan(flat, n))
    read |= dict.fromkeys(r for r in roots if _is_scan(flat, r))
    loads: list[Stmt] = [Load(n, flat.info[n].stmt.dtype, f"{n}_out", place) for n in read]
    body = (*loads, *[i.stmt for i in in_order(flat, found)], *more)
    return Loop(place, as_index(flat.sizes[place]), "simd", body)


def _is_scan(flat: Flat, name: Any) -> bool:
    return name in flat.info and type(flat.info[name].stmt) is Scan


def _turn(flat: Flat, place: Symbol, scans: list[Info]) -> Stmt:
    body: list[Stmt] = []
    for info in scans:
        scan = info.stmt
        value = f"{scan.name}_value"
        moved = Scan(scan.name, scan.dtype, scan.kind, value, scan.axis)
        body.append(Load(value, scan.dtype, f"{scan.name}_in", place))
        body += _step(moved, Integer(0))
        body.append(Store(f"{scan.name}_out", place, scan.name))
    return Loop(place, as_index(flat.sizes[place]), "serial", tuple(body))
