"""Bytecode for the side effects of the region: the caller's objects in their final state."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..errors import Unsupported
from ..source import FunctionGlobals
from ..variables import (
    MISSING,
    CellVariable,
    DequeVariable,
    DictVariable,
    ListVariable,
    ObjectKey,
    SetVariable,
    TensorVariable,
    UserObjectVariable,
    type_lookup,
)  # fmt: skip
from . import making

__all__ = ["EffectWriter"]

Apply = Callable[[], None]


class EffectWriter:
    """Loads the operands of all changes first (``load``); the functions it returns write the changes."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.changes = [(v, before) for v, before in tx.side_effects.changed() if _differs(v, before)]
        self.globals = list(tx.side_effects.globals.values())
        self.rebuilder: Any = None

    @property
    def is_empty(self) -> bool:
        """True when nothing of the caller changed."""
        return not self.changes and not self.globals

    def values(self) -> list[Any]:
        """Every value that a change stores."""
        found: list[Any] = []
        for variable, _ in self.changes:
            if isinstance(variable, TensorVariable):
                found.extend((variable.attributes or {}).values())
            else:
                found.extend(variable.children())
        found.extend(value for _, _, value, _ in self.globals if value is not None)
        return found

    def load(self, rebuilder: Any) -> list[Apply]:
        """Write the loads; returns what writes the changes."""
        self.rebuilder = rebuilder
        applies: list[Apply] = []
        for variable, before in self.changes:
            applies.extend(self._change(variable, before))
        for table, name, value, function in self.globals:
            applies.append(self._global(table, name, value, function))
        return applies

    def _temp(self, load: Callable[[], Any]) -> str:
        """A variable with what ``load`` pushes."""
        load()
        name = self.rebuilder.emitter.new_temp()
        self.rebuilder.emitter.store_temp(name)
        return name

    def _value(self, value: Any) -> str:
        return self._temp(lambda: self.rebuilder.load(value))

    def _change(self, variable: Any, before: Any) -> list[Apply]:
        if isinstance(variable, DictVariable):
            if variable.owner is not None:
                return self._attributes(variable, before)
            return self._dict(variable, before)
        if isinstance(variable, (ListVariable, SetVariable)):
            return [self._refill(variable)]
        if isinstance(variable, CellVariable):
            return [self._cell(variable)]
        if isinstance(variable, TensorVariable):
            attributes = variable.attributes or {}
            return [self._store_attribute(variable, k, v) for k, v in attributes.items()]
        if isinstance(variable, UserObjectVariable):
            return [self._store_attribute(variable, k, v) for k, v in variable.slots.items() if before.get(k) is not v]
        raise Unsupported(f"a change of {variable!r} that cannot be replayed")

    def _refill(self, variable: Any) -> Apply:
        emitter = self.rebuilder.emitter
        target = self._value(variable)
        contents = self._temp(lambda: self.rebuilder._build_container(_as_plain(variable)))

        def apply() -> None:
            emitter.prepare_call(lambda: emitter.load_const(making.fill))
            emitter.load_temp(target)
            emitter.load_temp(contents)
            emitter.call(2)
            emitter.pop()

        return apply

    def _dict(self, variable: DictVariable, before: dict[Any, Any]) -> list[Apply]:
        emitter = self.rebuilder.emitter
        if _order_changed(variable, before):
            return [self._refill(variable)]
        target = self._value(variable)
        applies: list[Apply] = []
        for key in before:
            if key not in variable.entries:
                applies.append(self._delete_item(target, key))
        for key, value in variable.entries.items():
            if key in before and _same(before[key], value):
                continue
            key_temp, value_temp = self._value(variable.keys[key]), self._value(value)

            def apply(key_temp: str = key_temp, value_temp: str = value_temp) -> None:
                emitter.load_temp(value_temp)
                emitter.load_temp(target)
                emitter.load_temp(key_temp)
                emitter.store_item()

            applies.append(apply)
        return applies

    def _delete_item(self, target: str, key: Any) -> Apply:
        emitter = self.rebuilder.emitter
        if isinstance(key, ObjectKey):
            key_temp = self._value(key.tracker)
        else:
            key_temp = self._temp(lambda: emitter.load_const(key))

        def apply() -> None:
            emitter.load_temp(target)
            emitter.load_temp(key_temp)
            emitter.delete_item()

        return apply

    def _attributes(self, variable: DictVariable, before: dict[Any, Any]) -> list[Apply]:
        owner = variable.owner
        emitter = self.rebuilder.emitter
        applies: list[Apply] = []
        for name in before:
            if name not in variable.entries:
                target = self._value(owner)

                def delete(name: str = name, target: str = target) -> None:
                    emitter.prepare_call(lambda: emitter.load_const(object.__delattr__))
                    emitter.load_temp(target)
                    emitter.load_const(name)
                    emitter.call(2)
                    emitter.pop()

                applies.append(delete)
        for name, value in variable.entries.items():
            if not (name in before and _same(before[name], value)):
                applies.append(self._store_attribute(owner, name, value))
        return applies

    def _store_attribute(self, owner: Any, name: str, value: Any) -> Apply:
        emitter = self.rebuilder.emitter
        target = self._value(owner)
        cls = owner.python_type() if not isinstance(owner, TensorVariable) else object
        plain = not isinstance(type_lookup(cls, "__setattr__"), FunctionType)
        hidden = (
            type_lookup(cls, name) is not MISSING
            and type_lookup(type(type_lookup(cls, name)), "__set__") is not MISSING
        )
        value_temp = None if value is None else self._value(value)

        def apply() -> None:
            if value_temp is None:
                emitter.load_temp(target)
                emitter.delete_attr(name)
            elif plain:
                emitter.load_temp(value_temp)
                emitter.load_temp(target)
                emitter.store_attr(name)
            else:
                setter = making.set_item_raw if hidden and name not in owner.slots else object.__setattr__
                emitter.prepare_call(lambda: emitter.load_const(setter))
                emitter.load_temp(target)
                emitter.load_const(name)
                emitter.load_temp(value_temp)
                emitter.call(3)
                emitter.pop()

        return apply

    def _cell(self, variable: CellVariable) -> Apply:
        emitter = self.rebuilder.emitter
        target = self._value(variable)
        value = None if variable.content is None else self._value(variable.content)

        def apply() -> None:
            if value is None:
                emitter.load_temp(target)
                emitter.delete_attr("cell_contents")
            else:
                emitter.load_temp(value)
                emitter.load_temp(target)
                emitter.store_attr("cell_contents")

        return apply

    def _global(self, table: dict[str, Any], name: str, value: Any, function: Any) -> Apply:
        emitter = self.rebuilder.emitter
        temp = None if value is None else self._value(value)
        if table is self.tx.root.function.globals:

            def apply() -> None:
                if temp is None:
                    emitter.delete_global(name)
                else:
                    emitter.load_temp(temp)
                    emitter.store_global(name)

            return apply
        while function.source is None and hasattr(function, "owner"):
            function = function.owner
        if function.source is None:
            raise Unsupported(f"assignment to the global {name!r} of another module")
        target = self._temp(lambda: emitter.load_source(FunctionGlobals(function.source)))

        def store() -> None:
            if temp is not None:
                emitter.load_temp(temp)
            emitter.load_temp(target)
            emitter.load_const(name)
            emitter.delete_item() if temp is None else emitter.store_item()

        return store


