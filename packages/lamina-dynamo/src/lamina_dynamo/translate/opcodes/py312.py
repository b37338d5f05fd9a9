"""What CPython 3.12 changed: LOAD_ATTR loads methods too, inlined comprehensions, zero-argument super, RETURN_CONST."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...variables import CellVariable, ConstantVariable, SliceVariable, SuperVariable
from ..frame_parts import NULL
from .table import new_table

TABLE, opcode = new_table()


@opcode("LOAD_ATTR")
def _load_attr(frame: Any, ins: Any) -> None:
    value = frame.stack.pop().getattr(frame.tx, ins.value)
    if ins.arg & 1:
        frame.stack.append(NULL)
    frame.stack.append(value)


@opcode("LOAD_SUPER_ATTR")
def _load_super_attr(frame: Any, ins: Any) -> None:
    instance, start = frame.stack.pop(), frame.stack.pop()
    frame.stack.pop()
    value = SuperVariable(start, instance).getattr(frame.tx, ins.value)
    if ins.arg & 1:
        frame.stack.append(NULL)
    frame.stack.append(value)


@opcode("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(frame: Any, ins: Any) -> None:
    value = frame.locals.pop(ins.value, None)
    frame.stack.append(NULL if value is None else frame.tx.realize(value))


@opcode("STORE_FAST")
def _store_fast(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.locals.pop(ins.value, None)
    else:
        frame.locals[ins.value] = value


@opcode("MAKE_CELL")
def _make_cell(frame: Any, ins: Any) -> None:
    frame.cells[ins.value] = CellVariable(
        frame.locals.pop(ins.value, None), name=ins.value if frame.parent is None else None
    )


@opcode("BINARY_SLICE")
def _binary_slice(frame: Any, ins: Any) -> None:
    stop, start, owner = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    frame.stack.append(owner.getitem(frame.tx, SliceVariable(start, stop, ConstantVariable(None))))


@opcode("STORE_SLICE")
def _store_slice(frame: Any, ins: Any) -> None:
    stop, start, owner, value = (frame.stack.pop() for _ in range(4))
    owner.setitem(frame.tx, SliceVariable(start, stop, ConstantVariable(None)), value)


@opcode("RETURN_CONST")
def _return_const(frame: Any, ins: Any) -> str:
    frame.result = frame.tx.wrap_constant(ins.value)
    return "return"


@opcode("END_FOR")
def _end_for(frame: Any, ins: Any) -> None:
    frame.stack.pop()
    frame.stack.pop()


@opcode("END_SEND")
def _end_send(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    frame.stack[-1] = value


@opcode("CALL_INTRINSIC_1")
def _call_intrinsic_1(frame: Any, ins: Any) -> None:
    tx = frame.tx
    if ins.arg == 6:  # list to tuple
        frame.stack.append(tx.tuple_of(list(frame.stack.pop().elements)))
    elif ins.arg == 5:  # unary +
        frame.stack.append(tx.unary("+", frame.stack.pop()))
    elif ins.arg == 3:  # StopIteration out of a generator
        error = frame.stack.pop()
        frame.stack.append(
            tx.error(RuntimeError, "generator raised StopIteration").variable
            if issubclass(error.cls, StopIteration)
            else error
        )
    else:
        raise Unsupported(f"CALL_INTRINSIC_1 {ins.arg}")


@opcode("LOAD_FROM_DICT_OR_DEREF", "LOAD_LOCALS", "LOAD_FROM_DICT_OR_GLOBALS", "CALL_INTRINSIC_2")
def _not_in_functions(frame: Any, ins: Any) -> None:
    raise Unsupported(f"the bytecode instruction {ins.name}")
