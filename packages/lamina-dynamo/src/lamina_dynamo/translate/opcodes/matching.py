"""The match statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...variables import (
    FALSE,
    NONE,
    TRUE,
    DequeVariable,
    DictVariable,
    ListVariable,
    RangeVariable,
    TupleVariable,
    UserObjectVariable,
)  # fmt: skip
from .table import new_table

TABLE, opcode = new_table()


@opcode("MATCH_SEQUENCE")
def _match_sequence(frame: Any, ins: Any) -> None:
    value = frame.stack[-1]
    matches = isinstance(value, (ListVariable, TupleVariable, RangeVariable, DequeVariable)) or (
        isinstance(value, UserObjectVariable)
        and issubclass(value.cls, Sequence)
        and not issubclass(value.cls, (str, bytes))
    )
    frame.stack.append(TRUE if matches else FALSE)


@opcode("MATCH_MAPPING")
def _match_mapping(frame: Any, ins: Any) -> None:
    value = frame.stack[-1]
    matches = isinstance(value, DictVariable) or (
        isinstance(value, UserObjectVariable) and issubclass(value.cls, Mapping)
    )
    frame.stack.append(TRUE if matches else FALSE)


@opcode("MATCH_KEYS")
def _match_keys(frame: Any, ins: Any) -> None:
    tx = frame.tx
    keys, subject = frame.stack[-1], frame.stack[-2]
    table = getattr(subject, "native", None) or subject
    values = [table.get(tx, tx.key_of(k)) for k in keys.all(tx)]
    frame.stack.append(NONE if None in values else TupleVariable(values))


@opcode("MATCH_CLASS")
def _match_class(frame: Any, ins: Any) -> None:
    tx = frame.tx
    names = frame.stack.pop().as_constant()
    cls = frame.stack.pop()
    subject = frame.stack.pop()
    if not tx.truth(tx.call_builtin(isinstance, [subject, cls], {})):
        frame.stack.append(NONE)
        return
    values = []
    positional = ins.arg
    if positional:
        if cls.value in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
            values.append(subject)
        else:
            match_args = cls.value.__match_args__
            names = (*match_args[:positional], *names)
    for name in names:
        try:
            values.append(subject.getattr(tx, name))
        except tx.Observed as error:
            if not tx.is_exception(error, AttributeError):
                raise
            frame.stack.append(NONE)
            return
    frame.stack.append(TupleVariable(values))
