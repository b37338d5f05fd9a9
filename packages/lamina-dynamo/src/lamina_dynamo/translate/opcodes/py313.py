"""What CPython 3.13 changed: paired loads and stores, keyword calls, SET_FUNCTION_ATTRIBUTE, formatting split in
two.
"""

from __future__ import annotations

from typing import Any

from ...variables import FALSE, TRUE, CellVariable, ConstantVariable
from ..frame_parts import NULL
from .calls import call_pushed, call_unpacked, new_function
from .names import load_global
from .table import new_table

TABLE, opcode = new_table()


def _load(frame: Any, name: str) -> None:
    cell = frame.cells.get(name)
    frame.stack.append(cell if cell is not None else frame.load_local(name))


@opcode("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
def _load_fast(frame: Any, ins: Any) -> None:
    _load(frame, ins.value)


@opcode("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_fast_load_fast(frame: Any, ins: Any) -> None:
    first, second = ins.value
    _load(frame, first)
    _load(frame, second)


@opcode("STORE_FAST_STORE_FAST")
def _store_fast_store_fast(frame: Any, ins: Any) -> None:
    first, second = ins.value
    frame.locals[first] = frame.stack.pop()
    frame.locals[second] = frame.stack.pop()


@opcode("STORE_FAST_LOAD_FAST")
def _store_fast_load_fast(frame: Any, ins: Any) -> None:
    first, second = ins.value
    frame.locals[first] = frame.stack.pop()
    _load(frame, second)


@opcode("LOAD_GLOBAL")
def _load_global(frame: Any, ins: Any) -> None:
    frame.stack.append(load_global(frame, ins.value))
    if ins.arg & 1:
        frame.stack.append(NULL)


@opcode("LOAD_ATTR")
def _load_attr(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.stack.pop().getattr(frame.tx, ins.value))
    if ins.arg & 1:
        frame.stack.append(NULL)


@opcode("LOAD_SUPER_ATTR")
def _load_super_attr(frame: Any, ins: Any) -> None:
    from ...variables import SuperVariable

    instance, start = frame.stack.pop(), frame.stack.pop()
    frame.stack.pop()
    frame.stack.append(SuperVariable(start, instance).getattr(frame.tx, ins.value))
    if ins.arg & 1:
        frame.stack.append(NULL)


@opcode("COMPARE_OP")
def _compare_op(frame: Any, ins: Any) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    result = frame.tx.compare(ins.value, left, right)
    if ins.arg & 16:  # the jump behind it takes nothing but True and False
        result = TRUE if result.truth(frame.tx) else FALSE
    frame.stack.append(result)


@opcode("CALL_KW")
def _call_kw(frame: Any, ins: Any) -> None:
    names = frame.stack.pop().as_constant()
    args = frame.pop_many(ins.arg)
    kwargs = dict(zip(names, args[-len(names) :], strict=True))
    call_pushed(frame, args[: -len(names)], kwargs)


@opcode("CALL_FUNCTION_EX")
def _call_function_ex(frame: Any, ins: Any) -> None:
    kwargs = frame.stack.pop() if ins.arg is None or ins.arg & 1 else None
    args = frame.stack.pop()
    null = frame.stack.pop()
    assert null is NULL
    function = frame.stack.pop()
    frame.stack.append(NULL)
    result = call_unpacked(frame, function, args, kwargs)
    frame.stack.append(result)


@opcode("MAKE_FUNCTION")
def _make_function(frame: Any, ins: Any) -> None:
    frame.stack.append(new_function(frame, frame.stack.pop().as_constant(), None, None, None, None))


@opcode("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(frame: Any, ins: Any) -> None:
    function, value = frame.stack.pop(), frame.stack.pop()
    tx = frame.tx
    if ins.arg == 8:
        function.cells = value.all(tx)
    elif ins.arg == 1:
        function.positional = value.all(tx)
    elif ins.arg == 2:
        pairs = zip(value.key_list(tx), value.value_list(tx), strict=True)
        function.kwonly = {k.as_constant(): v for k, v in pairs}
    else:
        function.annotations = value
    frame.stack.append(function)


@opcode("CONVERT_VALUE")
def _convert_value(frame: Any, ins: Any) -> None:
    conversion = (None, str, repr, ascii)[ins.arg]
    frame.stack.append(frame.tx.call_builtin(conversion, [frame.stack.pop()], {}))


@opcode("FORMAT_SIMPLE")
def _format_simple(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.call_builtin(format, [frame.stack.pop(), ConstantVariable("")], {}))


@opcode("FORMAT_WITH_SPEC")
def _format_with_spec(frame: Any, ins: Any) -> None:
    spec, value = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(frame.tx.call_builtin(format, [value, spec], {}))


@opcode("END_FOR")
def _end_for(frame: Any, ins: Any) -> None:
    frame.stack.pop()


@opcode("POP_ITER")
def _pop_iter(frame: Any, ins: Any) -> None:
    frame.stack.pop()


_ = CellVariable
