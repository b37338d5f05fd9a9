"""Instances of ordinary classes: attributes, descriptors and special methods as Python defines them."""

from __future__ import annotations

from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)  # fmt: skip
from typing import Any

from ..errors import Unsupported
from ..source import Attr, TypeAttr, TypeOf
from .base import Args, Kwargs, NotConstant, VariableTracker
from .constant import ConstantVariable
from .functions import BoundMethodVariable

__all__ = ["MISSING", "UserObjectVariable", "type_lookup"]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""No such attribute."""

_NATIVE_METHODS = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)


def type_lookup(cls: type, name: str) -> Any:
    """What the type or its bases hold under ``name``, without calling descriptors; ``MISSING`` when nothing."""
    for base in type.__dict__["__mro__"].__get__(cls):
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


class UserObjectVariable(VariableTracker):
    """An instance.

    ``real`` is the caller's object, None when the region made it; ``attrs`` its ``__dict__`` (a ``DictVariable``, None
    for a class without one); ``slots`` what was stored in slots; ``native`` the list, dict, tuple, set or constant
    that an instance of a subclass of a built-in type holds; ``cls_source`` where the class is.
    """

    __slots__ = ("attrs", "cls", "cls_source", "native", "real", "slots")

    def __init__(
        self,
        cls: type,
        *,
        real: Any = None,
        source: Any = None,
        attrs: Any = None,
        native: Any = None,
        cls_source: Any = None,
    ) -> None:
        self.source = source
        self.cls = cls
        self.real = real
        self.attrs = attrs
        self.slots: dict[str, VariableTracker | None] = {}
        self.native = native
        self.cls_source = cls_source if source is None else TypeOf(source)

    def python_type(self) -> type:
        return self.cls

    def as_constant(self) -> Any:
        raise NotConstant(repr(self))

    def children(self) -> list[Any]:
        found = [v for v in self.slots.values() if v is not None]
        if self.attrs is not None:
            found.append(self.attrs)
        if self.native is not None:
            found.append(self.native)
        return found

    # -- attributes ----------------------------------------------------------------------------------

    def type_attribute(self, tx: Any, name: str) -> Any:
        """What the class holds under ``name``, guarded; ``MISSING`` when nothing."""
        return tx.type_attribute(self.cls, self.cls_source, name)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        getter = type_lookup(self.cls, "__getattribute__")
        if isinstance(getter, FunctionType):
            bound = tx.wrap(getter, self.cls_source and TypeAttr(self.cls_source, "__getattribute__"))
            return bound.call(tx, [self, ConstantVariable(name)], {})
        try:
            return self.generic_getattr(tx, name)
        except tx.Observed as error:
            if type_lookup(self.cls, "__getattr__") is MISSING or not tx.is_exception(error, AttributeError):
                raise
        hook = self.type_attribute(tx, "__getattr__")
        return self.bind(tx, hook, "__getattr__").call(tx, [ConstantVariable(name)], {})

    def generic_getattr(self, tx: Any, name: str) -> VariableTracker:
        """``object.__getattribute__(self, name)``."""
        if name == "__class__":
            return tx.class_variable(self.cls, self.cls_source)
        if name == "__dict__" and self.attrs is not None:
            return self.attrs
        raw = self.type_attribute(tx, name)
        if raw is not MISSING and _is_data_descriptor(raw):
            return self.read_descriptor(tx, raw, name)
        if self.attrs is not None:
            value = self.attrs.get(tx, name)
            if value is not None:
                return value
        if raw is not MISSING:
            return self.bind(tx, raw, name)
        raise tx.attribute_error(self, name)

    def read_descriptor(self, tx: Any, raw: Any, name: str) -> VariableTracker:
        """A property, slot or other data descriptor."""
        source = self.cls_source and TypeAttr(self.cls_source, name)
        if type(raw) is property:
            return tx.wrap(raw.fget, source and Attr(source, "fget")).call(tx, [self], {})
        if isinstance(raw, MemberDescriptorType):
            if name in self.slots:
                value = self.slots[name]
            elif self.real is not None:
                value = self.slots[name] = self._read_real(tx, name)
            else:
                value = None
            if value is None:
                raise tx.attribute_error(self, name)
            return value
        if type(raw).__name__ == "_tuplegetter":
            return self.native.at(tx, raw.__reduce__()[1][0])
        getter = type_lookup(type(raw), "__get__")
        if isinstance(getter, FunctionType):
            return tx.call_descriptor(raw, source, getter, self)
        return self._read_real(tx, name)

    def _read_real(self, tx: Any, name: str) -> VariableTracker:
        """Read an attribute that C code computes, from the caller's object."""
        if self.real is None:
            raise Unsupported(f"attribute {name!r} of a {self.cls.__name__} made in the region")
        try:
            value = getattr(self.real, name)
        except AttributeError as error:
            tx.guard_attr_absent(self.source, name)
            raise tx.observed(error) from None
        return tx.wrap(value, self.source and Attr(self.source, name))

    def bind(self, tx: Any, raw: Any, name: str) -> VariableTracker:
        """A class attribute, read through the instance."""
        source = self.cls_source and TypeAttr(self.cls_source, name)
        if isinstance(raw, FunctionType):
            return BoundMethodVariable(tx.wrap(raw, source), self)
        if isinstance(raw, staticmethod):
            return tx.wrap(raw.__func__, source and Attr(source, "__func__"))
        if isinstance(raw, classmethod):
            function = tx.wrap(raw.__func__, source and Attr(source, "__func__"))
            return BoundMethodVariable(function, tx.class_variable(self.cls, self.cls_source))
        if isinstance(raw, (*_NATIVE_METHODS, BuiltinFunctionType)):
            return NativeMethodVariable(self, name, raw)
        getter = type_lookup(type(raw), "__get__")
        if isinstance(getter, FunctionType):
            return tx.call_descriptor(raw, source, getter, self)
        if getter is not MISSING and not isinstance(raw, type):
            if isinstance(raw, GetSetDescriptorType):
                return self._read_real(tx, name)
            operator = tx.frontend.operator(raw)
            if operator is not None:
                return BoundMethodVariable(tx.wrap(raw, source), self)
            raise Unsupported(f"descriptor {type(raw).__name__} {name!r} of {self.cls.__name__}")
        return tx.wrap(raw, source)

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        setter = type_lookup(self.cls, "__setattr__")
        if isinstance(setter, FunctionType):
            raw = self.type_attribute(tx, "__setattr__")
            self.bind(tx, raw, "__setattr__").call(tx, [ConstantVariable(name), value], {})
            return
        self.generic_setattr(tx, name, value)

    def generic_setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        """``object.__setattr__(self, name, value)``."""
        raw = type_lookup(self.cls, name)
        if raw is not MISSING and _is_data_descriptor(raw):
            self.type_attribute(tx, name)
            self._write_descriptor(tx, raw, name, value)
            return
        if self.attrs is None:
            raise tx.attribute_error(self, name)
        self.attrs.set(tx, name, ConstantVariable(name), value)

    def _write_descriptor(self, tx: Any, raw: Any, name: str, value: VariableTracker) -> None:
        source = self.cls_source and TypeAttr(self.cls_source, name)
        if type(raw) is property:
            if raw.fset is None:
                raise tx.error(AttributeError, f"property {name!r} of {self.cls.__name__!r} object has no setter")
            tx.wrap(raw.fset, source and Attr(source, "fset")).call(tx, [self, value], {})
        elif isinstance(raw, MemberDescriptorType):
            tx.mutating(self)
            self.slots[name] = value
        elif isinstance(type_lookup(type(raw), "__set__"), FunctionType):
            setter = tx.wrap(raw, source).getattr(tx, "__set__")
            setter.call(tx, [self, value], {})
        else:
            raise Unsupported(f"assignment to {name!r} of {self.cls.__name__}, which C code implements")

    def delattr(self, tx: Any, name: str) -> None:
        hook = type_lookup(self.cls, "__delattr__")
        if isinstance(hook, FunctionType):
            raw = self.type_attribute(tx, "__delattr__")
            self.bind(tx, raw, "__delattr__").call(tx, [ConstantVariable(name)], {})
            return
        self.generic_delattr(tx, name)

    def generic_delattr(self, tx: Any, name: str) -> None:
        """``object.__delattr__(self, name)``."""
        raw = type_lookup(self.cls, name)
        if isinstance(raw, MemberDescriptorType):
            tx.mutating(self)
            self.slots[name] = None
        elif self.attrs is not None and self.attrs.get(tx, name) is not None:
            self.attrs.remove(tx, name)
        else:
            raise tx.attribute_error(self, name)

    # -- operations ----------------------------------------------------------------------------------

    def special(self, tx: Any, name: str) -> VariableTracker | None:
        """The special method of the class, bound; None when it has none."""
        raw = self.type_attribute(tx, name)
        return None if raw is MISSING or raw is None else self.bind(tx, raw, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call(tx, args, kwargs)

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        method = self.special(tx, "__call__")
        if method is None:
            raise tx.error(TypeError, f"{self.cls.__name__!r} object is not callable")
        return method.call(tx, args, kwargs)

    def truth(self, tx: Any) -> bool:
        for name in ("__bool__", "__len__"):
            method = self.special(tx, name)
            if method is not None:
                return tx.truth(method.call(tx, [], {}))
        return True

    def _required(self, tx: Any, name: str, what: str) -> VariableTracker:
        method = self.special(tx, name)
        if method is None:
            raise tx.error(TypeError, f"{self.cls.__name__!r} object {what}")
        return method

    def length(self, tx: Any) -> VariableTracker:
        return self._required(tx, "__len__", "has no len()").call(tx, [], {})

    def iterator(self, tx: Any) -> VariableTracker:
        method = self.special(tx, "__iter__")
        if method is None:
            self._required(tx, "__getitem__", "is not iterable")
            return tx.polyfill("sequence_iterator", [self], {})
        return method.call(tx, [], {})

    def next(self, tx: Any) -> VariableTracker:
        return self._required(tx, "__next__", "is not an iterator").call(tx, [], {})

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        return self._required(tx, "__getitem__", "is not subscriptable").call(tx, [index], {})

    def setitem(self, tx: Any, index: VariableTracker, value: VariableTracker) -> None:
        self._required(tx, "__setitem__", "does not support item assignment").call(tx, [index, value], {})

    def delitem(self, tx: Any, index: VariableTracker) -> None:
        self._required(tx, "__delitem__", "doesn't support item deletion").call(tx, [index], {})

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        method = self.special(tx, "__contains__")
        if method is not None:
            return ConstantVariable(tx.truth(method.call(tx, [item], {})))
        found = any(e is item or tx.equal(e, item) for e in tx.unpack(self))
        return ConstantVariable(found)

    def reconstruct(self, cg: Any) -> None:
        cg.build_object(self)

    def __repr__(self) -> str:
        return f"{self.cls.__name__} object"


class NativeMethodVariable(VariableTracker):
    """A method that C code implements, bound to an instance of a user's class or to a built-in container."""

    __slots__ = ("name", "owner", "raw")

    def __init__(self, owner: VariableTracker, name: str, raw: Any) -> None:
        self.source = None
        self.owner = owner
        self.name = name
        self.raw = raw

    def python_type(self) -> type:
        return type([].append)

    def truth(self, tx: Any) -> bool:
        return True

    def children(self) -> list[Any]:
        return [self.owner]

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name in ("__name__", "__qualname__"):
            return ConstantVariable(getattr(self.raw, name))
        raise Unsupported(f"attribute {name!r} of built-in method {self.name}")

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.native_call(self.raw, self.name, self.owner, args, kwargs)

    def reconstruct(self, cg: Any) -> None:
        cg.load(self.owner)
        cg.load_attr(self.name)


def _is_data_descriptor(raw: Any) -> bool:
    kind = type(raw)
    if kind is FunctionType:
        return False
    return kind is property or type_lookup(kind, "__set__") is not MISSING
