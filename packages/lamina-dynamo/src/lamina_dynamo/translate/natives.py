"""Methods that C code implements: of containers and of subclasses of built-in types."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..errors import Unsupported
from ..guard import id_is
from ..variables import (
    MISSING,
    NONE,
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
    UserObjectVariable,
    VariableTracker,
    type_lookup,
)  # fmt: skip
from .instances import Instances
from .native_objects import NativeObjects

__all__ = ["Natives"]

_BINARY = {"__add__": "+", "__mul__": "*", "__or__": "|", "__and__": "&", "__sub__": "-", "__xor__": "^", "__mod__":
"%",
           "__truediv__": "/", "__floordiv__": "//", "__pow__": "**"}  # fmt: skip
_REFLECTED = {"__radd__": "+", "__rmul__": "*", "__rsub__": "-", "__ror__": "|", "__rtruediv__": "/"}
_INPLACE = {"__iadd__": "+", "__imul__": "*", "__ior__": "|", "__iand__": "&", "__isub__": "-", "__ixor__": "^"}
_COMPARE = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__eq__": "==", "__ne__": "!="}


class Natives(Instances, NativeObjects):
    """The part of the translator that stands in for C code of built-in types."""

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


_PURE_MODULES = frozenset(("re", "datetime", "decimal", "fractions", "uuid", "pathlib", "string"))
_ = BoundMethodVariable, SequenceVariable
