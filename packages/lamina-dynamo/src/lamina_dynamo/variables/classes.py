"""Classes, ``super()``, modules, and built-in functions and methods as values."""

from __future__ import annotations

import enum
from types import FunctionType
from typing import Any

from ..errors import Unsupported
from ..source import Attr, TypeAttr
from .base import Args, Kwargs, NotConstant, VariableTracker
from .constant import ConstantVariable
from .functions import BoundMethodVariable
from .known import KnownVariable
from .objects import MISSING, NativeMethodVariable, UserObjectVariable, type_lookup

__all__ = [
    "BuiltinVariable", "ClassVariable", "DisabledVariable", "MethodDescriptorVariable", "ModuleVariable",
    "OpaqueVariable", "SuperVariable",
]  # fmt: skip


class ClassVariable(KnownVariable):
    """A class of the caller or a built-in one."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.instantiate(self, args, kwargs)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        cls = self.value
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantVariable(getattr(cls, name))
        if name == "__class__":
            return tx.wrap(type(cls), None)
        if name == "__dict__":
            raise Unsupported("the __dict__ of a class")
        if name == "__mro__":
            return tx.tuple_of([tx.class_variable(c, None) for c in cls.__mro__])
        raw = tx.type_attribute(cls, self.source, name)
        if raw is MISSING:
            return self._from_metaclass(tx, name)
        source = self.source and TypeAttr(self.source, name)
        if isinstance(raw, FunctionType):
            return tx.wrap(raw, source)
        if isinstance(raw, staticmethod):
            return tx.wrap(raw.__func__, source and Attr(source, "__func__"))
        if isinstance(raw, classmethod):
            return BoundMethodVariable(tx.wrap(raw.__func__, source and Attr(source, "__func__")), self)
        if isinstance(cls, enum.EnumMeta) or type_lookup(type(raw), "__get__") is not MISSING:
            return self._read(tx, name)
        return tx.wrap(raw, source)

    def _read(self, tx: Any, name: str) -> VariableTracker:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            raise tx.observed(error) from None
        return tx.wrap(value, self.source and Attr(self.source, name))

    def _from_metaclass(self, tx: Any, name: str) -> VariableTracker:
        raw = type_lookup(type(self.value), name)
        if isinstance(raw, FunctionType):
            return BoundMethodVariable(tx.wrap(raw, None), self)
        if raw is not MISSING and type_lookup(type(raw), "__get__") is not MISSING and name == "mro":
            return NativeMethodVariable(self, name, raw)
        if raw is MISSING and self.source is not None:
            tx.guard_attr_absent(self.source, name)
        return self._read(tx, name)

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        raise Unsupported(f"assignment to attribute {name!r} of class {self.value.__name__}")

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__new__" and type_lookup(self.value, "__new__") in tx.NATIVE_NEW:
            return tx.native_new(args[0], args[1:], kwargs)
        return self.getattr(tx, name).call(tx, args, kwargs)

    def iterator(self, tx: Any) -> VariableTracker:
        if isinstance(self.value, enum.EnumMeta):
            return tx.iterator_over([self.getattr(tx, member.name) for member in self.value])
        hook = type_lookup(type(self.value), "__iter__")
        if isinstance(hook, FunctionType):
            return tx.wrap(hook, None).call(tx, [self], {})
        raise tx.error(TypeError, f"{type(self.value).__name__!r} object is not iterable")

    def length(self, tx: Any) -> VariableTracker:
        if isinstance(self.value, enum.EnumMeta):
            return ConstantVariable(len(self.value))
        raise tx.error(TypeError, f"object of type {type(self.value).__name__!r} has no len()")

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        return tx.call_native(lambda c, i: i in c, [self, item], {})

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        if isinstance(self.value, enum.EnumMeta):
            try:
                return self.getattr(tx, self.value[index.as_constant()].name)
            except KeyError as error:
                raise tx.observed(error) from None
        hook = type_lookup(self.value, "__class_getitem__")
        if isinstance(hook, classmethod) and isinstance(hook.__func__, FunctionType):
            return tx.call_native(lambda c, i: c[i], [self, index], {})
        return tx.call_native(lambda c, i: c[i], [self, index], {})

    def __repr__(self) -> str:
        return f"class {self.value.__name__}"


class SuperVariable(VariableTracker):
    """``super(start, instance)``: attributes from the classes behind ``start`` in the instance's mro."""

    __slots__ = ("first", "instance", "start")

    def __init__(self, start: Any, instance: VariableTracker, source: Any = None) -> None:
        self.source = source
        self.first = start
        self.start: type = start.as_constant()
        self.instance = instance

    def python_type(self) -> type:
        return super

    def children(self) -> list[Any]:
        return [self.first, self.instance]

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(super, [self.first, self.instance])

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        instance = self.instance
        is_class = self._on_class()
        cls = instance.value if is_class else instance.python_type()  # type: ignore[attr-defined]
        mro = cls.__mro__
        source = tx.super_source(instance, is_class, self.start, name)
        for base in mro[mro.index(self.start) + 1 :]:
            if name in base.__dict__:
                return self._bind(tx, base.__dict__[name], name, source)
        if source is not None:
            tx.guard_super_lacks(source)
        raise tx.error(AttributeError, f"'super' object has no attribute {name!r}")

    def _on_class(self) -> bool:
        """``super(C, cls)`` in a classmethod, as opposed to ``super(Meta, cls)`` in a method of a metaclass."""
        return isinstance(self.instance, ClassVariable) and issubclass(self.instance.value, self.start)

    def _bind(self, tx: Any, raw: Any, name: str, source: Any) -> VariableTracker:
        instance = self.instance
        is_class = self._on_class()
        if isinstance(raw, FunctionType):
            function = tx.wrap_reached_function(raw, source)
            return function if is_class else BoundMethodVariable(function, instance)
        if isinstance(raw, classmethod):
            owner = instance if is_class else tx.class_variable(instance.python_type(), None)
            inner = source and Attr(source, "__func__")
            return BoundMethodVariable(tx.wrap_reached_function(raw.__func__, inner), owner)
        if isinstance(raw, staticmethod):
            return tx.wrap_reached_function(raw.__func__, source and Attr(source, "__func__"))
        if isinstance(raw, property):
            getter = tx.wrap_reached_function(raw.fget, source and Attr(source, "fget"))
            return getter.call(tx, [instance], {})
        tx.guard_id(raw, source)
        if name == "__new__":
            return BuiltinVariable(raw)
        if callable(raw):
            return NativeMethodVariable(instance, name, raw)
        return tx.wrap(raw, None)

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        raise Unsupported("assignment through super()")


