"""Yield, ``yield from``, and what generators need; coroutines are not traced."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...variables import NONE, GeneratorVariable, is_none
from .table import new_table

TABLE, opcode = new_table()


@opcode("RETURN_GENERATOR")
def _return_generator(frame: Any, ins: Any) -> None:
    if frame.parent is None:
        raise Unsupported("a generator's own frame")
    frame.stack.append(NONE)  # the POP_TOP that follows takes what the first next() sends


@opcode("YIELD_VALUE")
def _yield_value(frame: Any, ins: Any) -> str:
    frame.result = frame.stack.pop()
    return "yield"


@opcode("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    frame.stack.append(value if isinstance(value, GeneratorVariable) else value.iterator(frame.tx))


@opcode("SEND")
def _send(frame: Any, ins: Any) -> None:
    tx = frame.tx
    sent = frame.stack.pop()
    receiver = frame.stack[-1]
    try:
        if isinstance(receiver, GeneratorVariable):
            value = receiver.resume(tx, sent)
        elif is_none(sent) or getattr(sent, "value", sent) is None:
            value = receiver.next(tx)
        else:
            value = receiver.method(tx, "send", [sent], {})
    except tx.Observed as error:
        if not tx.is_exception(error, StopIteration):
            raise
        tx.end_send(frame, ins, tx.stop_value(error))
        return
    frame.stack.append(value)


@opcode(
    "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "END_ASYNC_FOR", "CLEANUP_THROW"
)
def _asynchronous(frame: Any, ins: Any) -> None:
    raise Unsupported("asynchronous code")
