"""Merge the group that makes an operand into the group that reads it."""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..ir.loops import Index, Size, Value
from .groups import Group, free
from .joins import LATE_LIMIT, reaches
from .trace import base_of, chain_to_base, forward_index, numel, same_size

__all__ = ["merge_producer"]


def merge_producer(
    fusion: Any, producer: Group, consumer: Group, value: Value, wanted: Index, bijective: bool
) -> str | None:
    """Move ``producer``'s members to ``consumer``, which reads ``value`` at ``wanted``. A text says why not."""
    if not fusion.takes(consumer, *producer.members):
        return "the kernel is large enough"
    if any(v in consumer.sources for v in producer.late):
        return "it reads the result of a reduction over all rows"
    if value in producer.late:
        return "it reads the result of a reduction over all rows"
    if len(producer.axes) < len(consumer.axes) and _is_row_domain(producer, consumer, wanted):
        return _merge_rows(fusion, producer, consumer, value, wanted)
    mapping = _solve(producer, consumer, value, wanted, bijective)
    if mapping is None:
        return "their loops differ"
    inner = _merged_inner(producer, consumer, mapping)
    if inner == "differ":
        return "they reduce over different axes"
    scan = _merged_scan(producer, consumer, mapping, inner, fusion.row_scans)
    if scan == "differ":
        return "a scan runs in the loops of one of them"
    why = _finish(fusion, producer, consumer, mapping, inner, {})
    if why is None:
        consumer.scan = scan
    return why


def _finish(
    fusion: Any, producer: Group, consumer: Group, mapping: dict[Expr, Size], inner: Any, late: dict[Value, None]
) -> str | None:
    moved = {m: _moved(producer.index[m], mapping) for m in producer.members}
    if not _agree(producer, consumer, moved):
        return "an element is wanted at another place of the loops"
    if consumer.level > producer.level + 1 and _other_path(producer, consumer):
        return "another kernel stands between them"
    _move(fusion, producer, consumer, moved, mapping, inner)
    consumer.late.update(late)
    return None


def _is_row_domain(producer: Group, consumer: Group, wanted: Index) -> bool:
    """Do the producer's loops run over the rows of the consumer, which reduces over further axes?"""
    if not consumer.inner or not producer.axes or producer.late or producer.scan is not None:
        return False
    rows = numel(tuple([s for a, s in zip(consumer.axes, consumer.sizes, strict=True) if a not in consumer.inner]))
    return same_size(numel(producer.sizes), rows) and not any(consumer.inner & free(i) for i in wanted)


def _merge_rows(fusion: Any, producer: Group, consumer: Group, value: Value, wanted: Index) -> str | None:
    """The producer's values become row values; its reductions, which must be over everything, become late."""
    mapping: dict[Expr, Size] = {}
    for have, want in zip(producer.index[value], wanted, strict=True):
        if isinstance(have, Symbol):
            mapping[have] = want
        elif have != want:
            return "their loops differ"
    if any(a not in mapping for a in producer.axes):
        return "their loops differ"
    late: dict[Value, None] = {}
    for member in producer.members:
        if member.kind == "reduce":
            if fusion.late <= LATE_LIMIT:
                return "they reduce over different axes"
            if producer.inner != frozenset(producer.axes) or member.attrs.startswith("arg"):
                return "they reduce over different axes"
            late[member] = None
        elif any(base_of(i) in late for i in member.inputs):
            if any(free(i) for i in producer.index[member]) or not all(
                base_of(i) in late or base_of(i) not in producer.index for i in member.inputs
            ):
                return "it needs a whole reduction before the rows"
            late[member] = None
    return _finish(fusion, producer, consumer, mapping, consumer.inner, late)


def _solve(producer: Group, consumer: Group, value: Value, wanted: Index, bijective: bool) -> dict[Expr, Size] | None:
    """The producer's axes as expressions over the consumer's."""
    if bijective and _same_axes(producer, consumer, value, wanted):
        return dict(zip(producer.axes, consumer.axes, strict=True))
    mapping: dict[Expr, Size] = {}
    for have, want in zip(producer.index[value], wanted, strict=True):
        if isinstance(have, Symbol):
            if have in mapping and mapping[have] != want:
                return None
            mapping[have] = want
        elif have != want:
            if type(have) is not int:
                return None
            return None
    missing = [a for a in producer.axes if a not in mapping]
    if not missing:
        if not bijective or not same_size(numel(producer.sizes), numel(consumer.sizes)):
            return None
        return mapping
    return _solve_rows(producer, consumer, mapping, missing)


