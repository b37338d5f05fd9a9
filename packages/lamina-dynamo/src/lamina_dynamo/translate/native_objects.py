"""Methods of ``object``, of exceptions and of classes, which C code implements."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..variables import (
    FALSE,
    NONE,
    TRUE,
    ClassVariable,
    ConstantVariable,
    ExceptionVariable,
    ListVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
)  # fmt: skip

__all__ = ["NativeObjects"]


class NativeObjects:
    """The part of the translator that stands in for C code of ``object``, ``type`` and exceptions."""

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
