"""Making instances: ``cls(...)``, ``__new__`` of built-in types, what a class holds under a name."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque
from types import FunctionType, MappingProxyType
from typing import Any

from ..errors import Unsupported
from ..source import TypeAttr
from ..variables import (
    MISSING,
    ClassVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    SetVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    type_lookup,
)  # fmt: skip
from .polyfills import BY_FUNCTION

__all__ = ["Instances"]

_NEW_OF: dict[type, Any] = {
    list: lambda: ListVariable([]),
    deque: lambda: DequeVariable([]),
    dict: lambda: DictVariable(),
    OrderedDict: lambda: DictVariable(kind=OrderedDict),
    defaultdict: lambda: DictVariable(kind=defaultdict),
    set: lambda: SetVariable({}),
}
_IMMUTABLE_BASES = (tuple, frozenset, int, float, str, bytes)


class Instances:
    """The part of the translator that makes instances."""

    NATIVE_NEW = frozenset(c.__new__ for c in (object, *_NEW_OF, *_IMMUTABLE_BASES, BaseException))
    class_guards: set[tuple[type, str]]

    # -- classes ---------------------------------------------------------------------------------------

    def type_attribute(self, cls: type, source: Any, name: str) -> Any:
        """What a class holds under a name; guarded when it is a descriptor, since wrapping does not see those."""
        raw = type_lookup(cls, name)
        if raw is MISSING or source is None or isinstance(raw, FunctionType):
            return raw
        key = (cls, name)
        if key not in self.class_guards and type_lookup(type(raw), "__get__") is not MISSING:
            self.class_guards.add(key)
            if cls.__flags__ & (1 << 9):  # a heap type: its attributes can change
                self.guard_id(raw, TypeAttr(source, name))
        return raw

    def instantiate(self, variable: ClassVariable, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """``cls(*args, **kwargs)``."""
        self.direct_call = False
        cls = variable.value
        rule = self.class_rules.get(cls)
        if rule is not None:
            return rule(self, *args, **kwargs)
        replacement = BY_FUNCTION.get(cls)
        if replacement is not None:
            return self.polyfill(replacement.__name__, args, kwargs)
        if self._makes_constants(cls):
            return self.call_constant_maker(cls, args, kwargs)
        metaclass = type(cls)
        caller = type_lookup(metaclass, "__call__")
        if isinstance(cls, enum.EnumMeta):
            return self.call_native(cls, args, kwargs)
        if isinstance(caller, FunctionType):
            return self.wrap_trusted_function(caller).call(self, [variable, *args], kwargs)
        id_ = self.frontend.operator(cls)
        if id_ is not None:
            return self.operator(id_, args, kwargs, cls)
        return self.default_instantiate(variable, args, kwargs)

    def default_instantiate(self, variable: ClassVariable, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """``type.__call__``: ``__new__``, then ``__init__``."""
        cls = variable.value
        maker = type_lookup(cls, "__new__")
        if isinstance(maker, staticmethod):
            maker = maker.__func__
        if isinstance(maker, FunctionType):
            made = (
                self.wrap(maker, variable.source and TypeAttr(variable.source, "__new__"))
                if variable.source is None
                else (self.wrap_trusted_function(maker))
            )
            instance = made.call(self, [variable, *args], kwargs)
        elif cls is bytes:
            return self.call_native(cls, args, kwargs)
        elif maker in self.NATIVE_NEW or (isinstance(maker, type(object.__new__)) and issubclass(cls, BaseException)):
            instance = self.native_new(variable, args, kwargs)
        elif self.is_pure_type(cls):
            return self.call_native(cls, args, kwargs)
        else:
            raise Unsupported(f"making an instance of {cls.__module__}.{cls.__qualname__}, which C code does")
        if not issubclass(instance.python_type(), cls):
            return instance
        initializer = type_lookup(cls, "__init__")
        if isinstance(initializer, FunctionType):
            source = variable.source and TypeAttr(variable.source, "__init__")
            self.wrap(initializer, source).call(self, [instance, *args], kwargs)
        elif initializer is not object.__init__:
            self.native_call(initializer, "__init__", instance, args, kwargs)
        elif (args or kwargs) and maker is object.__new__:
            raise self.error(TypeError, f"{cls.__name__}() takes no arguments")
        return instance

    def is_pure_type(self, cls: type) -> bool:
        """A built-in type whose instances are immutable values."""
        return (
            cls not in (bytearray, memoryview, MappingProxyType)
            and cls.__module__
            in (
                "builtins",
                "decimal",
                "fractions",
                "datetime",
                "_decimal",
                "uuid",
            )
            and not cls.__flags__ & (1 << 9)
        )

    def native_new(self, variable: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """``object.__new__`` and those of the built-in containers."""
        if not isinstance(variable, ClassVariable):
            raise Unsupported("__new__ of something that is not a class")
        cls = variable.value
        if cls in (tuple, frozenset, list, dict, set, int, float, str, bytes):
            return self.instantiate(variable, args, kwargs)
        if getattr(cls, "__abstractmethods__", None):
            names = ", ".join(sorted(cls.__abstractmethods__))
            raise self.error(TypeError, f"Can't instantiate abstract class {cls.__name__} with abstract method {names}")
        attrs = DictVariable() if cls.__dictoffset__ != 0 else None
        if issubclass(cls, BaseException):
            made: UserObjectVariable = ExceptionVariable(cls, TupleVariable(list(args)), cls_source=variable.source)
            made.attrs = DictVariable()
        else:
            native = self._native_of(cls, args, kwargs)
            made = UserObjectVariable(cls, attrs=attrs, native=native, cls_source=variable.source)
        if made.attrs is not None:
            made.attrs.owner = made
            made.attrs.order_guarded = True
        return made

    def _native_of(self, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
        for base, make in _NEW_OF.items():
            if base in cls.__mro__ and not (
                base is dict and (OrderedDict in cls.__mro__ or defaultdict in cls.__mro__)
            ):
                return make()
        for base in _IMMUTABLE_BASES:
            if base in cls.__mro__:
                return self.class_rules[base](self, *args, **kwargs)
        return None

    def call_descriptor(self, raw: Any, source: Any, getter: FunctionType, instance: Any) -> VariableTracker:
        """``descriptor.__get__(instance, cls)`` written in Python."""
        descriptor = self.wrap(raw, source)
        owner = self.class_variable(instance.cls, instance.cls_source)
        return self.wrap_trusted_function(getter).call(self, [descriptor, instance, owner], {})
