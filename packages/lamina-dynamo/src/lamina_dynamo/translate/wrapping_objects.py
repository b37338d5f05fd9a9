"""Trackers of functions, classes and instances of the caller."""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from types import (
    CellType,
    FunctionType,
    MethodType,
    ModuleType,
)  # fmt: skip
from typing import Any

from .. import guard as g
from ..errors import Unsupported
from ..source import (
    Attr,
    DictItem,
    InstanceAttr,
    Item,
    MethodFunction,
    MethodSelf,
)
from ..variables import (
    MISSING,
    ArrayMethodVariable,
    BoundMethodVariable,
    BuiltinVariable,
    CellVariable,
    ClassVariable,
    ConstantVariable,
    DictVariable,
    DisabledVariable,
    ExceptionVariable,
    Lazy,
    ListVariable,
    MethodDescriptorVariable,
    ModuleVariable,
    OperatorVariable,
    PartialVariable,
    TracedFunctionVariable,
    TupleVariable,
    UserFunctionVariable,
    UserObjectVariable,
    VariableTracker,
    cell_of,
    type_lookup,
)  # fmt: skip
from .builtin_rules import FUNCTION_RULES

__all__ = ["WrappingObjects", "g_weak"]


class WrappingObjects:
    """The part of the translator that makes trackers of objects."""

    def _wrap_switch(self, value: Any, source: Any) -> VariableTracker:
        """A compiled or disabled function: the first is its original here, the second a break when it is called."""
        self.guard_id(value, source)
        reason = self.config.disabled_reason(value)
        if reason is None:
            return self.wrap(value.function, source and Attr(source, "function"))
        return DisabledVariable(value, reason, source)

    def _wrap_function(self, value: Any, source: Any) -> VariableTracker:
        if self.traces and self.frontend.is_traced(value):
            self.guard_id(value, source)
            return TracedFunctionVariable(value, source)
        id_ = self.frontend.operator(value)
        if id_ is not None:
            self.guard_id(value, source)
            return OperatorVariable(id_, value, source)
        return UserFunctionVariable(value, source)

    def wrap_trusted_function(self, value: Any) -> VariableTracker:
        """A function that a guard elsewhere pins; its own globals and cells are reached weakly."""
        if not isinstance(value, FunctionType):
            return self.wrap(value, None)
        return self._wrap_function(value, g_weak(value))

    def wrap_reached_function(self, value: Any, source: Any) -> VariableTracker:
        """A function that a source reaches; without one it is trusted."""
        return self.wrap_trusted_function(value) if source is None else self.wrap(value, source)

    def _wrap_method(self, value: Any, source: Any) -> VariableTracker:
        id_ = self.frontend.operator(value)
        if id_ is not None and not self.frontend.is_array(value.__self__):
            self.guard_id(value, source)
            return OperatorVariable(id_, value, source)
        if source is not None:
            self.guard(g.type_is(source, MethodType))
        function = self.wrap(value.__func__, source and MethodFunction(source))
        owner = self.wrap(value.__self__, source and MethodSelf(source))
        name = value.__func__.__name__ if isinstance(value.__func__, FunctionType) else ""
        array = self.frontend.is_array(value.__self__)
        if array and name and getattr(type(value.__self__), name, None) is value.__func__:
            return ArrayMethodVariable(function, owner, source, name)
        return BoundMethodVariable(function, owner, source)

    def _wrap_builtin(self, value: Any, source: Any) -> VariableTracker:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            self.guard_id(value, source)
        elif source is not None and not isinstance(owner, type):  # made anew at each access: its parts are guarded
            self.guard(g.equals(Attr(source, "__name__"), value.__name__))
        id_ = None if value in FUNCTION_RULES else self.frontend.operator(value)
        if id_ is not None:
            return OperatorVariable(id_, value, source)
        if owner is not None and not isinstance(owner, (ModuleType, type)):
            return self._wrap_bound_builtin(value, owner, source)
        return BuiltinVariable(value, source)

    def _wrap_bound_builtin(self, value: Any, owner: Any, source: Any) -> VariableTracker:
        inner = self.wrap(owner, source and Attr(source, "__self__"))
        return self.bound_native(inner, value.__name__)

    def _wrap_descriptor(self, value: Any, source: Any) -> VariableTracker:
        self.guard_id(value, source)
        id_ = self.frontend.operator(value)
        return MethodDescriptorVariable(value, source) if id_ is None else OperatorVariable(id_, value, source)

    def _wrap_partial(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, functools.partial))
            self.guard(g.length(Attr(source, "args"), len(value.args)))
            self.guard(g.dict_keys(Attr(source, "keywords"), list(value.keywords)))
        function = self.wrap(value.func, source and Attr(source, "func"))
        args = [Lazy(v, source and Item(Attr(source, "args"), i)) for i, v in enumerate(value.args)]
        kwargs = {k: Lazy(v, source and DictItem(Attr(source, "keywords"), k)) for k, v in value.keywords.items()}
        return PartialVariable(function, args, kwargs, source)

    def wrap_cell(self, cell: CellType, source: Any) -> CellVariable:
        """The tracker of a cell of the caller."""
        found = self.seen.get(id(cell))
        if found is not None:
            if source is not None and found[1].source is not None and found[1].source != source:
                self.guard(g.same_object(found[1].source, source))
            return found[1]  # type: ignore[return-value]
        made = cell_of(cell, source)
        if made.content is None and source is not None:
            self.guard(g.cell_state(source, False))
        self.seen[id(cell)] = (cell, made)
        return made

    def _wrap_instance(self, value: Any, source: Any) -> VariableTracker:
        cls = type(value)
        if source is not None:
            self.guard(g.type_is(source, cls))
        made = UserObjectVariable(cls, real=value, source=source)
        if source is None:
            self.births[id(made)] = self.frame.steps_to_break()
        self.seen[id(value)] = (value, made)
        self._fill_instance(made, value, source)
        return made

    def _fill_instance(self, made: UserObjectVariable, value: Any, source: Any) -> None:
        try:
            table = object.__getattribute__(value, "__dict__")
        except AttributeError:
            table = None
            if _keeps_attributes_itself(value):
                raise Unsupported(f"an instance of {type(value).__name__}, which keeps its attributes itself") from None
        if type(table) is dict:
            attrs = DictVariable({}, {}, source and Attr(source, "__dict__"))
            attrs.owner = made
            for name, item in table.items():
                attrs.entries[name] = Lazy(item, source and InstanceAttr(source, name))
                attrs.keys[name] = ConstantVariable(name)
                attrs.real_keys.append(name)
            made.attrs = attrs
        for base in _NATIVE_BASES:
            if isinstance(value, base):
                made.native = self._native_part(value, base, source)

    def _native_part(self, value: Any, base: type, source: Any) -> VariableTracker:
        if base is dict:
            native = DictVariable({}, {}, source, base)
            self._fill_dict(native, value, source)
            if isinstance(value, defaultdict):
                native.kind = defaultdict
                native.factory = self.wrap(value.default_factory, source and Attr(source, "default_factory"))
            return native
        if base in (list, tuple):
            elements = [
                Lazy(base.__getitem__(value, i), source and Item(source, i)) for i in range(base.__len__(value))
            ]
            if source is not None:
                self.guard(g.length(source, len(elements)))
            return (ListVariable if base is list else TupleVariable)(elements, source)
        if base in (int, float, str, bytes):
            if source is not None:
                self.guard(g.python_check(source, _Equals(value, base), f"{source} == {base(value)!r}"))
            return ConstantVariable(base(value))
        raise Unsupported(f"an instance of {type(value).__name__}, a subclass of {base.__name__}, as an input")

    def _wrap_exception(self, value: BaseException, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, type(value)))
        args = self.wrap(value.args, source and Attr(source, "args"))
        made = ExceptionVariable(type(value), args, real=value, source=source)
        self._fill_instance(made, value, source)
        return made

    def _wrap_module(self, value: Any, source: Any) -> VariableTracker:
        self.guard_id(value, source)
        return ModuleVariable(value, source)

    def class_variable(self, cls: type, source: Any) -> VariableTracker:
        """The tracker of a class that is known to be what it is (by a type guard)."""
        found = self.seen.get(id(cls))
        if found is not None:
            return found[1]
        made: VariableTracker = ClassVariable(cls, source)
        self.seen[id(cls)] = (cls, made)
        return made


def _keeps_attributes_itself(value: Any) -> bool:
    """Has it a ``__dict__`` that only its class's own attribute access in C finds (``threading.local``)?"""
    cls = type(value)
    python = (
        isinstance(type_lookup(cls, "__getattribute__"), FunctionType) or type_lookup(cls, "__getattr__") is not MISSING
    )
    return not python and hasattr(value, "__dict__")


class _Equals:
    """Equality of the built-in part of an instance."""

    __slots__ = ("base", "value")

    def __init__(self, value: Any, base: type) -> None:
        self.value = base(value)
        self.base = base

    def __call__(self, value: Any) -> bool:
        return self.base.__eq__(value, self.value) is True


def g_weak(value: Any) -> Any:
    """A source for an object that no path leads to."""
    from ..source import Const, WeakObject

    try:
        return WeakObject(value)
    except TypeError:
        return Const(value)


_NATIVE_BASES = (dict, list, tuple, set, frozenset, int, float, str, bytes, deque)
