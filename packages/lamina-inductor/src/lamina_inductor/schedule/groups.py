"""Fusion: which values are computed by one kernel.

Values come in program order. Each value that needs computing joins the group of one of its operands when that
group's loops can
compute it too, or opens a group. A value knows its index over the group's axes; index transforms between two values
are solved
by their ``back`` functions. Groups carry a level (longest path of groups above them), which shows without a search
that a join makes no cycle. Each value is looked at once, so the time is linear in the size of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.loops import Index, Size, Value

__all__ = ["MAIN", "LATE", "Group", "Reason", "axis_symbol"]

MAIN, LATE = 0, 1
"""Stages of a member: inside the loops over the domain, or after a reduction over the rows (see ``Group``)."""


def axis_symbol(number: int, size: Size) -> Symbol:
    """Axis ``number`` of a kernel, over ``[0, size)``."""
    return Symbol(f"i{number}", 0, size - 1)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why two values are, or are not, in one kernel."""

    producer: str
    consumer: str
    fused: bool
    why: str


@dataclass(eq=False)
class Group:
    """Values computed by one kernel.

    Attributes:
        axes, sizes: the loops of the domain.
        index: member -> its index over ``axes``.
        inner: the axes that *row* reductions run over (None: no reduction yet). Values over the other axes only
            (results of row reductions and what is computed from them) are *row values*.
        scan: the axis that runs in order, because scans run over it (then nothing is reduced).
        late: reductions over other sets of axes (over the rows, or everything), and what is computed from them.
        Nothing in the
            main loops may depend on them.
        members: in program order. stored: members that others read from memory.
        level: longest path of groups and external steps above this one.
        sources: the values in memory that the group reads (buffers and members of other groups).
    """

    number: int
    axes: tuple[Symbol, ...]
    sizes: tuple[Size, ...]
    level: int
    inner: frozenset[Symbol] | None = None
    scan: Symbol | None = None
    index: dict[Value, Index] = field(default_factory=dict)
    members: list[Value] = field(default_factory=list)
    late: dict[Value, None] = field(default_factory=dict)
    stored: dict[Value, None] = field(default_factory=dict)
    sources: dict[Value, None] = field(default_factory=dict)
    producers: dict[int, Any] = field(default_factory=dict)
    consumers: dict[int, Any] = field(default_factory=dict)
    work: int = 0
    alive: bool = True

    @property
    def rows(self) -> frozenset[Symbol]:
        """Axes that row reductions do not run over."""
        return frozenset(self.axes) - (self.inner or frozenset())

    def is_row_value(self, value: Value) -> bool:
        """Does ``value`` depend on the row axes only (while the domain has more)?"""
        if not self.inner:
            return False
        return not any(self.inner & free(i) for i in self.index[value])


def free(index: Size) -> frozenset[Symbol]:
    """The symbols in an index."""
    return frozenset() if type(index) is int else index.free_symbols  # type: ignore[union-attr]
