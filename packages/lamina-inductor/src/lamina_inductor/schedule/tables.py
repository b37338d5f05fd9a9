"""Small tables that a kernel computes again where it reads them, rather than to load them.

The places and weights of ``grid_sample`` have one element for each place of an image, and are read for each channel. A
machine that computes more than it moves has them sooner from the coordinates than from memory: what decides is all
that one kernel would load against all that it would compute, since the values of such a table share their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.loops import Value
from ..lower.externs import ConvolutionPlan, GemmPlan
from ..lower.scatters import ScatterPlan
from .groups import Group
from .trace import base_of, numel, rows_of, same_size

__all__ = ["kept_values", "tables_of"]

FEW = 8
"""A table has so many times fewer elements than the loops that read it."""

BYTE = 10
"""Operators that take as long as loading a byte from the cache (some of them are done once for several elements: see
``tiled_nest``), and the address of an element in bytes."""
ADDRESS = 2

MOST, CHEAP = 1000, 8
"""Work of an element that is computed again, at most, and of each operator: others (a sine) call functions."""


def tables_of(fusion: Any, reader: Any, kept: set[Value]) -> frozenset[Value]:
    """The values that ``reader``, a group or a scatter, had better compute than load: with what they are made of, down
    to memory. ``kept``: see ``kept_values``."""
    if type(reader) is Group:
        if reader.scan is not None or any(type(s.attrs) in (GemmPlan, ConvolutionPlan) for s in reader.sources):
            return frozenset()  # what runs on the tiles of a product reads vectors
        read, size = list(reader.sources), numel(reader.sizes)
    elif type(reader.value.attrs) is ScatterPlan:
        updates = reader.value.inputs[1]
        read, size = [base_of(root) for root in fusion.roots_of(reader.value)], numel(updates.shape)
    else:
        return frozenset()
    whole = type(reader) is not Group

    def computed(value: Value) -> bool:
        point = value.kind == "point" and type(fusion.where.get(value)) is Group and value not in kept
        return point and (_is_few(numel(value.shape), size) or (whole and same_size(numel(value.shape), size)))

    tables = [v for v in dict.fromkeys(read) if computed(v)]
    closure = _closure(tables, computed)
    if closure is None:
        return frozenset()
    found, memory, cost = closure
    loads = sum(_bytes(v, size) for v in memory if v not in read)
    saved = sum(_bytes(v, size) * (1 if _is_few(numel(v.shape), size) else 2) for v in tables)  # stored, too
    return frozenset(found) if cost + BYTE * loads <= BYTE * saved else frozenset()


def kept_values(fusion: Any) -> set[Value]:
    """What must lie in memory, whatever its readers are: results, and what steps read that are no scatters."""
    found = {v for v in fusion.lowered.outputs if type(v) is Value} | fusion.written()
    for (step, item), root in fusion.roots.items():
        if type(step.attrs) is not ScatterPlan or item is step.inputs[0]:
            found.add(root)
    return found


def _closure(tables: list[Value], computed: Callable[[Value], bool]) -> tuple[set[Value], set[Value], int] | None:
    """(what is computed for ``tables``, what is loaded for that, work of an element); None: it is much."""
    found: set[Value] = set()
    memory: set[Value] = set()
    work, cost = list(tables), 0
    while work:
        value = work.pop()
        if value in found:
            continue
        found.add(value)
        cost += value.cost
        if cost > MOST or value.cost > CHEAP:
            return None
        for item in value.inputs:
            base = base_of(item)
            if base.lazy:
                cost += base.chain_cost
            elif computed(base):
                work.append(base)
            else:
                memory.add(base)
    return found, memory, cost


def _bytes(value: Value, size: Any) -> int:
    """Moved for an element, in units of what a cache gives: memory takes twice as long."""
    each = value.dtype.itemsize + ADDRESS
    return each if _is_few(numel(value.shape), size) else 2 * each


def _is_few(count: Any, size: Any) -> bool:
    if type(count) is int and type(size) is int:
        return count * FEW <= size
    times = rows_of(size, count)
    return times is not None and (type(times) is not int or times >= FEW)
