"""What calling a built-in class does."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

from ..errors import Unsupported
from ..variables import (
    NONE,
    ArrayNumberVariable,
    BoundMethodVariable,
    ConstantVariable,
    CountIterator,
    DequeVariable,
    DictVariable,
    EnumerateIterator,
    ExceptionVariable,
    HostInput,
    ListVariable,
    MapIterator,
    PartialVariable,
    ReversedIterator,
    ScalarVariable,
    SequenceVariable,
    SliceVariable,
    SuperVariable,
    SymIntVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    ZipIterator,
    host_of,
    type_lookup,
)  # fmt: skip
from .builtin_tables import CLASS_RULES, rule_for


@rule_for(tuple)
def _tuple(tx: Any, values: Any = None) -> VariableTracker:
    if values is None:
        return TupleVariable([])
    return values if type(values) is TupleVariable else TupleVariable(list(tx.unpack(values)))


@rule_for(list)
def _list(tx: Any, values: Any = None) -> VariableTracker:
    if isinstance(values, SequenceVariable):
        return ListVariable(list(values.elements))
    return ListVariable([] if values is None else list(tx.unpack(values)))


@rule_for(set, frozenset)
def _set(tx: Any, values: Any = None) -> VariableTracker:
    return tx.set_of([] if values is None else tx.unpack(values))


@rule_for(frozenset)
def _frozenset(tx: Any, values: Any = None) -> VariableTracker:
    return tx.set_of([] if values is None else tx.unpack(values), frozenset)


@rule_for(dict)
def _dict(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    made = DictVariable()
    made._m_update(tx, *args, **kwargs)
    return made


@rule_for(collections.OrderedDict)
def _ordered_dict(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    made = _dict(tx, *args, **kwargs)
    made.kind = collections.OrderedDict  # type: ignore[attr-defined]
    return made


@rule_for(collections.defaultdict)
def _defaultdict(tx: Any, factory: Any = NONE, *args: Any, **kwargs: Any) -> VariableTracker:
    made = _dict(tx, *args, **kwargs)
    made.kind, made.factory = collections.defaultdict, factory  # type: ignore[attr-defined]
    return made


@rule_for(collections.deque)
def _deque(tx: Any, values: Any = None, maxlen: Any = NONE) -> VariableTracker:
    made = DequeVariable([], maxlen=maxlen.as_constant())
    if values is not None:
        made._m_extend(tx, values)
    return made


@rule_for(range)
def _range(tx: Any, *bounds: Any) -> VariableTracker:
    return tx.call_native(range, [ConstantVariable(tx.index_of(b)) for b in bounds], {})


@rule_for(slice)
def _slice(tx: Any, *parts: Any) -> VariableTracker:
    if len(parts) == 1:
        return SliceVariable(NONE, parts[0], NONE)
    return SliceVariable(*parts, *[NONE] * (3 - len(parts)))


@rule_for(zip)
def _zip(tx: Any, *parts: Any, strict: Any = None) -> VariableTracker:
    return ZipIterator([p.iterator(tx) for p in parts], strict is not None and tx.truth(strict))


@rule_for(enumerate)
def _enumerate(tx: Any, iterable: Any, start: Any = None) -> VariableTracker:
    return EnumerateIterator(iterable.iterator(tx), 0 if start is None else tx.index_of(start))


@rule_for(map)
def _map(tx: Any, function: Any, *parts: Any) -> VariableTracker:
    return MapIterator(function, [p.iterator(tx) for p in parts])


@rule_for(filter)
def _filter(tx: Any, function: Any, values: Any) -> VariableTracker:
    return MapIterator(function, [values.iterator(tx)], keep=True)


@rule_for(reversed)
def _reversed(tx: Any, values: Any) -> VariableTracker:
    if isinstance(values, UserObjectVariable):
        method = values.special(tx, "__reversed__")
        if method is not None:
            return method.call(tx, [], {})
        if values.native is None:
            length = tx.index_of(values.length(tx))
            return MapIterator(
                BoundMethodVariable(tx.builtin(operator.getitem), values),
                [tx.iterator_over([ConstantVariable(i) for i in reversed(range(length))])],
            )
        values = values.native
    if isinstance(values, (ListVariable, TupleVariable)) and not isinstance(values, DequeVariable):
        return ReversedIterator(values, tx.frame.steps_to_break())
    return tx.iterator_over(list(reversed(tx.unpack(values))))


@rule_for(itertools.count)
def _count(tx: Any, start: Any = None, step: Any = None) -> VariableTracker:
    return CountIterator(start or ConstantVariable(0), step or ConstantVariable(1))


@rule_for(itertools.repeat)
def _repeat(tx: Any, value: Any, times: Any = None) -> VariableTracker:
    return CountIterator(value, None, None if times is None else tx.index_of(times))


@rule_for(type)
def _type(tx: Any, value: Any, *rest: Any) -> VariableTracker:
    if rest:
        raise Unsupported("making a class")
    if isinstance(value, UserObjectVariable):
        return tx.class_variable(value.cls, value.cls_source)
    if isinstance(value, TensorVariable):
        return tx.class_variable(tx.frontend.array_type(value.fake), None)
    return tx.class_variable(value.python_type(), None)


@rule_for(object)
def _object(tx: Any) -> VariableTracker:
    return UserObjectVariable(object)


@rule_for(super)
def _super(tx: Any, *args: Any) -> VariableTracker:
    if not args:
        frame = tx.frame
        cell = frame.cells["__class__"]
        args = (cell.load(tx, "__class__"), frame.first_argument())
    start, instance = args
    return SuperVariable(start, instance)


@rule_for(functools.partial)
def _partial(tx: Any, function: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    if isinstance(function, PartialVariable):
        return PartialVariable(function.function, [*function.args, *args], {**function.kwargs, **kwargs})
    return PartialVariable(function, list(args), kwargs)


@rule_for(int, float, bool, complex)
def _unused(tx: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _number(kind: type) -> Callable[..., VariableTracker]:
    def rule(tx: Any, value: Any = None, *rest: Any, **kwargs: Any) -> VariableTracker:
        if value is None:
            return ConstantVariable(kind())
        if kind is bool:
            return ConstantVariable(tx.truth(value))
        if isinstance(value, TensorVariable):
            return number_of_array(tx, value, kind)
        if isinstance(value, ArrayNumberVariable) and value.kind is kind:
            return value
        if isinstance(value, (SymIntVariable, ScalarVariable)):
            if value.python_type() is kind:
                return value
            if kind is float:
                host = host_of(value)
                return ScalarVariable(HostInput(float, (host,), float(host.value)))
        if isinstance(value, UserObjectVariable):
            if value.native is not None:
                return rule(tx, value.native, *rest)
            for name in (f"__{kind.__name__}__", "__index__"):
                method = value.special(tx, name)
                if method is not None:
                    return method.call(tx, [], {})
        return tx.call_native(kind, [value, *rest], kwargs)

    return rule


def number_of_array(tx: Any, value: TensorVariable, kind: type) -> VariableTracker:
    """A number of an array: read behind the graph when it has one element, of that kind; else it ends the graph."""
    found = tx.frontend.member(value.fake, "item")
    if found is not None and found.kind == "number" and found.value is kind:
        return tx.number_of(value, kind)
    raise Unsupported(
        f"{kind.__name__}() of an array needs its value, which only running the graph tells",
        "Keep the value an array, or compute it outside the compiled function",
    )


for _kind in (int, float, bool, complex):
    CLASS_RULES[_kind] = _number(_kind)


@rule_for(str)
def str_of(tx: Any, value: Any = None, *rest: Any) -> VariableTracker:
    """``str(value)``."""
    if value is None:
        return ConstantVariable("")
    if isinstance(value, ExceptionVariable) and not isinstance(type_lookup(value.cls, "__str__"), types.FunctionType):
        return tx.exception_text(value)
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__str__")
        return method.call(tx, [], {})  # type: ignore[union-attr]
    return tx.call_native(str, [value, *rest], {})


@rule_for(property, staticmethod, classmethod)
def _descriptor(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    raise Unsupported("making a descriptor")
