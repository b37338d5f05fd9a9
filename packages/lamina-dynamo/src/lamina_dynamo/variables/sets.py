"""Sets and frozensets."""

from __future__ import annotations

from typing import Any

from .base import Args, Kwargs, NotConstant, ObjectKey, VariableTracker
from .constant import NONE, ConstantVariable

__all__ = ["SetVariable"]


class SetVariable(VariableTracker):
    """A set or frozenset: stand-in of each member to its tracker."""

    __slots__ = ("kind", "members")

    def __init__(self, members: dict[Any, VariableTracker], source: Any = None, kind: type = set) -> None:
        self.source = source
        self.members = members
        self.kind = kind

    def key(self) -> Any:
        return frozenset(self.members)

    def python_type(self) -> type:
        return self.kind

    def children(self) -> list[Any]:
        return list(self.members.values())

    def as_constant(self) -> Any:
        if self.kind is not frozenset:
            raise NotConstant(repr(self))
        return frozenset(v.as_constant() for v in self.members.values())

    def truth(self, tx: Any) -> bool:
        return bool(self.members)

    def length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.members))

    def iterator(self, tx: Any) -> VariableTracker:
        # the order of a set is that of its hash table: only constants have one that is known, and the same for
        # a set built the same way
        if any(isinstance(k, ObjectKey) for k in self.members) and len(self.members) > 1:
            tx.unsupported("iteration over a set of objects: its order is not known while tracing")
        ordered = list(set(self.members))
        return tx.iterator_over([self.members[k] for k in ordered])

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        return ConstantVariable(tx.key_of(item) in self.members)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.native_attribute(self, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        native = getattr(self, "_m_" + name, None)
        if native is None:
            return tx.native_method(self, name, args, kwargs)
        return native(tx, *args, **kwargs)

    def _m_add(self, tx: Any, item: Any) -> VariableTracker:
        key = tx.key_of(item)
        tx.mutating(self)
        self.members.setdefault(key, item)
        return NONE

    def _m_discard(self, tx: Any, item: Any) -> VariableTracker:
        tx.mutating(self)
        self.members.pop(tx.key_of(item), None)
        return NONE

    def _m_remove(self, tx: Any, item: Any) -> VariableTracker:
        if tx.key_of(item) not in self.members:
            raise tx.error_of(KeyError, [item])
        return self._m_discard(tx, item)

    def _m_pop(self, tx: Any) -> VariableTracker:
        if not self.members:
            raise tx.error(KeyError, "pop from an empty set")
        if len(self.members) > 1:
            tx.unsupported("set.pop() of several members: which one goes is not known while tracing")
        tx.mutating(self)
        return self.members.popitem()[1]

    def _m_clear(self, tx: Any) -> VariableTracker:
        tx.mutating(self)
        self.members.clear()
        return NONE

    def _m_copy(self, tx: Any) -> VariableTracker:
        return SetVariable(dict(self.members), kind=self.kind)

    def _m_update(self, tx: Any, *others: Any) -> VariableTracker:
        for other in others:
            for item in tx.unpack(other):
                self._m_add(tx, item)
        return NONE

    def _m_union(self, tx: Any, *others: Any) -> VariableTracker:
        merged = SetVariable(dict(self.members))
        merged._m_update(tx, *others)
        merged.kind = self.kind
        return merged

    def _select(self, tx: Any, other: Any, keep: bool) -> VariableTracker:
        keys = {tx.key_of(v) for v in tx.unpack(other)}
        return SetVariable({k: v for k, v in self.members.items() if (k in keys) is keep}, kind=self.kind)

    def _m_intersection(self, tx: Any, *others: Any) -> VariableTracker:
        result: Any = self
        for other in others:
            result = result._select(tx, other, True)
        return result if others else self._m_copy(tx)

    def _m_difference(self, tx: Any, *others: Any) -> VariableTracker:
        result: Any = self
        for other in others:
            result = result._select(tx, other, False)
        return result if others else self._m_copy(tx)

    def _m_symmetric_difference(self, tx: Any, other: Any) -> VariableTracker:
        theirs = tx.set_of(tx.unpack(other))
        left, right = self._select(tx, theirs, False), theirs._select(tx, self, False)
        return SetVariable({**left.members, **right.members}, kind=self.kind)

    def _replace(self, tx: Any, result: Any) -> VariableTracker:
        tx.mutating(self)
        self.members = result.members
        return NONE

    def _m_intersection_update(self, tx: Any, *others: Any) -> VariableTracker:
        return self._replace(tx, self._m_intersection(tx, *others))

    def _m_difference_update(self, tx: Any, *others: Any) -> VariableTracker:
        return self._replace(tx, self._m_difference(tx, *others))

    def _m_issubset(self, tx: Any, other: Any) -> VariableTracker:
        return ConstantVariable(set(self.members) <= {tx.key_of(v) for v in tx.unpack(other)})

    def _m_issuperset(self, tx: Any, other: Any) -> VariableTracker:
        return ConstantVariable(set(self.members) >= {tx.key_of(v) for v in tx.unpack(other)})

    def _m_isdisjoint(self, tx: Any, other: Any) -> VariableTracker:
        return ConstantVariable(set(self.members).isdisjoint({tx.key_of(v) for v in tx.unpack(other)}))

    def reconstruct(self, cg: Any) -> None:
        cg.build_object(self)
