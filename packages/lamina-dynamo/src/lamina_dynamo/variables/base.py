"""What stands for a Python value while a frame is interpreted.

A ``VariableTracker`` knows its Python type, how it is reached (``source``, None when the region made it), and how
the operations of Python's data model act on it. Trackers of mutable objects are themselves mutable; one tracker
stands for one object, so ``is`` between trackers is ``is`` between objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Unsupported

if TYPE_CHECKING:
    from ..translate.translator import Translator

__all__ = ["Args", "Kwargs", "Lazy", "NotConstant", "VariableTracker", "realize"]

Args = list["VariableTracker"]
Kwargs = dict[str, "VariableTracker"]


class NotConstant(Exception):
    """The value is not known while tracing."""


class Lazy:
    """A value of the caller that has not been looked at: no guard yet. Stands in containers and locals only."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: Any) -> None:
        self.value = value
        self.source = source


def realize(tx: Translator, item: Any) -> VariableTracker:
    """The tracker of an item that may be lazy (its guards are added now)."""
    return tx.wrap(item.value, item.source) if type(item) is Lazy else item


class VariableTracker:
    """Base of all trackers; the defaults say "cannot be traced"."""

    __slots__ = ("source",)

    def __init__(self, source: Any = None) -> None:
        self.source = source

    def python_type(self) -> type:
        """The type that ``type(value)`` gives."""
        raise Unsupported(f"the type of {self!r} is not known")

    def is_constant(self) -> bool:
        """True when the value is known while tracing."""
        try:
            self.as_constant()
        except NotConstant:
            return False
        return True

    def as_constant(self) -> Any:
        """The value.

        Raises:
            NotConstant: it depends on a tensor or a symbolic number, or has an identity to preserve.
        """
        raise NotConstant(repr(self))

    def key(self) -> Any:
        """What stands for the value as a key of a dict or a member of a set."""
        return ObjectKey(self)

    def getattr(self, tx: Translator, name: str) -> VariableTracker:
        """``value.name``."""
        raise Unsupported(f"attribute {name!r} of {self!r}")

    def setattr(self, tx: Translator, name: str, value: VariableTracker) -> None:
        """``self.name = value``."""
        raise Unsupported(f"assignment to attribute {name!r} of {self!r}")

    def delattr(self, tx: Translator, name: str) -> None:
        """``del self.name``."""
        raise Unsupported(f"deletion of attribute {name!r} of {self!r}")

    def call(self, tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        """``value(*args, **kwargs)``."""
        raise Unsupported(f"call of {self!r}")

    def method(self, tx: Translator, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """``value.name(*args, **kwargs)``."""
        native = getattr(self, "_m_" + name, None)
        if native is not None:
            return native(tx, *args, **kwargs)
        return self.getattr(tx, name).call(tx, args, kwargs)

    def truth(self, tx: Translator) -> bool:
        """``bool(value)``."""
        raise Unsupported(f"truth of {self!r}")

    def length(self, tx: Translator) -> VariableTracker:
        """``len(value)``."""
        raise Unsupported(f"length of {self!r}")

    def iterator(self, tx: Translator) -> VariableTracker:
        """``iter(value)``: a tracker with ``next``."""
        raise Unsupported(f"iteration over {self!r}")

    def next(self, tx: Translator) -> VariableTracker:
        """``next(value)``; raises StopIteration in the traced program."""
        raise Unsupported(f"next() of {self!r}")

    def getitem(self, tx: Translator, index: VariableTracker) -> VariableTracker:
        """``value[index]``."""
        raise Unsupported(f"indexing of {self!r}")

    def setitem(self, tx: Translator, index: VariableTracker, value: VariableTracker) -> None:
        """``self[index] = value``."""
        raise Unsupported(f"item assignment to {self!r}")

    def delitem(self, tx: Translator, index: VariableTracker) -> None:
        """``del self[index]``."""
        raise Unsupported(f"item deletion of {self!r}")

    def contains(self, tx: Translator, item: VariableTracker) -> VariableTracker:
        """``item in self``."""
        raise Unsupported(f"membership test in {self!r}")

    def children(self) -> list[Any]:
        """The trackers (or lazy values) held, for finding what must be rebuilt."""
        return []

    def reconstruct(self, cg: Any) -> None:
        """Write bytecode that pushes the value (only called where ``source`` is None or stale)."""
        raise Unsupported(f"rebuilding {self!r} after the graph")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ObjectKey:
    """A key compared by identity: of the caller's object where there is one, otherwise of the tracker."""

    __slots__ = ("tracker",)

    def __init__(self, tracker: VariableTracker) -> None:
        self.tracker = tracker

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectKey) and self.tracker is other.tracker

    def __hash__(self) -> int:
        return id(self.tracker) >> 4
