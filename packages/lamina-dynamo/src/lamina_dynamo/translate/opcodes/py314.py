"""What CPython 3.14 changed: `with` looks its methods up one by one, builtins that the compiler loads as constants."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...variables import NONE, UserObjectVariable
from ..frame_parts import NULL
from .table import new_table

TABLE, opcode = new_table()

_SPECIAL = ("__enter__", "__exit__", "__aenter__", "__aexit__")
_COMMON = (AssertionError, NotImplementedError, tuple, all, any)


@opcode("LOAD_SPECIAL")
def _load_special(frame: Any, ins: Any) -> None:
    tx, name = frame.tx, _SPECIAL[ins.arg]
    if ins.arg > 1:
        raise Unsupported("asynchronous code")
    manager = frame.stack.pop()
    if not isinstance(manager, UserObjectVariable):
        raise Unsupported(f"{manager!r} as a context manager")
    method = manager.special(tx, name)
    if method is None:
        message = (
            f"{manager.cls.__name__!r} object does not support the context manager protocol (missed {name} method)"
        )
        raise tx.error(TypeError, message)
    frame.stack.append(method)
    frame.stack.append(NULL)


@opcode("WITH_EXCEPT_START")
def _with_except_start(frame: Any, ins: Any) -> None:
    tx = frame.tx
    value = frame.stack[-1]
    leave, owner = frame.stack[-5], frame.stack[-4]
    args = [tx.class_variable(value.cls, None), value, NONE]
    frame.stack.append(leave.call(tx, args if owner is NULL else [owner, *args], {}))


@opcode("LOAD_COMMON_CONSTANT")
def _load_common_constant(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.wrap_constant(_COMMON[ins.arg]))


@opcode("BUILD_INTERPOLATION", "BUILD_TEMPLATE")
def _template_string(frame: Any, ins: Any) -> None:
    raise Unsupported("a template string")
