"""Methods that C code implements: of containers, of ``object``, of subclasses of built-in types; and making
instances.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque
from types import FunctionType
from typing import Any

from ..errors import Unsupported
from ..guard import id_is
from ..source import TypeAttr
from ..variables import (
    FALSE,
    MISSING,
    NONE,
    TRUE,
    BoundMethodVariable,
    ClassVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    NativeMethodVariable,
    SequenceVariable,
    SetVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    type_lookup,
)  # fmt: skip
from .polyfills import BY_FUNCTION

__all__ = ["Natives"]

_NEW_OF: dict[type, Any] = {
    list: lambda: ListVariable([]),
    deque: lambda: DequeVariable([]),
    dict: lambda: DictVariable(),
    OrderedDict: lambda: DictVariable(kind=OrderedDict),
    defaultdict: lambda: DictVariable(kind=defaultdict),
    set: lambda: SetVariable({}),
}
_IMMUTABLE_BASES = (tuple, frozenset, int, float, str, bytes)
_BINARY = {"__add__": "+", "__mul__": "*", "__or__": "|", "__and__": "&", "__sub__": "-", "__xor__": "^", "__mod__":
"%",
           "__truediv__": "/", "__floordiv__": "//", "__pow__": "**"}  # fmt: skip
_REFLECTED = {"__radd__": "+", "__rmul__": "*", "__rsub__": "-", "__ror__": "|", "__rtruediv__": "/"}
_INPLACE = {"__iadd__": "+", "__imul__": "*", "__ior__": "|", "__iand__": "&", "__isub__": "-", "__ixor__": "^"}
_COMPARE = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__eq__": "==", "__ne__": "!="}


class Natives:
    """The part of the translator that stands in for C code of built-in types."""

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
            cls not in (bytearray, memoryview)
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

    # -- methods ---------------------------------------------------------------------------------------

    def bound_native(self, owner: VariableTracker, name: str) -> VariableTracker:
        """A built-in method as a value."""
        return NativeMethodVariable(owner, name, type_lookup(owner.python_type(), name))

    def native_attribute(self, owner: VariableTracker, name: str) -> VariableTracker:
        """An attribute of a built-in container: one of its methods."""
        kind = owner.python_type()
        if name == "__class__":
            return self.class_variable(kind, None)
        raw = type_lookup(kind, name)
        if raw is MISSING:
            raise self.attribute_error(owner, name)
        if isinstance(raw, classmethod) or type(raw).__name__ == "classmethod_descriptor":
            return NativeMethodVariable(self.class_variable(kind, None), name, raw)
        if name == "__doc__":
            return ConstantVariable(raw)
        if name == "maxlen" and isinstance(owner, DequeVariable):
            return ConstantVariable(owner.maxlen)
        if name == "__hash__" and raw is None:
            return NONE
        return NativeMethodVariable(owner, name, raw)

    def native_call(
        self, raw: Any, name: str, owner: VariableTracker, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        """Call a C method of this name on ``owner``."""
        self.direct_call = False
        home = getattr(raw, "__objclass__", None)
        if isinstance(owner, ClassVariable):
            return self._class_native(raw, name, owner, args, kwargs)
        if isinstance(owner, ExceptionVariable) and home is not object:
            return self._exception_native(name, owner, args)
        if isinstance(owner, UserObjectVariable):
            if home is object or (home is None and owner.native is None):
                return self._object_native(name, owner, args, kwargs)
            if owner.native is not None:
                return self._inherited_native(name, owner, args, kwargs)
            return self._opaque_native(raw, name, owner, args, kwargs)
        if isinstance(owner, TensorVariable):
            raise Unsupported(f"method {name!r} of an array, which is no operator of the front end")
        if home is object and name in ("__setattr__", "__getattribute__", "__delattr__", "__init__"):
            return self._object_native(name, owner, args, kwargs)
        return owner.method(self, name, args, kwargs)

    def _opaque_native(
        self, raw: Any, name: str, owner: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        """A method of an object whose class is written in C: folded for immutable types only."""
        kept = owner.source is None or type(owner.real).__weakrefoffset__  # must be the same next time
        if owner.real is not None and type(owner.real).__module__ in _PURE_MODULES and kept:
            if owner.source is not None:
                self.guard(id_is(owner.source, owner.real))
            return self.call_native(getattr(owner.real, name), args, kwargs)
        raise Unsupported(
            f"method {name!r} of {owner.cls.__module__}.{owner.cls.__qualname__}, which C code implements"
        )

    def _inherited_native(self, name: str, owner: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """A method that a subclass of a built-in type inherits: it acts on the built-in part."""
        native = owner.native
        self.mutating(owner)
        if name == "__init__":
            return self._init_native(native, args, kwargs)
        if name == "__reduce_ex__":
            raise Unsupported("copying or pickling an instance of a subclass of a built-in type")
        if name == "__iter__":
            return native.iterator(self)
        if name == "__getitem__" and isinstance(native, DictVariable):
            found = native.get(self, self.key_of(args[0]))
            missing = owner.special(self, "__missing__") if found is None and native.kind is not defaultdict else None
            if missing is not None:
                return missing.call(self, args, {})
        return native.method(
            self, name, [getattr(a, "native", None) or a for a in args] if name in _BINARY else args, kwargs
        )

    def _init_native(self, native: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        if isinstance(native, DictVariable):
            if native.kind is defaultdict and args:
                native.factory = args[0]
                args = args[1:]
            native._m_update(self, *args, **kwargs)
        elif isinstance(native, DequeVariable):
            limit = args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)
            native.maxlen = limit.as_constant()
            if args:
                native._m_extend(self, args[0])
        elif isinstance(native, ListVariable) and args:
            native.elements[:] = self.unpack(args[0])
        elif isinstance(native, SetVariable) and args:
            native._m_update(self, args[0])
        return NONE

    def native_method(
        self, owner: VariableTracker, name: str, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        """A special method of a built-in container called by name, or one that has no tracker of its own."""
        if name in _BINARY:
            return self.binary(_BINARY[name], owner, args[0])
        if name in _REFLECTED:
            return self.binary(_REFLECTED[name], args[0], owner)
        if name in _INPLACE:
            return self.binary(_INPLACE[name], owner, args[0], inplace=True)
        if name in _COMPARE:
            return self.compare(_COMPARE[name], owner, args[0])
        special = {
            "__len__": lambda: owner.length(self),
            "__iter__": lambda: owner.iterator(self),
            "__getitem__": lambda: owner.getitem(self, *args),
            "__contains__": lambda: owner.contains(self, *args),
            "__setitem__": lambda: owner.setitem(self, *args) or NONE,
            "__delitem__": lambda: owner.delitem(self, *args) or NONE,
            "__init__": lambda: self._init_native(owner, args, kwargs),
            "__class_getitem__": lambda: self.call_native(
                lambda c, i: c[i], [self.class_variable(owner.python_type(), None), *args], {}
            ),
            "__reversed__": lambda: self.call_builtin(reversed, [owner], {}),
        }.get(name)
        if special is not None:
            return special()
        if name in ("fromkeys",):
            return self.polyfill("dict_fromkeys", args, kwargs)
        if type_lookup(owner.python_type(), name) is MISSING:
            raise self.attribute_error(owner, name)
        raise Unsupported(f"method {name!r} of {owner.python_type().__name__}")

    def _exception_native(self, name: str, owner: ExceptionVariable, args: list[Any]) -> VariableTracker:
        if name == "__init__":
            owner.args = TupleVariable(list(args))
            return NONE
        if name == "with_traceback":
            return owner
        if name == "__str__":
            return self.exception_text(owner)
        if name == "__repr__":
            shown = ", ".join([repr(self.specialize(a).as_constant()) for a in owner.args.all(self)])
            return ConstantVariable(f"{owner.cls.__name__}({shown})")
        if name == "add_note":
            notes = owner.attrs.get(self, "__notes__")
            if notes is None:
                owner.attrs.set(self, "__notes__", ConstantVariable("__notes__"), ListVariable(list(args)))
            else:
                notes.method(self, "append", args, {})
            return NONE
        if name in ("__getattribute__", "__setattr__"):
            return self._object_native(name, owner, args, {})
        raise Unsupported(f"method {name!r} of an exception")

    def exception_text(self, owner: ExceptionVariable) -> VariableTracker:
        """``str(exception)``."""
        args = owner.args.all(self)  # type: ignore[attr-defined]
        if issubclass(owner.cls, KeyError) and len(args) == 1:
            return self.call_builtin(repr, args, {})
        if len(args) == 1:
            return self.call_builtin(str, args, {})
        return ConstantVariable("") if not args else self.call_builtin(str, [owner.args], {})

    def _object_native(
        self, name: str, owner: VariableTracker, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        if name in ("__init__", "__init_subclass__"):
            return NONE
        if name == "__getattribute__":
            text = args[0].as_constant()
            return (
                owner.generic_getattr(self, text)
                if isinstance(owner, UserObjectVariable)
                else owner.getattr(self, text)
            )
        if name == "__setattr__":
            target = owner.generic_setattr if isinstance(owner, UserObjectVariable) else owner.setattr
            target(self, args[0].as_constant(), args[1])
            return NONE
        if name == "__delattr__":
            target = owner.generic_delattr if isinstance(owner, UserObjectVariable) else owner.delattr
            target(self, args[0].as_constant())
            return NONE
        if name in ("__eq__", "__ne__"):
            if self.identical(owner, args[0]):
                return TRUE if name == "__eq__" else FALSE
            return (
                ConstantVariable(NotImplemented)
                if name == "__eq__"
                else ConstantVariable(not self.equal(owner, args[0]))
            )
        if name == "__str__":
            return self.call_builtin(repr, [owner], {})
        if name == "__format__":
            return self.call_builtin(str, [owner], {})
        if name == "__hash__":
            raise Unsupported("the hash of an object, which is its address")
        raise Unsupported(f"object.{name} of {owner!r}")

    def _class_native(
        self, raw: Any, name: str, owner: ClassVariable, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        if name == "__call__":
            return self.default_instantiate(owner, args, kwargs)
        if name == "__new__":
            return self.native_new(args[0] if args else owner, args[1:], kwargs)
        if name == "mro":
            return ListVariable([self.class_variable(c, None) for c in owner.value.__mro__])
        if name == "fromkeys":
            return self.polyfill("dict_fromkeys", [owner, *args], kwargs)
        if name in ("__init_subclass__", "__init__"):
            return NONE
        if name == "__getattribute__":
            return owner.getattr(self, args[0].as_constant())
        if name in ("__instancecheck__", "__subclasscheck__"):
            return self.call_builtin(isinstance if name == "__instancecheck__" else issubclass, [args[0], owner], {})
        bound = getattr(owner.value, name, None)
        if bound is not None and self.is_pure_type(owner.value):
            return self.call_native(bound, args, kwargs)
        raise Unsupported(f"{name} of class {owner.value.__qualname__}")


_PURE_MODULES = frozenset(("re", "datetime", "decimal", "fractions", "uuid", "pathlib", "string"))
_ = BoundMethodVariable, SequenceVariable
