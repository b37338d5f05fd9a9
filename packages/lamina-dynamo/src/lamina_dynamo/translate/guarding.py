"""Guards that the interpreter adds about dicts, attributes and classes."""

from __future__ import annotations

from types import (
    MappingProxyType,
)  # fmt: skip
from typing import Any

from .. import guard as g
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

    def guard_super(self, instance: Any, base: type, name: str, raw: Any) -> None:
        """What a class behind in the mro holds under a name; the instance's type is guarded, the entry of the
        class is not a step that a source can make, so it is checked by a function.
        """
        source = instance.source if isinstance(instance, ClassVariable) else getattr(instance, "cls_source", None)
        key = (base, name)
        if source is None or key in self.super_guards:
            return
        self.super_guards.add(key)
        self.guard(g.python_check(source, _MroEntry(base, name, raw), f"super {base.__qualname__}.{name} is unchanged"))


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


class _MroEntry:
    """An entry of a class's own dict, by identity; holds the class and the entry weakly where it can."""

    __slots__ = ("base", "entry", "name")

    def __init__(self, base: type, name: str, raw: Any) -> None:
        self.base = g.Identity.of(base)
        self.name = name
        self.entry = g.Identity.of(raw)

    def __call__(self, value: Any) -> bool:
        base = self.base.get()
        return base is not None and base.__dict__.get(self.name) is self.entry.get()  # type: ignore[attr-defined]
