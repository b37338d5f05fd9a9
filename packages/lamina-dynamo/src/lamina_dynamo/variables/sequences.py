"""Tuples, lists and deques."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, NotConstant, VariableTracker, realize
from .constant import NONE, ConstantVariable

__all__ = ["DequeVariable", "ListVariable", "SequenceVariable", "TailVariable", "TupleVariable"]


class SequenceVariable(VariableTracker):
    """Shared by tuple, list and deque: ``elements`` are trackers or lazy values."""

    __slots__ = ("elements",)
    kind: type = tuple

    def __init__(self, elements: list[Any], source: Any = None) -> None:
        self.source = source
        self.elements = elements

    def python_type(self) -> type:
        return self.kind

    def children(self) -> list[Any]:
        return self.elements

    def truth(self, tx: Any) -> bool:
        return bool(self.elements)

    def length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.elements))

    def at(self, tx: Any, position: int) -> VariableTracker:
        """The element at a position, realised."""
        item = self.elements[position]
        if not isinstance(item, VariableTracker):
            item = self.elements[position] = realize(tx, item)
        return item

    def all(self, tx: Any) -> list[VariableTracker]:
        """Every element, realised."""
        return [self.at(tx, i) for i in range(len(self.elements))]

    def iterator(self, tx: Any) -> VariableTracker:
        return tx.sequence_iterator(self)

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        position = tx.index_of(index)
        if isinstance(position, slice):
            return type(self)(self.elements[position])
        try:
            self.elements[position]
        except IndexError as error:
            raise tx.error(IndexError, str(error)) from None
        return self.at(tx, position)

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        for i in range(len(self.elements)):
            element = self.at(tx, i)
            if element is item or tx.equal(element, item):
                return ConstantVariable(True)
        return ConstantVariable(False)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        native = getattr(self, "_m_" + name, None)
        if native is None:
            return tx.native_method(self, name, args, kwargs)
        return native(tx, *args, **kwargs)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.native_attribute(self, name)

    def _m_index(self, tx: Any, item: Any, *bounds: Any) -> VariableTracker:
        start, stop, _ = slice(*[tx.index_of(b) for b in bounds] or [None]).indices(len(self.elements))
        if len(bounds) == 1:
            start, stop = slice(tx.index_of(bounds[0]), None).indices(len(self.elements))[:2]
        for i in range(start, stop):
            element = self.at(tx, i)
            if element is item or tx.equal(element, item):
                return ConstantVariable(i)
        raise tx.error(ValueError, f"{self.kind.__name__}.index(x): x not in {self.kind.__name__}")

    def _m_count(self, tx: Any, item: Any) -> VariableTracker:
        found = sum(e is item or tx.equal(e, item) for e in self.all(tx))
        return ConstantVariable(found)

    def concatenated(self, tx: Any, other: VariableTracker) -> VariableTracker:
        """``self + other``."""
        if not isinstance(other, SequenceVariable) or other.kind is not self.kind:
            name = self.kind.__name__
            raise tx.error(TypeError, f'can only concatenate {name} (not "{other.python_type().__name__}") to {name}')
        return type(self)([*self.elements, *other.elements])

    def repeated(self, tx: Any, times: VariableTracker) -> VariableTracker:
        """``self * times``."""
        return type(self)(self.elements * tx.index_of(times))

    def __repr__(self) -> str:
        return f"{self.kind.__name__} of {len(self.elements)}"


class TupleVariable(SequenceVariable):
    """A tuple."""

    __slots__ = ()
    kind = tuple

    def as_constant(self) -> Any:
        result = []
        for e in self.elements:
            if not isinstance(e, VariableTracker):
                raise NotConstant(repr(e))
            result.append(e.as_constant())
        return tuple(result)

    def key(self) -> Any:
        raise Unsupported("a tuple with lazy members as a key")  # replaced by Translator.key_of

    def reconstruct(self, cg: Any) -> None:
        for element in self.elements:
            cg.load(element)
        cg.build_tuple(len(self.elements))


class TailVariable(TupleVariable):
    """What the resume function of a callee handed back: a resume function and its arguments, still to be run."""

    __slots__ = ()

    def run(self, tx: Any) -> VariableTracker:
        """Go on with it."""
        function, *args = self.all(tx)
        return function.call(tx, args, {})

    def reconstruct(self, cg: Any) -> None:
        raise Unsupported("the rest of a callee that is not run")


class ListVariable(SequenceVariable):
    """A list."""

    __slots__ = ()
    kind = list

    def _m_append(self, tx: Any, item: Any) -> VariableTracker:
        tx.mutating(self)
        self.elements.append(item)
        return NONE

    def _m_extend(self, tx: Any, items: Any) -> VariableTracker:
        values = tx.unpack(items)
        tx.mutating(self)
        self.elements.extend(values)
        return NONE

    def _m_insert(self, tx: Any, index: Any, item: Any) -> VariableTracker:
        tx.mutating(self)
        self.elements.insert(tx.index_of(index), item)
        return NONE

    def _m_pop(self, tx: Any, index: Any = None) -> VariableTracker:
        position = -1 if index is None else tx.index_of(index)
        if not self.elements:
            raise tx.error(IndexError, f"pop from empty {self.kind.__name__}")
        if not -len(self.elements) <= position < len(self.elements):
            raise tx.error(IndexError, "pop index out of range")
        tx.mutating(self)
        value = self.at(tx, position)
        del self.elements[position]
        return value

    def _m_remove(self, tx: Any, item: Any) -> VariableTracker:
        for i in range(len(self.elements)):
            element = self.at(tx, i)
            if element is item or tx.equal(element, item):
                tx.mutating(self)
                del self.elements[i]
                return NONE
        raise tx.error(ValueError, f"{self.kind.__name__}.remove(x): x not in {self.kind.__name__}")

    def _m_clear(self, tx: Any) -> VariableTracker:
        tx.mutating(self)
        self.elements.clear()
        return NONE

    def _m_reverse(self, tx: Any) -> VariableTracker:
        tx.mutating(self)
        self.elements.reverse()
        return NONE

    def _m_copy(self, tx: Any) -> VariableTracker:
        return type(self)(list(self.elements))

    def _m_sort(self, tx: Any, *, key: Any = None, reverse: Any = None) -> VariableTracker:
        ordered = tx.sorted(self.all(tx), key, reverse)
        tx.mutating(self)
        self.elements[:] = ordered
        return NONE

    def setitem(self, tx: Any, index: VariableTracker, value: VariableTracker) -> None:
        position = tx.index_of(index)
        tx.mutating(self)
        if isinstance(position, slice):
            values: Any = tx.unpack(value)
        else:
            values = value
        try:
            self.elements[position] = values
        except (IndexError, ValueError) as error:
            raise tx.error(type(error), str(error)) from None

    def delitem(self, tx: Any, index: VariableTracker) -> None:
        position = tx.index_of(index)
        tx.mutating(self)
        try:
            del self.elements[position]
        except IndexError as error:
            raise tx.error(IndexError, str(error)) from None

    def reconstruct(self, cg: Any) -> None:
        cg.build_object(self)


class DequeVariable(ListVariable):
    """A ``collections.deque``."""

    __slots__ = ("maxlen",)
    kind = deque

    def __init__(self, elements: list[Any], source: Any = None, maxlen: int | None = None) -> None:
        super().__init__(elements, source)
        self.maxlen = maxlen

    def _trim(self, front: bool) -> None:
        if self.maxlen is not None and len(self.elements) > self.maxlen:
            extra = len(self.elements) - self.maxlen
            if front:
                del self.elements[:extra]
            else:
                del self.elements[self.maxlen :]

    def _m_append(self, tx: Any, item: Any) -> VariableTracker:
        super()._m_append(tx, item)
        self._trim(front=True)
        return NONE

    def _m_appendleft(self, tx: Any, item: Any) -> VariableTracker:
        tx.mutating(self)
        self.elements.insert(0, item)
        self._trim(front=False)
        return NONE

    def _m_extend(self, tx: Any, items: Any) -> VariableTracker:
        super()._m_extend(tx, items)
        self._trim(front=True)
        return NONE

    def _m_extendleft(self, tx: Any, items: Any) -> VariableTracker:
        for item in tx.unpack(items):
            self._m_appendleft(tx, item)
        return NONE

    def _m_popleft(self, tx: Any) -> VariableTracker:
        if not self.elements:
            raise tx.error(IndexError, "pop from an empty deque")
        return self._m_pop(tx, ConstantVariable(0))

    def _m_rotate(self, tx: Any, n: Any = None) -> VariableTracker:
        steps = 1 if n is None else tx.index_of(n)
        tx.mutating(self)
        rotated = deque(self.elements)
        rotated.rotate(steps)
        self.elements[:] = rotated
        return NONE

    def _m_copy(self, tx: Any) -> VariableTracker:
        return DequeVariable(list(self.elements), maxlen=self.maxlen)
