"""Where scans are computed: in a group whose loops run over one axis in order, the group's ``scan``."""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.loops import Index, Value
from .groups import Group
from .merges import merge_producer
from .trace import chain_to_base, forward_index, index_above, is_bijective

__all__ = ["place_scan"]


def place_scan(fusion: Any, value: Value) -> None:
    """Put a scan into its operand's group, or into a group of its own, which then takes in the operand's."""
    (dim,) = value.axes
    operand = value.inputs[0]
    chain = chain_to_base(operand)
    base = chain[-1].inputs[0] if chain else operand
    home = fusion.where.get(base)
    if type(home) is Group:
        index = index_above(chain, home.index[base], home)
        if index is not None and base not in home.late and _may_scan(home, index, dim) and fusion.takes(home, value):
            home.scan = index[dim]  # type: ignore[assignment]
            fusion.add_member(home, value, index)
            fusion.explain(base.name, value.name, True, "scans in the same loops")
            return
    group, index = fusion.new_group(value, value.shape)
    group.scan = index[dim]
    fusion.add_member(group, value, index)
    if type(home) is Group:
        why = merge_producer(fusion, home, group, base, forward_index(chain, index), is_bijective(chain))
        fusion.explain(base.name, value.name, why is None, why or "producer's loops joined")


def _may_scan(group: Group, index: Index, dim: int) -> bool:
    if group.inner is not None or group.late:
        return False
    axes = [i for i in index if type(i) is not int]
    plain = all(isinstance(i, Symbol) for i in axes) and len(set(axes)) == len(axes) == len(group.axes)
    return plain and isinstance(index[dim], Symbol) and group.scan in (None, index[dim])
