"""The body for one row: passes over the inner axes, scalars between them.

A pass computes what its reductions and stores need. Work of an earlier pass is loaded from memory again when that is
cheap, and kept in a local array when it is dear (softmax keeps its exponentials).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.kernel import Accumulate, Accumulator, Let, Load, Local, Loop, Stmt, Store
from .blocks import as_index, closure, combine, dtype_of, feed, flatten_axes, in_order
from .emitter import Reduce
from .flat import Flat, Info

__all__ = ["KEEP_LIMIT", "RowPlan", "plan_row", "row_body"]

KEEP_LIMIT = 1 << 14
"""Elements of a row that may be kept in a local array."""

DEAR_COST, DEAR_LOADS = 10, 4
"""Work and loads from which a value is kept rather than computed again."""


@dataclass
class Pass:
    """One sweep over the inner axes: its roots, what it computes, what it loads from local arrays."""

    roots: list[Info]
    computed: set[Any] = field(default_factory=set)
    loaded: set[Any] = field(default_factory=set)


@dataclass
class RowPlan:
    """The passes of a row, by level, and the values kept in local arrays."""

    flat: Flat
    passes: list[Pass]
    kept: dict[Any, str] = field(default_factory=dict)
    late_arrays: dict[str, str] = field(default_factory=dict)


def plan_row(flat: Flat) -> RowPlan:
    """Sort the statements into passes."""
    main = [i for i in flat.info.values() if not i.late or (type(i.stmt) is Reduce and _is_late(flat, i))]
    levels = 1 + max([i.level for i in main], default=0)
    plan = RowPlan(flat, [Pass([]) for _ in range(levels)])
    for info in main:
        if type(info.stmt) is Reduce:
            source = flat.info[info.stmt.value]
            if not _is_late(flat, info):
                plan.passes[info.level - 1].roots.append(info)
            elif _is_full(flat, source, info):
                plan.passes[info.level].roots.append(info)
        elif type(info.stmt) is Store and (info.axes & flat.inner):
            plan.passes[info.level].roots.append(info)
    first: dict[Any, int] = {}
    for number, sweep in enumerate(plan.passes):
        _collect(plan, sweep, number, first)
    return plan


def _is_late(flat: Flat, info: Info) -> bool:
    return type(info.stmt) is Reduce and info.stmt.axes != flat.inner and not flat.info[info.stmt.value].late


def _is_full(flat: Flat, source: Info, reduce: Info) -> bool:
    """Does a late reduction take one value per inner element (not one per row)?"""
    return bool(source.axes & flat.inner) or bool(reduce.stmt.axes & flat.inner)


def _collect(plan: RowPlan, sweep: Pass, number: int, first: dict[Any, int]) -> None:
    flat = plan.flat
    work = [r.key for r in sweep.roots]
    while work:
        key = work.pop()
        info = flat.info[key]
        is_root = type(info.stmt) in (Reduce, Store)
        if key in sweep.computed or key in sweep.loaded or (not is_root and not (info.axes & flat.inner)):
            continue
        if first.get(key, number) < number and _worth_keeping(flat, info):
            sweep.loaded.add(key)
            plan.kept.setdefault(key, f"keep{len(plan.kept)}")
            continue
        first.setdefault(key, number)
        sweep.computed.add(key)
        work.extend(n for n in info.needs if type(flat.info[n].stmt) is not Reduce or (is_root and n in flat.info))


def _worth_keeping(flat: Flat, info: Info) -> bool:
    extent = flat.extent([a for a in flat.axes if a in flat.inner])
    if type(info.stmt) is not Let or type(extent) is not int or extent > KEEP_LIMIT:
        return False
    keys = closure(flat, [info.key], lambda i: not (i.axes & flat.inner))
    found = [flat.info[k] for k in keys]
    loads = sum(type(i.stmt) is Load for i in found)
    return sum(i.cost for i in found) >= DEAR_COST or loads >= DEAR_LOADS


# -- statements ------------------------------------------------------------------------------------------


def row_body(plan: RowPlan, inner: list[Symbol]) -> list[Stmt]:
    """Statements for one row."""
    flat = plan.flat
    extent = flat.extent(inner)
    body: list[Stmt] = []
    for key, name in plan.kept.items():
        body.append(Local(name, dtype_of(flat.info[key].stmt), extent))  # type: ignore[arg-type]
    for level, sweep in enumerate(plan.passes):
        body.extend(_scalars(plan, level))
        if sweep.roots:
            body.extend(_sweep(plan, sweep, inner))
    return body


def _scalars(plan: RowPlan, level: int) -> list[Stmt]:
    """Row values that become computable before this pass."""
    flat = plan.flat
    result: list[Stmt] = []
    for info in flat.info.values():
        kind = type(info.stmt)
        if info.level != level or (info.axes & flat.inner):
            continue
        if kind is Reduce:
            if _is_late(flat, info) and not _is_full(flat, flat.info[info.stmt.value], info):
                result.append(feed(info.stmt, f"{info.stmt.name}_c"))
        elif not info.late:
            result.append(info.stmt)
    return result


def _sweep(plan: RowPlan, sweep: Pass, inner: list[Symbol]) -> list[Stmt]:
    flat = plan.flat
    position = flatten_axes(inner, flat)
    body: list[tuple[frozenset[Symbol], Stmt]] = []
    sums: list[tuple[str, Reduce]] = []
    for info in in_order(flat, sweep.computed | sweep.loaded):
        stmt = info.stmt
        if info.key in sweep.loaded:
            body.append((frozenset(inner), Load(info.key, dtype_of(stmt), plan.kept[info.key], position)))
        elif type(stmt) is not Reduce:
            body.append((info.axes, stmt))
            if info.key in plan.kept:
                body.append((frozenset(inner), Store(plan.kept[info.key], position, info.key)))
        elif not _is_late(flat, info):
            sums.append((stmt.name, stmt))
        elif stmt.axes & flat.inner:
            sums.append((f"{stmt.name}_r", stmt))
        else:
            body.extend((frozenset(inner), s) for s in _add_to_array(plan, stmt, position))
    result = list(_loops(inner, flat, body, sums, 0))
    for name, stmt in sums:
        if name != stmt.name:
            result.append(Accumulate(f"{stmt.name}_c", name))
    return result


def _add_to_array(plan: RowPlan, stmt: Reduce, position: Any) -> list[Stmt]:
    array = plan.late_arrays[stmt.name]
    old, new = f"{stmt.name}_o", f"{stmt.name}_n"
    return [
        Load(old, stmt.dtype, array, position),
        combine(stmt.kind, stmt.dtype, new, old, stmt.value),  # type: ignore[arg-type]
        Store(array, position, new),
    ]


def _loops(
    axes: list[Symbol],
    flat: Flat,
    body: list[tuple[frozenset[Symbol], Stmt]],
    sums: list[tuple[str, Reduce]],
    depth: int,
) -> tuple[Stmt, ...]:
    """Nested loops over ``axes``; each level has accumulators of its own, fed by the level below.

    Those that find a position have one for all levels: the value found is no result that a level could hand on.
    """
    axis, rest = axes[0], axes[1:]
    suffix = f"_{depth}" if depth else ""
    deeper = frozenset(rest)
    places = [(name, r) for name, r in sums if r.kind in ("argmax", "argmin")]
    if depth or rest:
        sums = [(name, r) for name, r in sums if r.kind not in ("argmax", "argmin")]
    if not rest:
        inside: list[Stmt] = [s for _, s in body]
        inside += [Accumulate(f"{name}{suffix}", r.value, r.index) for name, r in sums]
        if depth:
            inside += [Accumulate(name, r.value, r.index) for name, r in places]
    else:
        inside = [s for varies, s in body if not (varies & deeper)]
        below = [(v, s) for v, s in body if v & deeper]
        inside += _loops(rest, flat, below, [*sums, *places], depth + 1)
        inside += [Accumulate(f"{name}{suffix}", f"{name}_{depth + 1}") for name, _ in sums]
    own = [*sums, *places] if rest and not depth else sums
    accumulators = tuple([Accumulator(f"{name}{suffix}", r.dtype, r.kind) for name, r in own])
    kind = "serial" if rest or (depth and places) else "simd"
    return (Loop(axis, as_index(flat.sizes[axis]), kind, tuple(inside), accumulators),)
