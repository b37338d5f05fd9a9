"""Operators, comparisons, formatting."""

from __future__ import annotations

from typing import Any

from ...variables import FALSE, NONE, TRUE, ConstantVariable
from .table import new_table

TABLE, opcode = new_table()

# the order of BINARY_OP's argument in every CPython from 3.11 on; the second half is in place
_SYMBOLS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")


@opcode("BINARY_OP")
def _binary_op(frame: Any, ins: Any) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    arg = ins.arg
    if arg == 26:  # 3.14 folded BINARY_SUBSCR into this
        frame.stack.append(left.getitem(frame.tx, right))
    elif arg < 13:
        frame.stack.append(frame.tx.binary(_SYMBOLS[arg], left, right))
    else:
        frame.stack.append(frame.tx.binary(_SYMBOLS[arg - 13], left, right, inplace=True))


@opcode("UNARY_NEGATIVE")
def _negative(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.unary("-", frame.stack.pop()))


@opcode("UNARY_POSITIVE")
def _positive(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.unary("+", frame.stack.pop()))


@opcode("UNARY_INVERT")
def _invert(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.unary("~", frame.stack.pop()))


@opcode("UNARY_NOT")
def _not(frame: Any, ins: Any) -> None:
    frame.stack.append(FALSE if frame.stack.pop().truth(frame.tx) else TRUE)


@opcode("TO_BOOL")
def _to_bool(frame: Any, ins: Any) -> None:
    frame.stack.append(TRUE if frame.stack.pop().truth(frame.tx) else FALSE)


@opcode("COMPARE_OP")
def _compare_op(frame: Any, ins: Any) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(frame.tx.compare(ins.value, left, right))


@opcode("IS_OP")
def _is_op(frame: Any, ins: Any) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(TRUE if frame.tx.identical(left, right) != bool(ins.arg) else FALSE)


@opcode("CONTAINS_OP")
def _contains_op(frame: Any, ins: Any) -> None:
    container, item = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(TRUE if frame.tx.contains(container, item) != bool(ins.arg) else FALSE)


@opcode("FORMAT_VALUE")
def _format_value(frame: Any, ins: Any) -> None:
    tx = frame.tx
    spec = frame.stack.pop() if ins.arg & 4 else ConstantVariable("")
    value = frame.stack.pop()
    conversion = (None, str, repr, ascii)[ins.arg & 3]
    if conversion is not None:
        value = tx.call_builtin(conversion, [value], {})
    frame.stack.append(tx.call_builtin(format, [value, spec], {}))


@opcode("BUILD_STRING")
def _build_string(frame: Any, ins: Any) -> None:
    parts = frame.pop_many(ins.arg)
    frame.stack.append(ConstantVariable("".join(p.as_constant() for p in parts)))


_ = NONE
