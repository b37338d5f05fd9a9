"""Values known while tracing: numbers, strings, None, dtypes, code objects and the like."""

from __future__ import annotations

import enum
from types import CodeType
from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .known import KnownVariable

__all__ = ["FALSE", "NONE", "PLAIN_TYPES", "TRUE", "ConstantVariable", "constants", "is_none"]

PLAIN_TYPES = frozenset(
    (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), type(NotImplemented), CodeType)
)
"""Types whose values are constants, compared by type and value."""


class ConstantVariable(KnownVariable):
    """A known, immutable value."""

    __slots__ = ()

    def is_constant(self) -> bool:
        return True

    def truth(self, tx: Any) -> bool:
        return bool(self.value)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise tx.observed(error) from None
        if type(found) in _BOUND:
            return BoundConstantMethod(self, name)
        return tx.wrap_constant(found)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        bound = getattr(self.value, name, None)
        if bound is None or type(bound) not in _BOUND:
            return self.getattr(tx, name).call(tx, args, kwargs)
        if name == "join" and len(args) == 1:
            args = [tx.tuple_of(tx.unpack(args[0]))]
        return tx.call_native(bound, args, kwargs)

    def length(self, tx: Any) -> VariableTracker:
        return tx.call_native(len, [self], {})

    def iterator(self, tx: Any) -> VariableTracker:
        if type(self.value) in (str, bytes):
            return tx.iterator_over([ConstantVariable(v) for v in self.value])
        if type(self.value) is frozenset:
            return tx.wrap_constant(self.value).iterator(tx)
        if isinstance(self.value, (int, float, complex, type(None))):
            raise tx.error(TypeError, f"{type(self.value).__name__!r} object is not iterable")
        raise Unsupported(f"iteration over {self.value!r}")

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        return tx.call_native(_getitem, [self, index], {})

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        return tx.call_native(_contains, [self, item], {})

    def reconstruct(self, cg: Any) -> None:
        cg.load_const(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class BoundConstantMethod(VariableTracker):
    """A built-in method of a constant, such as ``"a".upper``."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: ConstantVariable, name: str) -> None:
        self.source = None
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return type(getattr(self.owner.value, self.name))

    def as_constant(self) -> Any:
        return getattr(self.owner.value, self.name)

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.owner.method(tx, self.name, args, kwargs)

    def reconstruct(self, cg: Any) -> None:
        cg.load(self.owner)
        cg.load_attr(self.name)


NONE = ConstantVariable(None)
TRUE = ConstantVariable(True)
FALSE = ConstantVariable(False)


def is_none(value: Any) -> bool:
    """Whether this is the tracker of None."""
    return type(value) is ConstantVariable and value.value is None


_BOUND = (type("".upper), type((1).__add__))


def _getitem(value: Any, index: Any) -> Any:
    return value[index]


def _contains(value: Any, item: Any) -> bool:
    return item in value


def constants(values: Any) -> list[Any]:
    """The known values of these trackers.

    Raises:
        NotConstant: one is not known.
    """
    return [v.as_constant() for v in values]


def is_plain(value: Any) -> bool:
    """True for a value that can stand in bytecode as a constant."""
    kind = type(value)
    if kind in PLAIN_TYPES:
        return True
    if kind in (tuple, frozenset):
        return all(is_plain(v) for v in value)
    return isinstance(value, enum.Enum)
