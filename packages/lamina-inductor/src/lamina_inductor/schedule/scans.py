"""Where scans are computed: in a group whose loops run over one axis in order, the group's ``scan``.

With ``Fusion.row_scans`` that axis is what is inside of rows (the group's ``inner``, and nothing else is), so that
reductions over the same axis may stand beside the scan, before it and behind.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.loops import Index, Value
from .groups import Group, free
from .joins import follows_product, loops_of, sibling_of
from .merges import merge_producer
from .trace import chain_to_base, forward_index, index_above, is_bijective

__all__ = ["place_scan"]


def place_scan(fusion: Any, value: Value) -> None:
    """Put a scan into its operand's group, or into a group of its own, which then takes in the operand's."""
    (dim,) = value.axes
    operand = value.inputs[0]
    chain = chain_to_base(operand)
    base = chain[-1].inputs[0] if chain else operand
    home = loops_of(fusion, base)
    if home is not None:
        index = index_above(chain, home.index[base], home)
        if index is not None and chain and forward_index(chain, index) != home.index[base]:
            index = None  # symbolic sizes: equal, but not seen to be
        if index is not None and _joins(fusion, home, base, index, dim) and fusion.takes(home, value):
            _add(fusion, home, value, index)
            fusion.explain(base.name, value.name, True, "scans in the same loops")
            return
    sibling = sibling_of(fusion, value, chain, base) if fusion.row_scans else None
    if sibling is not None and _joins(fusion, sibling[0], None, sibling[1], dim) and fusion.takes(sibling[0], value):
        _add(fusion, sibling[0], value, sibling[1])
        fusion.explain(base.name, value.name, True, "reads the same in the same loops")
        return
    group, index = fusion.new_group(value, operand.shape)
    _add(fusion, group, value, index)
    if home is not None:
        why = merge_producer(fusion, home, group, base, forward_index(chain, index), is_bijective(chain))
        fusion.explain(base.name, value.name, why is None, why or "producer's loops joined")
    elif fusion.row_scans and is_bijective(chain):
        fusion.siblings[base] = (group, forward_index(chain, index))


def _add(fusion: Any, group: Group, value: Value, index: Index) -> None:
    axis: Any = index[value.axes[0]]
    group.scan = axis
    if fusion.row_scans:
        group.inner = frozenset((axis,))
    fusion.add_member(group, value, index)


def _joins(fusion: Any, group: Group, base: Value | None, index: Index, dim: int) -> bool:
    if not fusion.row_scans:
        return base not in group.late and _may_scan(group, index, dim)
    axis = index[dim]
    if not isinstance(axis, Symbol) or group.late or group.inner not in (None, frozenset((axis,))):
        return False
    others = [free(i) for d, i in enumerate(index) if d != dim]
    if any(axis in symbols for symbols in others) or frozenset((axis,)).union(*others) != frozenset(group.axes):
        return False
    return group.inner is not None or base is None or not follows_product(fusion, group, base)


def _may_scan(group: Group, index: Index, dim: int) -> bool:
    if group.inner is not None or group.late:
        return False
    axes = [i for i in index if type(i) is not int]
    plain = all(isinstance(i, Symbol) for i in axes) and len(set(axes)) == len(axes) == len(group.axes)
    return plain and isinstance(index[dim], Symbol) and group.scan in (None, index[dim])
