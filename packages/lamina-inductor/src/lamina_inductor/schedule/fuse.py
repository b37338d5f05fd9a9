"""The fusion pass: put each value that needs computing into a group, or make it a step of its own.

``fuse(lowered)`` returns the groups and external steps. The rules for joining stand in ``joins``; what is stored and
what is
recomputed is decided afterwards in ``materialize``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..ir.loops import Index, Value
from ..lower.graph import LoweredGraph
from ..lower.scatters import ScatterPlan
from .groups import Group, Reason, axis_symbol
from .joins import candidates, is_past, loops_of, may_join_point, place_gather, place_reduction, raise_level
from .merges import merge_producer
from .scans import place_scan
from .trace import base_of, chain_to_base, forward_index, is_bijective

__all__ = ["ExternStep", "Fusion", "fuse"]


@dataclass(eq=False)
class ExternStep:
    """A value that a step of its own computes as a whole. ``sources``: what values read that it computes again."""

    value: Value
    level: int
    sources: dict[Value, None] = field(default_factory=dict)
    producers: dict[int, Any] = field(default_factory=dict)
    consumers: dict[int, Any] = field(default_factory=dict)
    number: int = 0
    alive: bool = True


@dataclass(eq=False)
class Fusion:
    """State and result of the pass.

    where: value -> its group or step. roots: (external value, operand) -> the value in memory that it is read from.
    reasons: why pairs were fused or not. siblings: buffer value -> last group
    that reads all of it. row_scans: does a scan stand in loops over rows, as their reductions do, with its axis
    alone inside (else in loops of its own, without reductions)?
    """

    lowered: LoweredGraph
    fuse_limit: int = 192
    late: int = 1 << 40
    apart: frozenset[int] = frozenset()
    row_scans: bool = False
    where: dict[Value, Any] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    steps: list[ExternStep] = field(default_factory=list)
    siblings: dict[Value, tuple[Group, Index]] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    required: dict[Value, None] = field(default_factory=dict)
    roots: dict[tuple[Value, Value], Value] = field(default_factory=dict)
    _numbers: int = 0
    _written: set[Value] | None = None

    def number(self) -> int:
        """A number for a new group or step."""
        self._numbers += 1
        return self._numbers

    def explain(self, producer: str, consumer: str, fused: bool, why: str) -> None:
        """Remember a decision."""
        self.reasons.append(Reason(producer, consumer, fused, why))

    def takes(self, group: Group, *values: Value) -> bool:
        """May the group compute these values, too? Not when it is large enough, or one of them must be alone."""
        if len(group.members) + len(values) > self.fuse_limit:
            return False
        return not self.apart or not any(v.order in self.apart for v in (*group.members, *values))

    def written(self) -> set[Value]:
        """Values that are written back to inputs."""
        if self._written is None:
            self._written = {v for _, v in self.lowered.writes}
        return self._written

    def roots_of(self, step: Value) -> list[Value]:
        """What the operands of an external value are read from: those that lie in memory."""
        found = [self.roots.get((step, item)) for item in step.inputs]
        return [root for root in found if root is not None]

    # -- edges -----------------------------------------------------------------------------------------

    def reads(self, value: Value) -> list[Value]:
        """What computing ``value`` reads from memory or from its group: bases behind index transforms and lazy
        values."""
        result: dict[Value, None] = {}
        for item in value.inputs:
            base = base_of(item)
            if not base.lazy:
                result[base] = None
        return list(result)

    def link(self, producer: Any, consumer: Any) -> None:
        """Record that ``consumer`` reads what ``producer`` computes, and keep levels right."""
        if producer is consumer or consumer.number in producer.consumers:
            return
        producer.consumers[consumer.number] = consumer
        consumer.producers[producer.number] = producer
        if consumer.level <= producer.level:
            raise_level(consumer, producer.level + 1)

    def add_member(self, group: Group, value: Value, index: Index, late: bool = False) -> None:
        """Compute ``value`` in ``group`` at ``index``."""
        group.members.append(value)
        group.index[value] = index
        if late:
            group.late[value] = None
        self.where[value] = group
        for base in self.reads(value):
            home = self.where.get(base)
            if home is None:
                group.sources[base] = None
            elif home is not group:
                group.sources[base] = None
                self.link(home, group)

    def new_group(self, value: Value, shape: tuple[Any, ...]) -> tuple[Group, Index]:
        """An empty group whose loops run over ``shape``."""
        axes, sizes, index = [], [], []
        for size in shape:
            if type(size) is int and size == 1:
                index.append(0)
            else:
                axes.append(axis_symbol(len(axes), size))
                sizes.append(size)
                index.append(axes[-1])
        group = Group(self.number(), tuple(axes), tuple(sizes), 0)
        self.groups.append(group)
        return group, tuple(index)


def fuse(
    lowered: LoweredGraph,
    *,
    fuse_limit: int = 192,
    late: int = 1 << 40,
    apart: frozenset[int] = frozenset(),
    row_scans: bool = False,
) -> Fusion:
    """Group the values of a lowered graph into kernels. ``late``: how long the rows may be in a kernel that also
    reduces over its rows. ``apart``: places in the program of values that have a kernel each. ``row_scans``: see
    ``Fusion``."""
    fusion = Fusion(lowered, fuse_limit, late, apart, row_scans)
    for value in lowered.values:
        _place(fusion, value)
    for value in (*lowered.outputs, *(v for _, v in lowered.writes)):
        if type(value) is Value and value.kind != "buffer":
            realize(fusion, value)
    return fusion


def _place(fusion: Fusion, value: Value) -> None:
    kind = value.kind
    if kind == "point" or kind == "index":
        inputs = value.inputs
        value.lazy = all(base_of(i).lazy for i in inputs) and value.cost < 20
        _chain(fusion, value)
        if not value.lazy:
            _place_point(fusion, value)
    elif kind == "reduce":
        value.chain_cost, value.chain_loads = 1, 1
        place_reduction(fusion, value)
    elif kind == "scan" or kind == "sort":
        value.chain_cost, value.chain_loads = 1, 1
        place_scan(fusion, value)
    elif kind == "extern" or kind == "scatter":
        _place_extern(fusion, value)
    elif kind == "item":
        fusion.where[value] = fusion.where[value.inputs[0]]


def _chain(fusion: Fusion, value: Value) -> None:
    cost, loads = value.cost, 0
    for item in value.inputs:
        base = base_of(item)
        if base.kind in ("point", "index"):
            cost += base.chain_cost
            loads += base.chain_loads
        else:
            loads += 1
    value.chain_cost, value.chain_loads = min(cost, 10000), min(loads, 10000)


def _place_point(fusion: Fusion, value: Value) -> None:
    if value.kind == "index":
        if value.gathers is not None and place_gather(fusion, value):
            return
        group, index = fusion.new_group(value, value.shape)
        fusion.add_member(group, value, index)
        return
    for group, index, via in candidates(fusion, value):
        late = may_join_point(fusion, group, value, index)
        if late is not None:
            fusion.add_member(group, value, index, late=late)
            fusion.explain(via, value.name, True, "same loops")
            break
    else:
        group, index = fusion.new_group(value, value.shape)
        fusion.add_member(group, value, index)
    _absorb_producers(fusion, group, value, index)
    _remember_siblings(fusion, group, value, index)


def _absorb_producers(fusion: Fusion, group: Group, value: Value, index: Index) -> None:
    for item in value.inputs:
        chain = chain_to_base(item)
        base = chain[-1].inputs[0] if chain else item
        home = loops_of(fusion, base)
        if home is not None and home is not group and not is_past(home, value):
            why = merge_producer(fusion, home, group, base, forward_index(chain, index), is_bijective(chain))
            fusion.explain(base.name, value.name, why is None, why or "producer's loops joined")


def _remember_siblings(fusion: Fusion, group: Group, value: Value, index: Index) -> None:
    for item in value.inputs:
        chain = chain_to_base(item)
        base = chain[-1].inputs[0] if chain else item
        if not base.lazy and type(fusion.where.get(base)) is not Group and is_bijective(chain):
            fusion.siblings[base] = (group, forward_index(chain, index))


def _place_extern(fusion: Fusion, value: Value) -> None:
    step = ExternStep(value, 0, number=fusion.number())
    fusion.steps.append(step)
    fusion.where[value] = step
    for item in value.inputs:
        if type(value.attrs) is ScatterPlan and base_of(item).lazy:
            continue
        root = fusion.roots[value, item] = _root(value, item)
        home = fusion.where.get(realize(fusion, root))
        if home is not None:
            fusion.link(home, step)


def _root(step: Value, item: Value) -> Value:
    """What must lie in memory for the step to read ``item``: as far down the index transforms as it can read
    through."""
    for root in (base_of(item), *reversed(chain_to_base(item))):
        if step.attrs.takes_view(item, root) and not root.lazy:
            return root
    return item


def realize(fusion: Fusion, value: Value) -> Value:
    """Make sure that ``value`` itself lies in memory; returns it."""
    if value.kind == "buffer":
        return value
    fusion.required[value] = None
    if value not in fusion.where:
        chain = chain_to_base(value)
        home = loops_of(fusion, base_of(value))
        index = None
        if chain and home is not None and is_bijective(chain):
            index = home.index[base_of(value)]
            for item in reversed(chain):
                index = item.back(index)  # type: ignore[misc]
            if forward_index(chain, index) != home.index[base_of(value)]:
                index = None  # symbolic sizes: equal, but not seen to be
        if index is not None:
            fusion.add_member(home, value, index, late=base_of(value) in home.late)
        else:
            group, index = fusion.new_group(value, value.shape)
            fusion.add_member(group, value, index)
    return value