class ModuleVariable(KnownVariable):
    """An imported module."""

    __slots__ = ()

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.module_attribute(self, name)

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        raise Unsupported(f"assignment to attribute {name!r} of module {self.value.__name__}")

    def __repr__(self) -> str:
        return f"module {self.value.__name__}"


class BuiltinVariable(KnownVariable):
    """A function written in C."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.call_builtin(self.value, args, kwargs)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        try:
            return tx.wrap_constant(getattr(self.value, name))
        except AttributeError as error:
            raise tx.observed(error) from None

    def __repr__(self) -> str:
        return f"built-in {getattr(self.value, '__name__', self.value)}"


class MethodDescriptorVariable(BuiltinVariable):
    """A method of a built-in type, unbound: ``list.append``, ``object.__setattr__``."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        if not args:
            raise tx.error(TypeError, f"unbound method {self.value.__qualname__}() needs an argument")
        return tx.native_call(self.value, self.value.__name__, args[0], args[1:], kwargs)


class DisabledVariable(KnownVariable):
    """A function that the user excluded from capture."""

    __slots__ = ("reason",)

    def __init__(self, value: Any, reason: str, source: Any = None) -> None:
        super().__init__(value, source)
        self.reason = reason

    def as_constant(self) -> Any:
        raise NotConstant(repr(self))  # it runs where the user calls it, not while tracing

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        raise Unsupported(f"call of {self!r}, which is excluded from capture ({self.reason})")

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.wrap(getattr(self.value, name), self.source and Attr(self.source, name))

    def __repr__(self) -> str:
        return f"{getattr(self.value, '__qualname__', self.value)}"


class OpaqueVariable(KnownVariable):
    """An object of the caller that is only passed around and read by plain attribute access."""

    __slots__ = ()

    def truth(self, tx: Any) -> bool:
        return bool(self.value)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            raise tx.observed(error) from None
        if self.source is not None:
            return tx.wrap(value, Attr(self.source, name))
        made = tx.wrap(value, None)  # what an object that never changes holds does not change either
        return OpaqueVariable(value) if isinstance(made, UserObjectVariable) else made

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        raise Unsupported(f"call of {self!r}")

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        return tx.call_native(lambda v, i: v[i], [self, index], {})

    def __repr__(self) -> str:
        return f"{type(self.value).__name__} object"
