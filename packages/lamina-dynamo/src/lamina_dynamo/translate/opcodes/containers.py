"""Building, indexing and unpacking containers."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from ...variables import (
    NONE,
    ConstantVariable,
    DictVariable,
    ListVariable,
    SequenceVariable,
    SetVariable,
    SliceVariable,
    TensorVariable,
    TupleVariable,
)  # fmt: skip
from .table import new_table

TABLE, opcode = new_table()


@opcode("BUILD_TUPLE")
def _build_tuple(frame: Any, ins: Any) -> None:
    frame.stack.append(TupleVariable(frame.pop_many(ins.arg)))


@opcode("BUILD_LIST")
def _build_list(frame: Any, ins: Any) -> None:
    frame.stack.append(ListVariable(frame.pop_many(ins.arg)))


@opcode("BUILD_SET")
def _build_set(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.set_of(frame.pop_many(ins.arg)))


@opcode("BUILD_MAP")
def _build_map(frame: Any, ins: Any) -> None:
    flat = frame.pop_many(2 * ins.arg)
    made = DictVariable()
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        made.set(frame.tx, frame.tx.key_of(key), key, value)
    frame.stack.append(made)


@opcode("BUILD_CONST_KEY_MAP")
def _build_const_key_map(frame: Any, ins: Any) -> None:
    keys = frame.stack.pop().all(frame.tx)
    made = DictVariable()
    for key, value in zip(keys, frame.pop_many(ins.arg), strict=True):
        made.set(frame.tx, frame.tx.key_of(key), key, value)
    frame.stack.append(made)


@opcode("BUILD_SLICE")
def _build_slice(frame: Any, ins: Any) -> None:
    parts = frame.pop_many(ins.arg)
    frame.stack.append(SliceVariable(*parts, *[NONE] * (3 - ins.arg)))


@opcode("LIST_TO_TUPLE")
def _list_to_tuple(frame: Any, ins: Any) -> None:
    frame.stack.append(TupleVariable(list(frame.stack.pop().elements)))


@opcode("LIST_APPEND")
def _list_append(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    frame.stack[-ins.arg]._m_append(frame.tx, value)


@opcode("SET_ADD")
def _set_add(frame: Any, ins: Any) -> None:
    value = frame.stack.pop()
    frame.stack[-ins.arg]._m_add(frame.tx, value)


@opcode("MAP_ADD")
def _map_add(frame: Any, ins: Any) -> None:
    value, key = frame.stack.pop(), frame.stack.pop()
    frame.stack[-ins.arg].set(frame.tx, frame.tx.key_of(key), key, value)


@opcode("LIST_EXTEND")
def _list_extend(frame: Any, ins: Any) -> None:
    values = frame.stack.pop()
    frame.stack[-ins.arg]._m_extend(frame.tx, values)


@opcode("SET_UPDATE")
def _set_update(frame: Any, ins: Any) -> None:
    values = frame.stack.pop()
    frame.stack[-ins.arg]._m_update(frame.tx, values)


@opcode("DICT_UPDATE")
def _dict_update(frame: Any, ins: Any) -> None:
    values = frame.stack.pop()
    frame.tx.dict_update(frame.stack[-ins.arg], values)


@opcode("DICT_MERGE")
def _dict_merge(frame: Any, ins: Any) -> None:
    values = frame.stack.pop()
    target = frame.stack[-ins.arg]
    before = len(target.entries)
    frame.tx.dict_update(target, values)
    if isinstance(values, DictVariable) and len(target.entries) != before + len(values.entries):
        raise frame.tx.error(TypeError, "got multiple values for a keyword argument")


@opcode("BINARY_SUBSCR")
def _binary_subscr(frame: Any, ins: Any) -> None:
    index, owner = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(owner.getitem(frame.tx, index))


@opcode("STORE_SUBSCR")
def _store_subscr(frame: Any, ins: Any) -> None:
    index, owner, value = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    owner.setitem(frame.tx, index, value)


@opcode("DELETE_SUBSCR")
def _delete_subscr(frame: Any, ins: Any) -> None:
    index, owner = frame.stack.pop(), frame.stack.pop()
    owner.delitem(frame.tx, index)


@opcode("UNPACK_SEQUENCE")
def _unpack_sequence(frame: Any, ins: Any) -> None:
    values = _values(frame, frame.stack.pop(), ins.arg)
    if len(values) < ins.arg:
        message = f"not enough values to unpack (expected {ins.arg}, got {len(values)})"
        raise frame.tx.error(ValueError, message)
    if len(values) > ins.arg:
        raise frame.tx.error(ValueError, f"too many values to unpack (expected {ins.arg})")
    frame.stack.extend(reversed(values))


def _values(frame: Any, value: Any, count: int) -> list[Any]:
    if isinstance(value, SequenceVariable):
        return value.all(frame.tx)
    if isinstance(value, TensorVariable):
        return frame.tx.unpack(value)
    iterator = value.iterator(frame.tx)
    found: list[Any] = []
    while len(found) <= count:  # one more than wanted, so that an endless iterator is noticed
        try:
            found.append(iterator.next(frame.tx))
        except frame.tx.Observed as error:
            if not frame.tx.is_exception(error, StopIteration):
                raise
            break
    return found


@opcode("UNPACK_EX")
def _unpack_ex(frame: Any, ins: Any) -> None:
    before, after = ins.arg & 0xFF, ins.arg >> 8
    values = frame.tx.unpack(frame.stack.pop())
    if len(values) < before + after:
        message = f"not enough values to unpack (expected at least {before + after}, got {len(values)})"
        raise frame.tx.error(ValueError, message)
    middle = ListVariable(values[before : len(values) - after])
    parts = [*values[:before], middle, *(values[len(values) - after :] if after else [])]
    frame.stack.extend(reversed(parts))


@opcode("GET_LEN")
def _get_len(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.stack[-1].length(frame.tx))


_ = ConstantVariable, SetVariable, Unsupported
