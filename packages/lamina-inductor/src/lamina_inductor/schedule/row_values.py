"""Join a kernel that only makes values of rows to the one kernel that reads them, over the same elements.

After ``materialize`` a norm whose result another kernel reads at several places (a rotation of halves) is a kernel that
stores a number for each row, and one that computes the rest from it and from the same input. On a grid a program has
the row at hand: one kernel reads the input from memory once, however often its elements are wanted.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..ir.loops import Index, Size, Value
from ..lower.externs import dense_strides
from .emitter import Emitter, Unfusable
from .fuse import Fusion
from .groups import Group
from .trace import numel, same_size

__all__ = ["merge_row_values"]

LONGEST = 8192
"""Elements of the longest row: it must stay in a tile, or at least in the nearest cache."""


def merge_row_values(fusion: Fusion) -> None:
    """Do so wherever it is possible."""
    for producer in list(fusion.groups):
        consumer = _only_reader(producer)
        if consumer is not None and _fits(producer, consumer):
            merged = _merged(producer, consumer)
            if merged is not None and _can_be_written(*merged):
                _replace(fusion, producer, consumer, *merged)


def _only_reader(producer: Group) -> Group | None:
    if not producer.inner or producer.late or producer.scan is not None or len(producer.consumers) != 1:
        return None
    (consumer,) = producer.consumers.values()
    if type(consumer) is not Group or consumer.inner or consumer.late or consumer.scan is not None:
        return None
    return consumer if all(producer.is_row_value(v) for v in producer.stored) else None


def _fits(producer: Group, consumer: Group) -> bool:
    """The same elements, of a source that both read."""
    if len(producer.axes) != len(consumer.axes) or producer.axes[-1] not in producer.inner:  # type: ignore[operator]
        return False
    if not all(same_size(a, b) for a, b in zip(producer.sizes, consumer.sizes, strict=True)):
        return False
    row: Any = 1
    for axis, size in zip(producer.axes, producer.sizes, strict=True):
        row = row * size if axis in producer.inner else row  # type: ignore[operator]
    whole = numel(producer.sizes)
    shared = [s for s in producer.sources if s in consumer.sources and same_size(numel(s.shape), whole)]
    return type(row) is int and row <= LONGEST and bool(shared)


def _merged(producer: Group, consumer: Group) -> tuple[Group, dict[Value, Index]] | None:
    """The consumer with the producer's members, and what the producer's reductions run over in its loops."""
    mapping: dict[Expr, Size] = dict(zip(producer.axes, consumer.axes, strict=True))
    if any(m in consumer.index for m in producer.members):
        return None
    index = {m: _moved(producer.index[m], mapping) for m in producer.members}
    full = {m: _moved(m.full, mapping) for m in producer.members if m.kind == "reduce"}
    result = Group(consumer.number, consumer.axes, consumer.sizes, consumer.level)
    result.inner = frozenset(mapping[a] for a in producer.inner)  # type: ignore[misc, union-attr]
    result.index = index | consumer.index
    result.members = sorted([*producer.members, *consumer.members], key=lambda v: v.order)
    result.stored = dict.fromkeys(consumer.stored)
    result.sources = {s: None for s in (*producer.sources, *consumer.sources) if s not in result.index}
    return result, full


def _moved(index: Any, mapping: dict[Expr, Size]) -> Index:
    found = [
        mapping.get(i, i) if type(i) is Symbol else i.substitute(mapping) if isinstance(i, Expr) else i for i in index
    ]
    return tuple(found)


def _can_be_written(group: Group, full: dict[Value, Index]) -> bool:
    """Does every value of a row stand where its row's loops have it?"""

    def where(value: Value) -> tuple[str, tuple[Size, ...]] | None:
        return (f"m{value.order}", dense_strides(value)) if value in group.sources else None

    def canonical(value: Value) -> Any:
        if value not in full:
            return None
        axes = [full[value][d].free_symbols for d in value.axes if isinstance(full[value][d], Expr)]  # type: ignore[union-attr]
        return group.index[value], full[value], frozenset().union(*axes)

    emitter = Emitter(where, canonical)
    try:
        for value in group.members:
            if value in group.stored:
                emitter.read(value, group.index[value])
    except Unfusable:
        return False
    return True


def _replace(fusion: Fusion, producer: Group, consumer: Group, merged: Group, full: dict[Value, Index]) -> None:
    for value, index in full.items():
        value.full = index  # type: ignore[attr-defined]
    for value in producer.stored:
        if value in fusion.required:
            merged.stored[value] = None
    for value in producer.members:
        fusion.where[value] = consumer
    for field in ("inner", "index", "members", "stored", "sources"):
        setattr(consumer, field, getattr(merged, field))
    consumer.level = max(consumer.level, producer.level)
    producer.alive = False
    fusion.groups.remove(producer)
    del consumer.producers[producer.number]
    for other in producer.producers.values():
        del other.consumers[producer.number]
        other.consumers[consumer.number] = consumer
        consumer.producers[other.number] = other
    fusion.explain(
        producer.members[0].name, consumer.members[-1].name, True, "values of rows are made where they are read"
    )
