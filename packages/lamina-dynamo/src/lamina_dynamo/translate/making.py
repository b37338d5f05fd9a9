"""What emitted code calls to make objects: small functions, constants of that code."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

__all__ = ["expression_function", "fill", "is_value", "new_function", "new_instance", "set_attributes"]


_VALUE_MODULES = frozenset(("datetime", "decimal", "fractions", "uuid", "re", "pathlib"))


@lru_cache(maxsize=4096)
def expression_function(text: str, names: tuple[str, ...]) -> Any:
    """A function of these names that computes an integer expression, given as Python text."""
    code = compile(f"lambda {', '.join(names)}: {text}", "<lamina size>", "eval")  # capture skips such files
    return eval(code, {"min": min, "max": max, "__builtins__": {}})


def can_make(cls: type) -> bool:
    """Whether `new_instance` works without more than `cls`: not for objects that only C code makes."""
    native = next((base for base in cls.__mro__ if not base.__flags__ & (1 << 9)), object)
    return native is object or issubclass(native, BaseException)


def is_value(cls: type) -> bool:
    """Whether instances never change and hold nothing of the user's: one made while compiling may be a constant."""
    return cls.__module__ in _VALUE_MODULES and not issubclass(cls, type)


def new_instance(cls: type, args: tuple[Any, ...]) -> Any:
    """An instance as the built-in base makes it, without ``__init__``."""
    for base in cls.__mro__:
        if not base.__flags__ & (1 << 9):  # the first base that is no heap type: written in C
            return base.__new__(cls, *args)
    return object.__new__(cls)


def require_gradients(array: Any) -> None:
    """Make an array of the caller a leaf."""
    array.requires_grad_()


def set_attributes(value: Any, attributes: dict[str, Any]) -> None:
    """Put attributes into the instance's ``__dict__``, whatever ``__setattr__`` the class has."""
    object.__getattribute__(value, "__dict__").update(attributes)


def fill(target: Any, values: Any) -> None:
    """Give a list, dict or set (or an instance of a subclass) these contents."""
    if isinstance(target, list):
        list.__setitem__(target, slice(None), values)
    elif isinstance(target, OrderedDict):
        OrderedDict.clear(target)
        for key, value in values.items():
            OrderedDict.__setitem__(target, key, value)
    elif isinstance(target, dict):
        dict.clear(target)
        dict.update(target, values)
        if hasattr(values, "default_factory") and hasattr(target, "default_factory"):
            target.default_factory = values.default_factory
    elif isinstance(target, set):
        set.clear(target)
        set.update(target, values)
    else:
        target.clear()
        target.extend(values)


def new_function(
    code: CodeType,
    globals_: dict[str, Any],
    defaults: tuple[Any, ...],
    cells: tuple[Any, ...],
    kwdefaults: dict[str, Any],
) -> FunctionType:
    """A function from its parts."""
    made = FunctionType(code, globals_, code.co_name, defaults or None, cells or None)
    made.__qualname__ = code.co_qualname
    if kwdefaults:
        made.__kwdefaults__ = kwdefaults
    return made


def set_item_raw(value: Any, name: str, item: Any) -> None:
    """Store an attribute in the instance's ``__dict__`` though the class has a descriptor of that name."""
    object.__getattribute__(value, "__dict__")[name] = item
