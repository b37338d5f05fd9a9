"""Small tables that a kernel computes again where it reads them, rather than to load them.

The places and weights of ``grid_sample`` have one element for each place of an image, and are read for each channel. A
machine that computes more than it moves has them sooner from the coordinates than from memory: what decides is all
that one kernel would load against all that it would compute, since the values of such a table share their parts.
"""

from __future__ import annotations

from typing import Any

from ..ir.loops import Value
from ..lower.externs import ConvolutionPlan, GemmPlan
from .groups import Group
from .trace import base_of, numel, rows_of

__all__ = ["tables_of"]

FEW = 8
"""A table has so many times fewer elements than the loops that read it."""

BYTE = 5
"""Operators that take as long as loading a byte from the cache, and the address of an element in bytes."""
ADDRESS = 2

MOST, CHEAP = 1000, 8
"""Work of an element that is computed again, at most, and of each operator: others (a sine) call functions."""


def tables_of(fusion: Any, reader: Any) -> frozenset[Value]:
    """The values that ``reader``, a group, had better compute than load: with what they are made of, down to memory."""
    if type(reader) is not Group or reader.scan is not None or not reader.sources:
        return frozenset()
    if any(type(source.attrs) in (GemmPlan, ConvolutionPlan) for source in reader.sources):
        return frozenset()  # what runs on the tiles of a product reads vectors
    size: Any = numel(reader.sizes)
    tables = [v for v in reader.sources if _is_computed(fusion, v) and _is_few(numel(v.shape), size)]
    found: dict[Value, None] = {}
    memory: dict[Value, None] = {}
    work, cost = list(tables), 0
    while work:
        value = work.pop()
        if value in found:
            continue
        found[value] = None
        cost += value.cost
        if cost > MOST or value.cost > CHEAP:
            return frozenset()
        for item in value.inputs:
            base = base_of(item)
            if base.lazy:
                cost += base.chain_cost
            elif _is_computed(fusion, base) and _is_few(numel(base.shape), size):
                work.append(base)
            else:
                memory[base] = None
    loads = sum(v.dtype.itemsize + ADDRESS for v in memory if v not in reader.sources)
    saved = sum(v.dtype.itemsize + ADDRESS for v in tables)
    return frozenset(found) if cost + BYTE * loads <= BYTE * saved else frozenset()


def _is_computed(fusion: Any, value: Value) -> bool:
    """By a kernel, element by element."""
    return value.kind == "point" and type(fusion.where.get(value)) is Group and value not in fusion.required


def _is_few(count: Any, size: Any) -> bool:
    if type(count) is int and type(size) is int:
        return count * FEW <= size
    times = rows_of(size, count)
    return times is not None and (type(times) is not int or times >= FEW)
