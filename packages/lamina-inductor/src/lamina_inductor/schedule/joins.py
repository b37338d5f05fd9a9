"""When a value may be computed by the loops of a group that exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.loops import Index, Value
from ..lower.externs import GemmPlan
from ..lower.sorts import is_first_part
from .groups import Group, free
from .trace import base_of, chain_to_base, forward_index, index_above, is_bijective, numel, same_size

__all__ = [
    "candidates",
    "follows_product",
    "is_past",
    "loops_of",
    "may_join_point",
    "place_gather",
    "place_reduction",
    "raise_level",
    "reaches",
    "sibling_of",
]

LATE_LIMIT = 1 << 14
"""Elements of a partial result (one per chunk of rows) of a late reduction."""

SIBLING_DISTANCE = 48
"""How far apart, in values, two readers of one buffer may be to share a kernel."""

SERIAL_LIMIT = 1 << 15
"""A group with fewer rows than threads want keeps whole passes serial; beyond this many inner elements it is cut
instead."""


def raise_level(node: Any, level: int) -> None:
    """Set a group's level and push its consumers up where they must follow."""
    work = [(node, level)]
    while work:
        item, wanted = work.pop()
        if item.level < wanted:
            item.level = wanted
            work.extend((c, wanted + 1) for c in item.consumers.values() if c.level <= wanted)


def reaches(start: Any, goal: Any, limit: int = 64) -> bool:
    """Is there a path from ``start`` to ``goal``? True also when the search is given up."""
    if start is goal:
        return True
    seen: set[int] = set()
    work = [start]
    while work:
        item = work.pop()
        for consumer in item.consumers.values():
            if consumer is goal:
                return True
            if consumer.level < goal.level and consumer.number not in seen:
                seen.add(consumer.number)
                if len(seen) > limit:
                    return True
                work.append(consumer)
    return False


def is_past(group: Group, value: Value) -> bool:
    """Does ``value`` belong to a backward long after ``group``: joined, it would have to be kept until then."""
    return value.backward and value.order - group.members[-1].order >= SIBLING_DISTANCE


def loops_of(fusion: Any, base: Value) -> Group | None:
    """The group in whose loops each element of ``base`` is at hand; None where there is none, as for what lies in
    memory."""
    home = fusion.where.get(base)
    return home if type(home) is Group and not is_first_part(base) else None


def candidates(fusion: Any, value: Value) -> Iterator[tuple[Group, Index, str]]:
    """Groups whose loops could compute ``value``, with its index there: its operands' groups, then readers of the
    same buffers."""
    found: list[tuple[Group, Index, str]] = []
    for item in value.inputs:
        chain = chain_to_base(item)
        base = chain[-1].inputs[0] if chain else item
        home = loops_of(fusion, base)
        if home is not None and not any(home is g for g, _, _ in found) and not is_past(home, value):
            index = index_above(chain, home.index[base], home)
            if index is not None:
                found.append((home, index, base.name))
    found.sort(key=lambda c: (-c[0].level, -len(c[0].members)))
    yield from found
    for item in value.inputs:
        chain = chain_to_base(item)
        base = chain[-1].inputs[0] if chain else item
        sibling = fusion.siblings.get(base)
        if sibling is not None and is_bijective(chain):
            group, index = sibling
            if group.alive and value.order - group.members[-1].order < SIBLING_DISTANCE:
                above = index_above(chain, index, group)
                if above is not None:
                    yield group, above, base.name


def may_join_point(fusion: Any, group: Group, value: Value, index: Index) -> bool | None:
    """None when ``group`` cannot compute ``value`` at ``index``; otherwise whether the value would be late."""
    if not fusion.takes(group, value) or not group.alive:
        return None
    late: bool | None = None
    for item in value.inputs:
        chain = chain_to_base(item)
        base = chain[-1].inputs[0] if chain else item
        home = fusion.where.get(base)
        if base.lazy or home is None:
            continue
        if home is group:
            if is_first_part(base):
                return None
            is_late = base in group.late
            if (late is not None and late != is_late) or not _readable(
                fusion, group, base, forward_index(chain, index)
            ):
                return None
            late = is_late
        elif not _before(home, group):
            return None
    late = bool(late)
    if late and _uses(index, group.rows):  # the rows are over when a late value is known
        return None
    if (
        not late
        and group.inner
        and not _parallel_enough(group)
        and _uses(index, group.inner)
        and _reads_rows(group, value)
    ):
        return None
    return late


def _reads_rows(group: Group, value: Value) -> bool:
    return any(base_of(i) in group.index and group.is_row_value(base_of(i)) for i in value.inputs)


