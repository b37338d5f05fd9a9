"""Raising, handlers, with-blocks."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...variables import FALSE, NONE, TRUE, ClassVariable, TupleVariable, UserObjectVariable, is_none
from ...variables.exceptions import HANDLED_AT_ENTRY
from .table import new_table

TABLE, opcode = new_table()


@opcode("RAISE_VARARGS")
def _raise_varargs(frame: Any, ins: Any) -> None:
    tx = frame.tx
    if ins.arg == 0:
        if tx.handled is HANDLED_AT_ENTRY:
            raise Unsupported("a bare raise of an exception that was caught before")
        if tx.handled is None:
            raise tx.error(RuntimeError, "No active exception to reraise")
        raise tx.Observed(tx.handled)
    cause = frame.stack.pop() if ins.arg == 2 else None
    error = tx.observed_from(frame.stack.pop())
    if cause is not None:
        if isinstance(cause, ClassVariable):
            cause = cause.call(tx, [], {})
        error.variable.cause, error.variable.suppress = cause, True
    raise error


@opcode("PUSH_EXC_INFO")
def _push_exc_info(frame: Any, ins: Any) -> None:
    tx = frame.tx
    value = frame.stack.pop()
    frame.stack.append(NONE if tx.handled is None else tx.handled)
    frame.stack.append(value)
    tx.handled = value


@opcode("POP_EXCEPT")
def _pop_except(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    frame.tx.handled = None if value is NONE or is_none(value) else value


@opcode("RERAISE")
def _reraise(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    raise frame.tx.Observed(value)


@opcode("CHECK_EXC_MATCH")
def _check_exc_match(frame: Any, ins: Any) -> None:
    classes = frame.stack.pop()
    value = frame.stack[-1]
    frame.stack.append(TRUE if _matches(frame, value, classes) else FALSE)


def _matches(frame: Any, value: Any, classes: Any) -> bool:
    if isinstance(classes, TupleVariable):
        return any(_matches(frame, value, c) for c in classes.all(frame.tx))
    if not isinstance(classes, ClassVariable) or not issubclass(classes.value, BaseException):
        message = "catching classes that do not inherit from BaseException is not allowed"
        raise frame.tx.error(TypeError, message)
    return issubclass(value.cls, classes.value)


@opcode("CHECK_EG_MATCH")
def _check_eg_match(frame: Any, ins: Any) -> None:
    raise Unsupported("except*")


@opcode("BEFORE_WITH")
def _before_with(frame: Any, ins: Any) -> None:
    tx = frame.tx
    manager = frame.stack.pop()
    if not isinstance(manager, UserObjectVariable):
        raise Unsupported(f"{manager!r} as a context manager")
    enter, leave = manager.special(tx, "__enter__"), manager.special(tx, "__exit__")
    if enter is None or leave is None:
        name = manager.cls.__name__
        raise tx.error(TypeError, f"{name!r} object does not support the context manager protocol")
    frame.stack.append(leave)
    frame.stack.append(enter.call(tx, [], {}))


@opcode("WITH_EXCEPT_START")
def _with_except_start(frame: Any, ins: Any) -> None:
    tx = frame.tx
    value = frame.stack[-1]
    leave = frame.stack[-4]
    frame.stack.append(leave.call(tx, [tx.class_variable(value.cls, None), value, NONE], {}))
