"""Binding the arguments of an inlined call to its parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ..variables import (
    TupleVariable,
)  # fmt: skip
from .frame import Frame

__all__ = ["bind_arguments", "make_cells"]


def bind_arguments(tx: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Locals of a call: parameters by Python's rules.

    Raises:
        ObservedException: TypeError, when the arguments do not fit.
    """
    code = function.code
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    result: dict[str, Any] = dict(zip(names[:count], args, strict=False))
    position = count + kwonly
    if code.co_flags & inspect.CO_VARARGS:
        result[names[position]] = TupleVariable(list(args[count:]))
        position += 1
    elif len(args) > count:
        raise tx.error(TypeError, f"{code.co_qualname}() takes {count} positional arguments but {len(args)} were given")
    extra: dict[str, Any] = {}
    allowed = names[code.co_posonlyargcount : count + kwonly]
    for name, value in kwargs.items():
        if name in allowed:
            if name in result:
                raise tx.error(TypeError, f"{code.co_qualname}() got multiple values for argument {name!r}")
            result[name] = value
        else:
            extra[name] = value
    if code.co_flags & inspect.CO_VARKEYWORDS:
        result[names[position]] = tx.dict_of(extra)
    elif extra:
        raise tx.error(TypeError, f"{code.co_qualname}() got an unexpected keyword argument {next(iter(extra))!r}")
    _fill_defaults(tx, function, result, names[:count], names[count : count + kwonly])
    return result


def _fill_defaults(tx: Any, function: Any, result: dict[str, Any], positional: Any, kwonly: Any) -> None:
    missing = [n for n in positional if n not in result]
    if missing:
        defaults = function.defaults()
        first = len(positional) - len(defaults)
        for name in missing:
            index = positional.index(name) - first
            if index < 0:
                raise tx.error(
                    TypeError, f"{function.code.co_qualname}() missing 1 required positional argument: {name!r}"
                )
            result[name] = defaults[index]
    missing = [n for n in kwonly if n not in result]
    if missing:
        named = function.kwdefaults()
        for name in missing:
            if name not in named:
                raise tx.error(
                    TypeError, f"{function.code.co_qualname}() missing 1 required keyword-only argument: {name!r}"
                )
            result[name] = named[name]


def make_cells(tx: Any, frame: Frame) -> None:
    """The free variables of an inlined frame (its own cells are made by MAKE_CELL)."""
    code = frame.code
    if code.co_freevars:
        frame.cells.update(zip(code.co_freevars, frame.function.closure(tx), strict=True))