def _as_plain(variable: Any) -> Any:
    """The contents to build: a plain list, dict or set, whatever the caller's object is."""
    if isinstance(variable, DequeVariable):
        return ListVariable(list(variable.elements))
    if isinstance(variable, DictVariable):
        return DictVariable(variable.entries, variable.keys)
    return variable


def _same(before: Any, now: Any) -> bool:
    """Unchanged: the same tracker, or the lazy value it was made from."""
    if before is now:
        return True
    source = getattr(before, "source", None)
    return source is not None and getattr(now, "source", None) == source


def _differs(variable: Any, before: Any) -> bool:
    if isinstance(variable, ListVariable):
        return len(before) != len(variable.elements) or not all(map(_same, before, variable.elements))
    if isinstance(variable, DictVariable):
        return list(before) != list(variable.entries) or not all(
            _same(before[k], v) for k, v in variable.entries.items()
        )
    if isinstance(variable, SetVariable):
        return set(before) != set(variable.members)
    if isinstance(variable, CellVariable):
        return not _same(before, variable.content)
    if isinstance(variable, UserObjectVariable):
        return before != variable.slots
    return True


def _order_changed(variable: DictVariable, before: dict[Any, Any]) -> bool:
    kept = [k for k in before if k in variable.entries]
    return kept != [k for k in variable.entries if k in before] or list(variable.entries)[: len(kept)] != kept
