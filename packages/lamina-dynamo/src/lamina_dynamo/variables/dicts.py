"""Dicts of all kinds, their views, and sets. Insertion order is kept as in Python."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import Any

from .base import Args, Kwargs, NotConstant, VariableTracker, realize
from .constant import NONE, ConstantVariable, is_none

__all__ = ["DictVariable", "DictViewVariable"]

_MISSING = object()


class DictVariable(VariableTracker):
    """A dict: ``entries`` maps a key's stand-in to its value, ``keys`` the stand-in to the key's tracker.

    A dict of the caller is guarded key by key: the entries read, the keys found absent; the whole key list is guarded
    when it is iterated or measured (``order_guarded``).
    """

    __slots__ = ("absent", "entries", "factory", "keys", "kind", "order_guarded", "owner", "real_keys")

    def __init__(
        self, entries: dict[Any, Any] | None = None, keys: dict[Any, Any] | None = None, source: Any = None,
        kind: type = dict, factory: VariableTracker | None = None,
    ) -> None:  # fmt: skip
        self.source = source
        self.entries: dict[Any, Any] = {} if entries is None else entries
        self.keys: dict[Any, VariableTracker] = {} if keys is None else keys
        self.kind = kind
        self.factory = factory
        self.absent: set[Any] = set()
        self.real_keys: list[Any] = []
        """Keys at entry of a dict of the caller."""
        self.owner: Any = None
        """The object whose ``__dict__`` this is."""
        self.order_guarded = source is None

    def python_type(self) -> type:
        return self.kind

    def children(self) -> list[Any]:
        return [*self.keys.values(), *self.entries.values()]

    def as_constant(self) -> Any:
        if self.source is not None or self.kind is not dict:
            raise NotConstant(repr(self))
        return {self.keys[k].as_constant(): _constant(v) for k, v in self.entries.items()}

    def guard_order(self, tx: Any) -> None:
        """Guard the whole key list of a dict of the caller."""
        if not self.order_guarded:
            self.order_guarded = True
            tx.guard_dict_keys(self)

    def get(self, tx: Any, key: Any) -> VariableTracker | None:
        """The value of a key's stand-in, or None (then its absence is guarded)."""
        value = self.entries.get(key, _MISSING)
        if value is _MISSING:
            if not self.order_guarded and key not in self.absent:
                self.absent.add(key)
                tx.guard_dict_absent(self, key)
            return None
        if not isinstance(value, VariableTracker):
            value = self.entries[key] = realize(tx, value)
        elif not self.order_guarded and key not in self.absent:
            pass  # realising guarded the entry
        return value

    def set(self, tx: Any, key: Any, tracker: VariableTracker, value: VariableTracker) -> None:
        """Store an entry."""
        tx.mutating(self)
        if key not in self.entries:
            self.get(tx, key)
            self.keys[key] = tracker
        self.entries[key] = value

    def remove(self, tx: Any, key: Any) -> None:
        """Delete an entry that is there."""
        self.get(tx, key)
        tx.mutating(self)
        del self.entries[key], self.keys[key]

    def truth(self, tx: Any) -> bool:
        self.guard_order(tx)
        return bool(self.entries)

    def length(self, tx: Any) -> VariableTracker:
        self.guard_order(tx)
        return ConstantVariable(len(self.entries))

    def key_list(self, tx: Any) -> list[VariableTracker]:
        """The keys in order."""
        self.guard_order(tx)
        return list(self.keys.values())

    def value_list(self, tx: Any) -> list[VariableTracker]:
        """The values in order."""
        self.guard_order(tx)
        return [self.get(tx, k) for k in self.entries]  # type: ignore[misc]

    def iterator(self, tx: Any) -> VariableTracker:
        return tx.dict_iterator(self, "keys")

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        key = tx.key_of(index)
        value = self.get(tx, key)
        if value is not None:
            return value
        if self.kind is defaultdict and self.factory is not None and not is_none(self.factory):
            made = self.factory.call(tx, [], {})
            self.set(tx, key, index, made)
            return made
        raise tx.error_of(KeyError, [index])

    def setitem(self, tx: Any, index: VariableTracker, value: VariableTracker) -> None:
        self.set(tx, tx.key_of(index), index, value)

    def delitem(self, tx: Any, index: VariableTracker) -> None:
        key = tx.key_of(index)
        if self.get(tx, key) is None:
            raise tx.error_of(KeyError, [index])
        self.remove(tx, key)

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        return ConstantVariable(self.get(tx, tx.key_of(item)) is not None)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "default_factory" and self.kind is defaultdict:
            return self.factory or NONE
        return tx.native_attribute(self, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        native = getattr(self, "_m_" + name, None)
        if native is None:
            return tx.native_method(self, name, args, kwargs)
        return native(tx, *args, **kwargs)

    def _m_get(self, tx: Any, index: Any, default: Any = NONE) -> VariableTracker:
        value = self.get(tx, tx.key_of(index))
        return default if value is None else value

    def _m_setdefault(self, tx: Any, index: Any, default: Any = NONE) -> VariableTracker:
        key = tx.key_of(index)
        value = self.get(tx, key)
        if value is None:
            self.set(tx, key, index, default)
            return default
        return value

    def _m_pop(self, tx: Any, index: Any, *default: Any) -> VariableTracker:
        key = tx.key_of(index)
        value = self.get(tx, key)
        if value is None:
            if default:
                return default[0]
            raise tx.error_of(KeyError, [index])
        self.remove(tx, key)
        return value

    def _m_popitem(self, tx: Any, last: Any = None) -> VariableTracker:
        self.guard_order(tx)
        if not self.entries:
            raise tx.error(KeyError, "popitem(): dictionary is empty")
        keys = list(self.entries)
        key = keys[-1] if last is None or last.truth(tx) else keys[0]
        pair = tx.tuple_of([self.keys[key], self.get(tx, key)])
        self.remove(tx, key)
        return pair

    def _m_move_to_end(self, tx: Any, index: Any, last: Any = None) -> VariableTracker:
        key = tx.key_of(index)
        value = self.get(tx, key)
        if value is None:
            raise tx.error_of(KeyError, [index])
        self.guard_order(tx)
        tracker = self.keys[key]
        self.remove(tx, key)
        if last is None or last.truth(tx):
            self.set(tx, key, tracker, value)
        else:
            self.entries = {key: value, **self.entries}
            self.keys = {key: tracker, **self.keys}
        return NONE

    def _m_clear(self, tx: Any) -> VariableTracker:
        self.guard_order(tx)
        tx.mutating(self)
        self.entries.clear()
        self.keys.clear()
        return NONE

    def _m_copy(self, tx: Any) -> VariableTracker:
        self.guard_order(tx)
        return DictVariable(dict(self.entries), dict(self.keys), kind=self.kind, factory=self.factory)

    def _m_update(self, tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
        if args:
            tx.dict_update(self, args[0])
        for name, value in kwargs.items():
            self.set(tx, name, ConstantVariable(name), value)
        return NONE

    def _m_keys(self, tx: Any) -> VariableTracker:
        return DictViewVariable(self, "keys")

    def _m_values(self, tx: Any) -> VariableTracker:
        return DictViewVariable(self, "values")

    def _m_items(self, tx: Any) -> VariableTracker:
        return DictViewVariable(self, "items")

    def reconstruct(self, cg: Any) -> None:
        cg.build_object(self)

    def __repr__(self) -> str:
        return f"{self.kind.__name__} of {len(self.entries)}"


class DictViewVariable(VariableTracker):
    """``keys()``, ``values()`` or ``items()`` of a dict."""

    __slots__ = ("owner", "view")

    def __init__(self, owner: DictVariable, view: str) -> None:
        self.source = None
        self.owner = owner
        self.view = view

    def python_type(self) -> type:
        return type(getattr({}, self.view)())

    def children(self) -> list[Any]:
        return [self.owner]

    def list(self, tx: Any) -> list[VariableTracker]:
        """What the view shows now."""
        if self.view == "keys":
            return self.owner.key_list(tx)
        values = self.owner.value_list(tx)
        if self.view == "values":
            return values
        return [tx.tuple_of([k, v]) for k, v in zip(self.owner.key_list(tx), values, strict=True)]

    def truth(self, tx: Any) -> bool:
        return self.owner.truth(tx)

    def length(self, tx: Any) -> VariableTracker:
        return self.owner.length(tx)

    def iterator(self, tx: Any) -> VariableTracker:
        return tx.dict_iterator(self.owner, self.view)

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        if self.view == "keys":
            return self.owner.contains(tx, item)
        return tx.list_variable(self.list(tx)).contains(tx, item)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.native_attribute(self, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if self.view == "values":
            return tx.native_method(self, name, args, kwargs)
        return tx.set_of(self.list(tx)).method(tx, name, args, kwargs)

    def reconstruct(self, cg: Any) -> None:
        cg.call_method(self.owner, self.view)


def _constant(value: Any) -> Any:
    if not isinstance(value, VariableTracker):
        raise NotConstant(repr(value))
    return value.as_constant()


KINDS = (dict, OrderedDict, defaultdict, MappingProxyType)
"""Types that ``DictVariable`` stands for."""
