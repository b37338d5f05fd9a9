"""Decide which values are stored in memory, which are computed again where they are read, and which nobody needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.loops import Size, Value
from ..lower.externs import ConvolutionPlan, GemmPlan
from .fuse import Fusion
from .groups import Group
from .joins import LATE_LIMIT
from .tables import kept_values
from .trace import base_of, numel, rows_of, same_size

__all__ = ["materialize"]

CHEAP_COST, CHEAP_LOADS = 4, 1
"""A value this cheap to compute from memory is never stored for the sake of another kernel."""

FEW, FEW_LOADS = 64, 3
"""So many times fewer elements, and so many such operands, cost next to nothing to load."""

SINGLE_COST = 48
"""A value with one reading kernel that could not share its loops is computed there when it costs no more than this."""

MODEST_COST = 16
"""One that costs no more may be computed for up to eight times as many elements (a piece of a concatenation)."""


def materialize(fusion: Fusion, again: Callable[[Fusion, Any, set[Value]], frozenset[Value]] | None = None) -> None:
    """Fill ``group.stored`` and ``group.sources``; drop members and groups that nothing needs.

    ``again(fusion, reader, kept)``: values that are computed again in a group or a scatter, whatever their number of
    readers (``tables.tables_of``).
    """
    items = [*fusion.groups, *fusion.steps] if again is not None else []
    kept = kept_values(fusion)
    tables = {item.number: again(fusion, item, kept) for item in items}  # type: ignore[misc]
    readers: dict[Value, dict[int, Any]] = {v: {} for v in fusion.required}
    live: set[Value] = set()
    for step in fusion.steps:
        for item in step.value.inputs:
            root = fusion.roots.get((step.value, item))
            if root is not None and root in fusion.where:
                readers.setdefault(root, {})[step.number] = step
    for group in fusion.groups:
        group.sources = {}
    inlined: dict[Value, None] = {}
    for value in reversed(fusion.lowered.values):
        home = fusion.where.get(value)
        if type(home) is not Group:
            continue
        outside = readers.get(value)
        stays = value in kept or value.order in fusion.apart
        if outside and not stays and _is_computed_again(fusion, value, outside, live, tables):
            for reader in outside.values():
                _forget(fusion, reader, value)
                for base in fusion.reads(value):
                    _read(fusion, reader, base, readers, live)
            inlined[value] = None
            outside = None
        if outside is not None:
            home.stored[value] = None
        if outside is not None or value in live:
            for base in fusion.reads(value):
                _read(fusion, home, base, readers, live)
            live.add(value)
    _sweep(fusion, live)


def _is_computed_again(
    fusion: Fusion, value: Value, readers: dict[int, Any], live: set[Value], tables: dict[int, frozenset[Value]]
) -> bool:
    if all(value in tables.get(number, ()) for number in readers):
        return True
    return value not in fusion.required and _recompute(fusion, value, readers, live)


def _forget(fusion: Fusion, reader: Any, value: Value) -> None:
    """``reader`` does not read ``value`` from memory."""
    reader.sources.pop(value, None)
    if type(reader) is not Group:
        for item in reader.value.inputs[1:]:
            if fusion.roots.get((reader.value, item)) is value:
                del fusion.roots[reader.value, item]


def _read(fusion: Fusion, reader: Any, item: Value, readers: dict[Value, dict[int, Any]], live: set[Value]) -> None:
    value = base_of(item)
    if value.lazy and value not in fusion.where:
        return
    home = fusion.where.get(value)
    if home is reader:
        live.add(value)
        return
    reader.sources[value] = None
    if home is not None:
        readers.setdefault(value, {})[reader.number] = reader


def _recompute(fusion: Fusion, value: Value, readers: dict[int, Any], live: set[Value]) -> bool:
    if value.kind not in ("point", "index") or not all(type(r) is Group for r in readers.values()):
        return False
    if value.kind == "point" and value.chain_cost <= CHEAP_COST and value.chain_loads <= CHEAP_LOADS:
        return True
    if value.kind == "point" and _is_near_memory(value):
        return True
    if len(readers) > 1 or value in live or value.chain_cost > SINGLE_COST:
        return False
    (reader,) = readers.values()
    if value.chain_cost <= MODEST_COST and _is_once_for_a_tile(fusion, value, reader):
        return True
    mine, theirs = numel(value.shape), numel(reader.sizes)
    if type(mine) is int and type(theirs) is int:
        times: Any = -(-theirs // mine) if mine else 1
    else:
        times = rows_of(theirs, mine)
    return type(times) is int and times <= (8 if value.chain_cost <= MODEST_COST else 2)


def _is_once_for_a_tile(fusion: Fusion, value: Value, reader: Group) -> bool:
    """Is it a vector (a scale of channels) that the epilogue of a product reads, on tiles?"""
    if fusion.late > LATE_LIMIT or reader.inner is not None or not _are_few(numel(value.shape), numel(reader.sizes)):
        return False
    return any(type(source.attrs) in (GemmPlan, ConvolutionPlan) for source in reader.sources)


def _is_near_memory(value: Value) -> bool:
    """Is an element a cheap function of one element in memory and of row values, which are few and stored?

    ``x - amax(x, 1) - log(sum)`` of a softmax that another kernel reads: storing ``x``'s row values beats storing as
    much as ``x``.
    """
    size = numel(value.shape)
    cost, loads, small = 0, set(), set()
    work = [value]
    while work:
        item = work.pop()
        cost += item.cost
        for operand in item.inputs:
            base = base_of(operand)
            count = numel(base.shape)
            if base.lazy:
                cost += base.chain_cost
            elif _are_few(count, size):
                small.add(base)
            elif base.kind == "point":
                work.append(base)
            elif base.kind in ("buffer", "extern") and same_size(count, size):
                loads.add(base)
            else:
                return False
        if cost > CHEAP_COST or len(loads) > CHEAP_LOADS or len(small) > FEW_LOADS:
            return False
    return True


def _are_few(count: Size, size: Size) -> bool:
    """Are ``size`` elements ``FEW`` times as many? A factor that is not known is a large one."""
    if type(count) is int and type(size) is int:
        return count * FEW <= size
    times = rows_of(size, count)
    return times is not None and (type(times) is not int or times >= FEW)


def _sweep(fusion: Fusion, live: set[Value]) -> None:
    """Forget dead members and groups, and rebuild the edges between what is left."""
    for group in fusion.groups:
        if group.alive:
            group.members = [m for m in group.members if m in live]
            group.alive = bool(group.stored)
        group.producers, group.consumers = {}, {}
        group.late = {v: None for v in group.late if v in live}
    fusion.groups = [g for g in fusion.groups if g.alive]
    for step in fusion.steps:
        step.producers, step.consumers = {}, {}
    for group in fusion.groups:
        for source in group.sources:
            home = fusion.where.get(source)
            if home is not None:
                home.consumers[group.number] = group
                group.producers[home.number] = home
    for step in fusion.steps:
        for source in (*fusion.roots_of(step.value), *step.sources):
            home = fusion.where.get(source)
            if home is not None:
                home.consumers[step.number] = step
                step.producers[home.number] = home