def _parallel_enough(group: Group) -> bool:
    rows, inner = 1, 1
    for axis, size in zip(group.axes, group.sizes, strict=True):
        if type(size) is not int:
            continue
        if axis in group.inner:  # type: ignore[operator]
            inner *= size
        else:
            rows *= size
    return rows >= 2 or inner <= SERIAL_LIMIT


def _before(home: Any, group: Group) -> bool:
    """May ``group`` read what ``home`` computes, without a cycle?"""
    return home.level < group.level or not reaches(group, home)


def _uses(index: Index, axes: frozenset[Symbol]) -> bool:
    return any(axes & free(i) for i in index)


def _readable(fusion: Any, group: Group, base: Value, index: Index, depth: int = 0) -> bool:
    """Can ``group`` have ``base`` (of its members) at ``index``: there already, or by computing it again?"""
    if group.index[base] == index:
        return True
    if base.kind == "reduce" or base in group.late or depth > 8 or base.kind != "point" or base.chain_cost > 64:
        return False
    for item in base.inputs:
        chain = chain_to_base(item)
        below = chain[-1].inputs[0] if chain else item
        if fusion.where.get(below) is group and not _readable(
            fusion, group, below, forward_index(chain, index), depth + 1
        ):
            return False
    return True


def place_gather(fusion: Any, value: Value) -> bool:
    """Compute a gather along the inner axis in the loops that make its input, when it takes one element of each row."""
    chain = chain_to_base(value.inputs[0])
    base = chain[-1].inputs[0] if chain else value.inputs[0]
    group = loops_of(fusion, base)
    dim = value.gathers
    if group is None or not fusion.takes(group, value):
        return False
    if not group.inner or not is_bijective(chain) or base in group.late:
        return False
    full = index_above(chain, group.index[base], group)
    if full is None or free(full[dim]) != group.inner or _uses((*full[:dim], *full[dim + 1 :]), group.inner):
        return False
    if not (type(value.shape[dim]) is int and value.shape[dim] == 1):
        return False
    rows = value.inputs[0].shape
    if not all(d == dim or same_size(a, b) for d, (a, b) in enumerate(zip(value.shape, rows, strict=True))):
        return False  # it may take less than the input has along the other dimensions, too
    probe = Symbol("probe", 0)
    wanted = forward_index(chain, (*full[:dim], probe, *full[dim + 1 :]))
    index = (*full[:dim], 0, *full[dim + 1 :])
    if not _readable(fusion, group, base, wanted):
        return False
    for item in value.inputs[1:]:
        below = base_of(item)
        home = fusion.where.get(below)
        if home is group or (home is not None and not _before(home, group)):
            return False
    fusion.add_member(group, value, index)
    fusion.explain(base.name, value.name, True, "one element of each row")
    return True


# -- reductions ----------------------------------------------------------------------------------------


def place_reduction(fusion: Any, value: Value) -> None:
    """Put a reduction into its operand's group, beside a reader of the same buffer, or into a group of its own."""
    operand = value.inputs[0]
    chain = chain_to_base(operand)
    base = chain[-1].inputs[0] if chain else operand
    home = loops_of(fusion, base)
    if home is not None:
        full = index_above(chain, home.index[base], home)
        if full is not None and chain and forward_index(chain, full) != home.index[base]:
            full = None  # symbolic sizes: equal, but not seen to be
        why = "its loops differ" if full is None else _join_reduction(fusion, home, value, base, full)
        fusion.explain(base.name, value.name, why is None, why or "reduces in the same loops")
        if why is None:
            return
    sibling = sibling_of(fusion, value, chain, base)
    if sibling is not None and _join_reduction(fusion, sibling[0], value, None, sibling[1]) is None:
        return
    group, full = fusion.new_group(value, operand.shape)
    _set_inner(group, value, full)
    _add_reduction(fusion, group, value, full, late=False)
    if is_bijective(chain) and home is None:
        fusion.siblings[base] = (group, forward_index(chain, full))


def sibling_of(fusion: Any, value: Value, chain: list[Value], base: Value) -> tuple[Group, Index] | None:
    """The group that reads all of ``base``, too, if ``value`` may join it, and the index on top of ``chain`` there."""
    sibling = fusion.siblings.get(base)
    if sibling is None or not is_bijective(chain) or not sibling[0].alive:
        return None
    group, index = sibling
    above = index_above(chain, index, group)
    near = value.order - group.members[-1].order < SIBLING_DISTANCE
    home = fusion.where.get(base)
    allowed = above is not None and near and (home is None or _before(home, group))
    return (group, above) if allowed else None  # type: ignore[return-value]


def _axes_of(value: Value, full: Index) -> tuple[frozenset[Symbol], frozenset[Symbol]]:
    reduced: set[Symbol] = set()
    kept: set[Symbol] = set()
    for dim, i in enumerate(full):
        (reduced if dim in value.axes else kept).update(free(i))
    return frozenset(reduced), frozenset(kept)


