"""Bytecode that makes objects: containers, instances, cells, functions."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from ..emit import Emitter
from ..errors import InternalError, Unsupported
from ..variables import (
    NONE,
    CellVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    NestedFunctionVariable,
    SetVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    is_none,
)  # fmt: skip
from . import making

__all__ = ["ObjectRebuilder"]


class ObjectRebuilder:
    """The part of ``Rebuilder`` that makes objects."""

    emitter: Emitter
    tx: Any
    later: list[Any]
    cyclic: set[int]

    def build_object(self, value: Any) -> None:
        """Push a new object: container, instance, cell."""
        if isinstance(value, CellVariable):
            self._build_cell(value)
        elif isinstance(value, UserObjectVariable):
            self._build_instance(value)
        elif id(value) in self.cyclic:
            self._build_empty(value)
        else:
            self._build_container(value)

    def _build_container(self, value: Any) -> None:
        if isinstance(value, DequeVariable):
            items = TupleVariable(list(value.elements))
            self.call_constant(deque, [items, ConstantVariable(value.maxlen)])
        elif isinstance(value, ListVariable):
            for item in value.elements:
                self.load(item)
            self.emitter.build_list(len(value.elements))
        elif isinstance(value, SetVariable):
            for item in value.members.values():
                self.load(item)
            self.emitter.build_set(len(value.members))
            if value.kind is frozenset:
                self._wrap_in(frozenset)
        elif isinstance(value, DictVariable):
            self._build_dict(value)
        else:
            raise InternalError(f"no rule to rebuild {value!r}")

    def _build_dict(self, value: DictVariable) -> None:
        for key, item in value.entries.items():
            self.load(value.keys[key])
            self.load(item)
        self.emitter.build_map(len(value.entries))
        if value.kind is OrderedDict:
            self._wrap_in(OrderedDict)
        elif value.kind is defaultdict:
            name = self.emitter.new_temp()
            self.emitter.store_temp(name)
            self.emitter.prepare_call(lambda: self.emitter.load_const(defaultdict))
            self.load(value.factory or NONE)
            self.emitter.load_temp(name)
            self.emitter.call(2)
        elif value.kind is not dict:
            raise Unsupported(f"rebuilding a {value.kind.__name__}")

    def _wrap_in(self, function: Any) -> None:
        """(value -- function(value))."""
        name = self.emitter.new_temp()
        self.emitter.store_temp(name)
        self.emitter.call_function(function, lambda: self.emitter.load_temp(name), 1)

    def _build_empty(self, value: Any) -> None:
        """An empty container that is filled when everything is made: it is part of a cycle."""
        if isinstance(value, (DequeVariable, SetVariable)) or not isinstance(value, (ListVariable, DictVariable)):
            raise Unsupported("a set or deque that contains itself")
        if isinstance(value, ListVariable):
            self.emitter.build_list(0)
        else:
            self.emitter.build_map(0)
        self.keep(value)
        self.later.append(lambda: self._fill_container(value))

    def _fill_container(self, value: Any) -> None:
        self.emitter.prepare_call(lambda: self.emitter.load_const(making.fill))
        self.load(value)
        if isinstance(value, ListVariable):
            for item in value.elements:
                self.load(item)
            self.emitter.build_list(len(value.elements))
        else:
            for key, item in value.entries.items():
                self.load(value.keys[key])
                self.load(item)
            self.emitter.build_map(len(value.entries))
        self.emitter.call(2)
        self.emitter.pop()

    def _build_cell(self, value: CellVariable) -> None:
        self.emitter.call_runtime("new_cell", lambda: None, 0)
        self.keep(value)
        if value.content is not None:
            self.later.append(lambda: self._fill_cell(value))

    def _fill_cell(self, value: CellVariable) -> None:
        self.load(value.content)
        self.load(value)
        self.emitter.store_attr("cell_contents")

    def _build_instance(self, value: UserObjectVariable) -> None:
        """Through ``cls.__new__`` of the built-in base; attributes are set when everything is made."""
        if value.real is not None and making.is_value(value.cls):
            self.emitter.load_const(value.real)
            self.keep(value)
            return
        if value.native is None and not making.can_make(value.cls):
            reason = f"an object of type {value.cls.__qualname__} that C code made can not be made again"
            steps = self.tx.births.get(id(value))
            if steps is None:
                raise Unsupported(reason)
            self.tx.break_at(steps, reason)
        native = value.native
        if isinstance(value, ExceptionVariable):
            args: Any = value.args
        elif native is not None and not isinstance(native, (ListVariable, DictVariable, SetVariable)):
            args = TupleVariable([native])
        else:
            args = TupleVariable([])
        self.emitter.prepare_call(lambda: self.emitter.load_const(making.new_instance))
        self._load_class(value)
        self.load(args)
        self.emitter.call(2)
        self.keep(value)
        self.later.append(lambda: self._fill_instance(value))

    def _load_class(self, value: UserObjectVariable) -> None:
        if value.cls_source is not None:
            self.emitter.load_source(value.cls_source)
        else:
            self.emitter.load_const(value.cls)

    def _fill_instance(self, value: UserObjectVariable) -> None:
        if value.attrs is not None and value.attrs.entries:
            self.emitter.prepare_call(lambda: self.emitter.load_const(making.set_attributes))
            self.load(value)
            self._build_dict(value.attrs)
            self.emitter.call(2)
            self.emitter.pop()
        for name, item in value.slots.items():
            if item is not None:
                self._store_slot(value, name, item)
        native = value.native
        if isinstance(native, (ListVariable, DictVariable, SetVariable)):
            self.emitter.prepare_call(lambda: self.emitter.load_const(making.fill))
            self.load(value)
            self._build_native(native)
            self.emitter.call(2)
            self.emitter.pop()
        if isinstance(value, ExceptionVariable):
            self._fill_exception(value)

    def _build_native(self, native: Any) -> None:
        """(-- values) of the built-in part of an instance; a defaultdict's factory goes along."""
        if isinstance(native, DictVariable) and native.kind is OrderedDict:
            native = DictVariable(native.entries, native.keys)
        self._build_container(native)

    def _store_slot(self, value: Any, name: str, item: Any) -> None:
        self.emitter.prepare_call(lambda: self.emitter.load_const(object.__setattr__))
        self.load(value)
        self.emitter.load_const(name)
        self.load(item)
        self.emitter.call(3)
        self.emitter.pop()

    def _fill_exception(self, value: ExceptionVariable) -> None:
        for name, item in (("__cause__", value.cause), ("__context__", value.context)):
            if not is_none(item):
                self.load(item)
                self.load(value)
                self.emitter.store_attr(name)
        if value.suppress and is_none(value.cause):
            self.emitter.load_const(True)
            self.load(value)
            self.emitter.store_attr("__suppress_context__")
        if value.where:
            entries = tuple(value.where)
            self.emitter.call_runtime("add_traceback", lambda: (self.load(value), self.emitter.load_const(entries)), 2)
            self.emitter.pop()

    def build_function(self, value: NestedFunctionVariable) -> None:
        """Push a function made in the region."""
        emitter = self.emitter
        self.emitter.prepare_call(lambda: emitter.load_const(making.new_function))
        emitter.load_const(value.code)
        self.load_globals(value)
        for part in (value.positional, value.cells):
            for item in part:
                self.load(item)
            emitter.build_tuple(len(part))
        for key, item in value.kwonly.items():
            emitter.load_const(key)
            self.load(item)
        emitter.build_map(len(value.kwonly))
        emitter.call(5)
        self.keep(value)
        changed = {k: v for k, v in value.attributes.items() if _is_changed(value, k, v)}
        if changed:
            self.later.append(lambda: [self._store_function_attribute(value, k, v) for k, v in changed.items()])

    def _store_function_attribute(self, value: Any, name: str, item: Any) -> None:
        self.load(item)
        self.load(value)
        self.emitter.store_attr(name)

    def load_globals(self, owner: Any) -> None:
        """Push the globals of a function."""
        while isinstance(owner, NestedFunctionVariable):
            owner = owner.owner
        if owner.globals is self.tx.root.function.globals:
            self.emitter.prepare_call(lambda: self.emitter.load_const(globals_of_caller))
            self.emitter.call(0)
        elif owner.source is not None:
            self.emitter.load_source(owner.source)
            self.emitter.load_attr("__globals__")
        else:
            self.emitter.load_const(owner.globals)


def _is_changed(value: NestedFunctionVariable, name: str, item: VariableTracker) -> bool:
    if not isinstance(item, ConstantVariable):
        return True
    default = {"__name__": value.code.co_name, "__qualname__": value.code.co_qualname}.get(name)
    if name in ("__module__", "__doc__"):
        return False
    return item.value != default


globals_of_caller = globals
