"""Guards that the interpreter adds about dicts, attributes and classes."""

from __future__ import annotations

import weakref
from types import MappingProxyType
from typing import Any

from .. import _core
from .. import guard as g
from ..source import SuperAttr, TypeOf
from ..variables import (
    ClassVariable,
    DictVariable,
    ObjectKey,
)  # fmt: skip

__all__ = ["Guarding", "Has"]


class Guarding:
    """The part of the translator that adds guards."""

    def guard(self, guard: g.Guard) -> None:
        """Add a guard."""
        self.guards.add(guard)

    def guard_equals(self, source: Any, value: Any) -> None:
        """The source keeps this value: it was pinned by a branch or an index."""
        self.guard(g.equals(source, value, line=self.line_text()))

    def guard_attr_absent(self, source: Any, name: str) -> None:
        """The object has no such attribute."""
        if source is not None:
            self.guard(g.attr_present(source, name, False))

    def guard_dict_keys(self, variable: DictVariable) -> None:
        """The caller's dict has exactly its keys, in order (those at entry)."""
        self.guard(g.dict_keys(variable.source, variable.real_keys))

    def guard_dict_absent(self, variable: DictVariable, key: Any) -> None:
        """The caller's dict (or object) lacks a key."""
        if variable.owner is not None:
            self.guard(g.attr_present(variable.owner.source, key, False, raw=True))
        elif isinstance(key, (ObjectKey, tuple)):
            variable.guard_order(self)
        elif variable.kind is MappingProxyType:
            self.guard(g.python_check(variable.source, _Lacks(key), f"{key!r} not in {variable.source}"))
        else:
            self.guard(g.dict_has(variable.source, key, False))

    def guard_id(self, value: Any, source: Any) -> None:
        """The source is this very object."""
        if source is not None:
            self.guard(g.id_is(source, value))

    def super_source(self, instance: Any, is_class: bool, start: type, name: str) -> Any:
        """Where ``super(start, instance)`` finds a name; None when the instance's class has no source."""
        if is_class:
            base = instance.source
        elif isinstance(instance, ClassVariable):
            base = instance.source and TypeOf(instance.source)
        else:
            base = getattr(instance, "cls_source", None)
        return None if base is None else SuperAttr(base, weakref.ref(start), name)

    def guard_super_lacks(self, source: SuperAttr) -> None:
        """``super()`` does not find this name."""
        what = f"{source} does not exist"
        self.guard(g.python_check(source.base, _SuperLacks((source.start, source.attr)), what))


class Has:
    """Membership, as a guard."""

    __slots__ = ("member",)

    def __init__(self, member: Any) -> None:
        self.member = member

    def __call__(self, value: Any) -> bool:
        """Whether the member is there."""
        return self.member in value


class _Lacks(Has):
    __slots__ = ()

    def __call__(self, value: Any) -> bool:
        return self.member not in value


class _SuperLacks:
    """That a lookup by ``super()`` finds nothing."""

    __slots__ = ("where",)

    def __init__(self, where: tuple[Any, str]) -> None:
        self.where = where

    def __call__(self, value: Any) -> bool:
        try:
            _core.super_lookup(value, self.where)
        except AttributeError:
            return True
        return False
