"""Follow index transforms between values: from an index of one to the index of the other."""

from __future__ import annotations

from lamina_fx.symbolic import Symbol, as_expr, divides, exact_quotient

from ..ir.loops import Index, Size, Value
from ..lower.table import size_of
from .groups import Group, free

__all__ = ["base_of", "chain_to_base", "forward_index", "index_above", "is_bijective", "numel", "rows_of", "same_size"]


def base_of(value: Value) -> Value:
    """The value below all index transforms."""
    while value.kind == "map":
        value = value.inputs[0]
    return value


def chain_to_base(value: Value) -> list[Value]:
    """The index transforms from ``value`` down, outermost first."""
    chain = []
    while value.kind == "map":
        chain.append(value)
        value = value.inputs[0]
    return chain


def forward_index(chain: list[Value], index: Index) -> Index:
    """Index of the base for an index of the value on top of the chain."""
    for value in chain:
        index = value.forward(index)  # type: ignore[misc]
    return index


def is_bijective(chain: list[Value]) -> bool:
    """Does each element of the base stand exactly once in the value on top?"""
    return all(value.back is not None for value in chain)


def index_above(chain: list[Value], index: Index, group: Group) -> Index | None:
    """The index of the value on top of the chain at which its base is at ``index``, with new dimensions running over
    the
    group's inner axes; None when there is no such index for the whole domain."""
    for value in reversed(chain):
        if value.back is not None:
            found = value.back(index)
        else:
            found = _broadcast_back(value, index, group)
        if found is None:
            return None
        index = found
    return index


def _broadcast_back(value: Value, index: Index, group: Group) -> Index | None:
    if value.op != "broadcast_in_dim":
        return None
    dims, kept = value.attrs
    result: list[Size | None] = [None] * len(value.shape)
    for i, dim, keep in zip(index, dims, kept, strict=True):
        if keep:
            result[dim] = i
    used: frozenset[Symbol] = frozenset().union(*[free(i) for i in index]) if index else frozenset()
    spare = [(a, s) for a, s in zip(group.axes, group.sizes, strict=True) if a not in used]
    if group.inner is None or {a for a, _ in spare} != group.inner:
        spare = []
    for dim, size in enumerate(value.shape):
        if result[dim] is None:
            if type(size) is int and size == 1:
                result[dim] = 0
            elif spare and same_size(spare[0][1], size):
                result[dim] = spare.pop(0)[0]
            else:
                return None
    return None if spare and used != group.rows else tuple(result)  # type: ignore[arg-type]


def same_size(a: Size, b: Size) -> bool:
    """Are two sizes known to be equal? (Equal expressions are one object.)"""
    return a is b or (type(a) is int and type(b) is int and a == b)


def rows_of(size: Size, columns: Size) -> Size | None:
    """The number of rows of ``columns`` elements that ``size`` elements are; None when it is not known to be whole."""
    if type(columns) is int:
        return size_of(size // columns) if columns and divides(as_expr(size), columns) else None
    found = exact_quotient(as_expr(size), as_expr(columns))
    return None if found is None else size_of(found)


def numel(sizes: tuple[Size, ...]) -> Size:
    """Product of sizes."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total