def _set_inner(group: Group, value: Value, full: Index) -> None:
    group.inner = _axes_of(value, full)[0]


def _add_reduction(fusion: Any, group: Group, value: Value, full: Index, late: bool) -> None:
    value.full = full  # type: ignore[attr-defined]
    index = tuple([i for dim, i in enumerate(full) if dim not in value.axes])
    fusion.add_member(group, value, index, late=late)


def _join_reduction(fusion: Any, group: Group, value: Value, base: Value | None, full: Index) -> str | None:
    """Add ``value`` to ``group``; a text says why not."""
    if not fusion.takes(group, value):
        return "the kernel is large enough"
    if group.scan is not None and not fusion.row_scans:
        return "a scan runs in its loops"
    if base is not None and base in group.late:
        return "it reduces the result of a reduction over all rows"
    reduced, kept = _axes_of(value, full)
    if reduced & kept or not reduced:
        return "it reduces over a part of an axis"
    if group.inner is None:
        if reduced | kept != frozenset(group.axes):
            return "its loops differ"
        if fusion.late <= LATE_LIMIT and base is not None and follows_product(fusion, group, base):
            return "its operand is made on the tiles of a product, and stored"
        group.inner = reduced
    if reduced == group.inner:
        _add_reduction(fusion, group, value, full, late=False)
        return None
    if group.scan is not None:
        return "a scan runs in its loops"
    if fusion.late > LATE_LIMIT and _may_turn(group, reduced, kept) and _turn(group, reduced):
        _add_reduction(fusion, group, value, full, late=False)
        return None
    return _join_late(fusion, group, value, base, full, reduced, kept)


def follows_product(fusion: Any, group: Group, base: Value) -> bool:
    """Will ``group`` be the epilogue of a product of a half type, and ``base`` stored for other products anyway?"""
    if not _is_read_by_products(base):
        return False
    for source in group.sources:
        home = fusion.where.get(source)
        if home is None or type(home) is Group or type(source.attrs) is not GemmPlan or source.dtype.itemsize != 2:
            continue
        if all(fusion.where.get(user) is group for user in source.users) and source.shape == base.shape:
            return True
    return False


def _is_read_by_products(value: Value) -> bool:
    """Also through views."""
    return any(
        type(user.attrs) is GemmPlan if user.kind == "extern" else user.kind == "map" and _is_read_by_products(user)
        for user in value.users
    )


def _may_turn(group: Group, reduced: frozenset[Symbol], kept: frozenset[Symbol]) -> bool:
    """Is the new reduction the better row reduction: over the last axis, where the group's own is over the others?"""
    last = group.axes[-1]
    return last in reduced and last not in group.inner and kept == group.inner  # type: ignore[operator]


def _turn(group: Group, reduced: frozenset[Symbol]) -> bool:
    rows = [v for v in group.members if group.is_row_value(v)]
    if any(v.kind != "reduce" for v in rows) or any(base_of(i) in rows for v in group.members for i in v.inputs):
        return False
    if any(v.attrs.startswith("arg") for v in rows) or not _small(group, reduced):
        return False
    if any(v in group.late for v in group.members):
        return False
    group.late.update(dict.fromkeys(rows))
    group.inner = reduced
    return True


def _small(group: Group, axes: frozenset[Symbol]) -> bool:
    count = numel(tuple([s for a, s in zip(group.axes, group.sizes, strict=True) if a in axes]))
    return type(count) is int and count <= LATE_LIMIT


def _is_short(group: Group, axes: frozenset[Symbol], limit: int) -> bool:
    count = numel(tuple([s for a, s in zip(group.axes, group.sizes, strict=True) if a in axes]))
    return type(count) is int and 32 <= count <= limit


def _join_late(
    fusion: Any, group: Group, value: Value, base: Value | None, full: Index, reduced: frozenset[Symbol], kept: Any
) -> str | None:
    inner = group.inner
    assert inner is not None
    if not fusion.late:
        return "it reduces over the rows"
    if value.attrs.startswith("arg") or value.attrs == "xor":
        return "an argmax runs over rows only"
    if fusion.late <= LATE_LIMIT and (value.attrs != "sum" or not _is_short(group, inner, fusion.late)):
        return "its partial results would be large"
    if reduced | kept == group.rows:  # of a row value
        if kept:
            return "it reduces a part of the rows"
    elif reduced | kept == frozenset(group.axes):
        if not kept and fusion.late <= LATE_LIMIT:
            return "it reduces everything"
        if kept and (kept != inner or not _small(group, kept)):
            return "its partial results would be large"
    else:
        return "its loops differ"
    _add_reduction(fusion, group, value, full, late=True)
    return None