def _same_axes(producer: Group, consumer: Group, value: Value, wanted: Index) -> bool:
    """Are their loops the same, and is each element wanted where it is made (also at quotients and remainders of an
    axis, of a value whose shape is another than the loops')?"""
    if len(producer.axes) != len(consumer.axes):
        return False
    if not all(same_size(a, b) for a, b in zip(producer.sizes, consumer.sizes, strict=True)):
        return False
    mapping: dict[Expr, Size] = dict(zip(producer.axes, consumer.axes, strict=True))
    return _moved(producer.index[value], mapping) == tuple(wanted)


def _solve_rows(
    producer: Group, consumer: Group, mapping: dict[Expr, Size], missing: list[Symbol]
) -> dict[Expr, Size] | None:
    """``value`` is a row value: the producer's inner axes are the consumer's axes that the rows do not use."""
    if frozenset(missing) != producer.inner:
        return None
    used = frozenset().union(*[free(i) for i in mapping.values()]) if mapping else frozenset()
    spare = [(a, s) for a, s in zip(consumer.axes, consumer.sizes, strict=True) if a not in used]
    sizes = dict(zip(producer.axes, producer.sizes, strict=True))
    if len(spare) != len(missing) or not all(same_size(sizes[m], s) for m, (_, s) in zip(missing, spare, strict=True)):
        return None
    rows = numel(tuple([s for a, s in zip(consumer.axes, consumer.sizes, strict=True) if a in used]))
    if not same_size(rows, numel(tuple([sizes[a] for a in producer.axes if a in mapping]))):
        return None
    return mapping | {m: a for m, (a, _) in zip(missing, spare, strict=True)}


def _merged_inner(producer: Group, consumer: Group, mapping: dict[Expr, Size]) -> Any:
    if producer.inner is None:
        return consumer.inner
    inner: set[Symbol] = set()
    rows: set[Symbol] = set()
    for axis in producer.axes:
        (inner if axis in producer.inner else rows).update(free(mapping[axis]))
    if inner & rows or (consumer.inner is not None and consumer.inner != inner):
        return "differ"
    return frozenset(inner)


def _merged_scan(producer: Group, consumer: Group, mapping: dict[Expr, Size], inner: Any, in_rows: bool) -> Any:
    """The axis of both groups' scans in the merged loops, which must run over it in the same order."""
    if producer.scan is None and consumer.scan is None:
        return None
    axis: Any = consumer.scan if producer.scan is None else mapping[producer.scan]
    if inner if not in_rows else inner != {axis}:
        return "differ"
    if producer.scan is None:
        return axis
    alone = not any(axis in free(mapping[a]) for a in producer.axes if a is not producer.scan)
    return axis if isinstance(axis, Symbol) and alone and consumer.scan in (None, axis) else "differ"


def _moved(index: Index, mapping: dict[Expr, Size]) -> Index:
    return tuple(
        [i if type(i) is int else mapping[i] if type(i) is Symbol else i.substitute(mapping) for i in index]  # type: ignore[union-attr]
    )


def _agree(producer: Group, consumer: Group, moved: dict[Value, Index]) -> bool:
    """Does the consumer read every moved value where the merged loops compute it?"""
    for value in consumer.members:
        for item in value.inputs:
            chain = chain_to_base(item)
            base = chain[-1].inputs[0] if chain else item
            if base in moved:
                at = value.full if value.kind == "reduce" else consumer.index[value]
                anywhere = value.kind == "index" and (value.gathers is None or item is value.inputs[0])
                if anywhere or forward_index(chain, at) != moved[base]:
                    return False
    return True


def _other_path(producer: Group, consumer: Group) -> bool:
    return any(
        other is not consumer and other.level < consumer.level and reaches(other, consumer)
        for other in producer.consumers.values()
    )


def _move(
    fusion: Any, producer: Group, consumer: Group, moved: dict[Value, Index], mapping: dict[Expr, Size], inner: Any
) -> None:
    for value in producer.members:
        consumer.index[value] = moved[value]
        if value.kind == "reduce":
            value.full = _moved(value.full, mapping)
        fusion.where[value] = consumer
    consumer.inner = inner
    consumer.members = sorted([*producer.members, *consumer.members], key=lambda v: v.order)
    consumer.late.update(producer.late)
    consumer.sources = {s: None for s in (*producer.sources, *consumer.sources) if s not in consumer.index}
    producer.alive = False
    del consumer.producers[producer.number], producer.consumers[consumer.number]
    for other in producer.producers.values():
        del other.consumers[producer.number]
        fusion.link(other, consumer)
    for other in producer.consumers.values():
        del other.producers[producer.number]
        fusion.link(consumer, other)
    producer.consumers, producer.producers, producer.members = {}, {}, []
