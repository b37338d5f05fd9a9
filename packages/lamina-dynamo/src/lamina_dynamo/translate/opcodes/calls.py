"""Calls and making functions."""

from __future__ import annotations

from typing import Any

from ...variables import CellVariable, NestedFunctionVariable
from ..frame_parts import NULL
from .table import new_table

TABLE, opcode = new_table()


@opcode("KW_NAMES")
def _kw_names(frame: Any, ins: Any) -> None:
    frame.keyword_names = ins.value if isinstance(ins.value, tuple) else frame.code.co_consts[ins.arg]


@opcode("CALL")
def _call(frame: Any, ins: Any) -> None:
    args = frame.pop_many(ins.arg)
    kwargs = {}
    names = frame.keyword_names
    if names:
        frame.keyword_names = ()
        kwargs = dict(zip(names, args[-len(names) :], strict=True))
        del args[-len(names) :]
    call_pushed(frame, args, kwargs)


def call_pushed(frame: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Call what lies under the popped arguments: (NULL, callable), (callable, NULL) or (function, self)."""
    top, below = frame.stack.pop(), frame.stack.pop()
    if below is NULL:
        function = top
    elif top is NULL:
        function = below
    else:
        function, args = below, [top, *args]
    frame.tx.direct_call = True
    result = function.call(frame.tx, args, kwargs)
    frame.tx.direct_call = False
    frame.stack.append(result)


@opcode("CALL_FUNCTION_EX")
def _call_function_ex(frame: Any, ins: Any) -> None:
    kwargs = frame.stack.pop() if ins.arg & 1 else None
    args = frame.stack.pop()
    frame.stack.append(call_unpacked(frame, frame.stack.pop(), args, kwargs))


def call_unpacked(frame: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """``function(*args, **kwargs)``; drops the NULL beside the callable."""
    tx = frame.tx
    named = {}
    if kwargs is not None and kwargs is not NULL:
        table = getattr(kwargs, "native", None) or kwargs
        named = {k.as_constant(): v for k, v in zip(table.key_list(tx), table.value_list(tx), strict=True)}
    if frame.stack and frame.stack[-1] is NULL:
        frame.stack.pop()
    return function.call(tx, tx.unpack(args), named)


@opcode("MAKE_FUNCTION")
def _make_function(frame: Any, ins: Any) -> None:
    stack = frame.stack
    code = stack.pop().as_constant()
    closure = stack.pop() if ins.arg & 8 else None
    annotations = stack.pop() if ins.arg & 4 else None
    kwdefaults = stack.pop() if ins.arg & 2 else None
    defaults = stack.pop() if ins.arg & 1 else None
    stack.append(new_function(frame, code, defaults, kwdefaults, annotations, closure))


def new_function(frame: Any, code: Any, defaults: Any, kwdefaults: Any, annotations: Any, closure: Any) -> Any:
    """The tracker of a function made here."""
    tx = frame.tx
    cells: list[CellVariable] = [] if closure is None else closure.all(tx)
    positional = [] if defaults is None else defaults.all(tx)
    named = {}
    if kwdefaults is not None:
        pairs = zip(kwdefaults.key_list(tx), kwdefaults.value_list(tx), strict=True)
        named = {k.as_constant(): v for k, v in pairs}
    return NestedFunctionVariable(code, frame.function, positional, named, cells, annotations)
