"""Jumps, loops, return."""

from __future__ import annotations

from typing import Any

from .table import new_table

TABLE, opcode = new_table()


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(frame: Any, ins: Any) -> None:
    frame.ip = ins.target


@opcode("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_IF_FALSE")
def _jump_if_false(frame: Any, ins: Any) -> None:
    if not frame.stack.pop().truth(frame.tx):
        frame.ip = ins.target


@opcode("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_IF_TRUE")
def _jump_if_true(frame: Any, ins: Any) -> None:
    if frame.stack.pop().truth(frame.tx):
        frame.ip = ins.target


def _is_none(value: Any) -> bool:
    return getattr(value, "value", value) is None


@opcode("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_IF_NONE")
def _jump_if_none(frame: Any, ins: Any) -> None:
    if _is_none(frame.stack.pop()):
        frame.ip = ins.target


@opcode("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", "POP_JUMP_IF_NOT_NONE")
def _jump_if_not_none(frame: Any, ins: Any) -> None:
    if not _is_none(frame.stack.pop()):
        frame.ip = ins.target


@opcode("JUMP_IF_FALSE_OR_POP")
def _jump_if_false_or_pop(frame: Any, ins: Any) -> None:
    if frame.stack[-1].truth(frame.tx):
        frame.stack.pop()
    else:
        frame.ip = ins.target


@opcode("JUMP_IF_TRUE_OR_POP")
def _jump_if_true_or_pop(frame: Any, ins: Any) -> None:
    if frame.stack[-1].truth(frame.tx):
        frame.ip = ins.target
    else:
        frame.stack.pop()


@opcode("GET_ITER")
def _get_iter(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.stack.pop().iterator(frame.tx))


@opcode("FOR_ITER")
def _for_iter(frame: Any, ins: Any) -> None:
    tx = frame.tx
    try:
        frame.stack.append(frame.stack[-1].next(tx))
    except tx.Observed as error:
        if not tx.is_exception(error, StopIteration):
            raise
        frame.tx.end_for(frame, ins)


@opcode("RETURN_VALUE")
def _return_value(frame: Any, ins: Any) -> str:
    frame.result = frame.stack.pop()
    return "return"
