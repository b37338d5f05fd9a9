"""From the caller's values to trackers, with the guards that make them valid."""

from __future__ import annotations

import enum
import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    FunctionType,
    GenericAlias,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    UnionType,
    WrapperDescriptorType,
)  # fmt: skip
from typing import Any

from .. import _core
from .. import guard as g
from ..errors import Unsupported
from ..source import (
    Attr,
    DictItem,
    DictKeys,
    DictValues,
    GetItem,
    Item,
    Local,
)
from ..variables import (
    PLAIN_TYPES,
    ClassVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    HostInput,
    Lazy,
    ListVariable,
    ModuleVariable,
    OpaqueVariable,
    OperatorVariable,
    RangeVariable,
    ScalarVariable,
    SetVariable,
    SliceVariable,
    SuperVariable,
    SymIntVariable,
    TailVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    realize,
)  # fmt: skip
from ..variables.constant import is_plain
from .guarding import Guarding, Has
from .wrapping_arrays import WrappingArrays
from .wrapping_objects import WrappingObjects

__all__ = ["Wrapping"]

_INT_LIMIT = 1 << 62


class Wrapping(Guarding, WrappingArrays, WrappingObjects):
    """The part of the translator that makes trackers."""

    frontend: Any
    output: Any
    guards: g.GuardSet
    memory: Any
    shape_env: Any

    def __init__(self) -> None:
        self.seen: dict[int, tuple[Any, VariableTracker]] = {}
        self.symbols: dict[Any, Any] = {}
        self.fakes: dict[int, TensorVariable] = {}

    # -- entry -----------------------------------------------------------------------------------------

    def wrap(self, value: Any, source: Any) -> VariableTracker:
        """The tracker of a value of the caller; ``source`` None: a value of ours, which needs no guard."""
        kind = type(value)
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(self, value, source)
        found = self.seen.get(id(value))
        if found is not None:
            known = found[1]
            if source is not None and known.source is not None and known.source != source:
                self.guard(g.same_object(known.source, source))
            return known
        made = self._wrap_object(value, source)
        self.seen[id(value)] = (value, made)
        return made

    def _wrap_object(self, value: Any, source: Any) -> VariableTracker:
        frontend = self.frontend
        if frontend.is_array(value):
            return self._wrap_array(value, source)
        rule = _OBJECT_RULES.get(type(value))
        if rule is not None:
            return rule(self, value, source)
        if isinstance(value, _core.Switch):
            return self._wrap_switch(value, source)
        id_ = frontend.operator(value)
        if id_ is not None:
            self.guard_id(value, source)
            return OperatorVariable(id_, value, source)
        if isinstance(value, (type, UnionType)):
            self.guard_id(value, source)
            return ClassVariable(value, source)
        if isinstance(value, (enum.Enum, GenericAlias)) or frontend.is_constant(value):
            self.guard_id(value, source)
            return ConstantVariable(value, source) if isinstance(value, enum.Enum) else OpaqueVariable(value, source)
        if isinstance(value, ModuleType):
            self.guard_id(value, source)
            return ModuleVariable(value, source)
        if isinstance(value, BaseException):
            return self._wrap_exception(value, source)
        return self._wrap_instance(value, source)

    # -- constants -------------------------------------------------------------------------------------

    def _wrap_constant(self, value: Any, source: Any) -> VariableTracker:
        if source is None:
            return ConstantVariable(value)
        if value is None:
            self.guard(g.is_none(source))
            return ConstantVariable(None, source)
        self.guard(g.equals(source, value) if is_plain(value) and g.is_plain(value) else g.id_is(source, value))
        return ConstantVariable(value, source)

    def _wrap_int(self, value: int, source: Any) -> VariableTracker:
        if source is None:
            return ConstantVariable(value)
        # what lies on the stack of a resume function is most often the next item of a loop, different each time
        may_vary = self.config.dynamic_numbers and -_INT_LIMIT < value < _INT_LIMIT
        if may_vary and (_is_stack_value(source) or self.memory.is_dynamic(source.name, value)):
            return SymIntVariable(self._symbol(value, source), source)
        self.guard(g.equals(source, value))
        return ConstantVariable(value, source)

    def _symbol(self, value: int, source: Any, lower: int = -_INT_LIMIT) -> Any:
        for symbol, known in self.symbols.items():
            if known == source:
                return self.shape_env_ints[symbol]
        self.guard(g.type_is(source, int))
        made = self.shape_env.create_symbol(value, source.name, lower=lower, line=self.line_text())
        self.symbols[made.expr] = source
        self.shape_env_ints[made.expr] = made
        return made

    def _wrap_float(self, value: float, source: Any) -> VariableTracker:
        if source is None:
            return ConstantVariable(value)
        may_vary = self.config.dynamic_numbers and value == value
        if may_vary and (_is_stack_value(source) or self.memory.is_dynamic(source.name, value)):
            self.guard(g.type_is(source, float))
            return ScalarVariable(HostInput(None, (source,), value), source)
        self.guard(g.equals(source, value))
        return ConstantVariable(value, source)

    # -- containers ------------------------------------------------------------------------------------

    def _items(self, value: Any, source: Any) -> list[Any]:
        if source is None:
            return [Lazy(v, None) for v in value]
        self.guard(g.type_is(source, type(value)))
        self.guard(g.length(source, len(value)))
        return [Lazy(v, Item(source, i)) for i, v in enumerate(value)]

    def _wrap_list(self, value: Any, source: Any) -> VariableTracker:
        return ListVariable(self._items(value, source), source)

    def _wrap_tuple(self, value: Any, source: Any) -> VariableTracker:
        if source is None and is_plain(value):
            return TupleVariable(
                [ConstantVariable(v) if type(v) is not tuple else self._wrap_tuple(v, None) for v in value]
            )
        return TupleVariable(self._items(value, source), source)

    def _wrap_tail(self, value: Any, source: Any) -> VariableTracker:
        made = TailVariable(self._items(value, source), source)
        if self.config.dynamic_numbers:  # the next item of a loop most often, different each time
            for i, item in enumerate(value):
                if type(item) is int and -_INT_LIMIT < item < _INT_LIMIT:
                    made.elements[i] = SymIntVariable(self._symbol(item, Item(source, i)), Item(source, i))
        return made

    def _wrap_deque(self, value: Any, source: Any) -> VariableTracker:
        elements: list[Any] = []
        if source is not None:
            self.guard(g.type_is(source, deque))
            self.guard(g.length(source, len(value)))
            self.guard(
                g.equals(Attr(source, "maxlen"), value.maxlen)
                if value.maxlen is not None
                else g.is_none(Attr(source, "maxlen"))
            )
        for i, v in enumerate(value):
            elements.append(Lazy(v, source and GetItem(source, i)))
        return DequeVariable(elements, source, value.maxlen)

    def _wrap_dict(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, type(value)))
        factory = None
        if type(value) is defaultdict:
            factory = self.wrap(value.default_factory, source and Attr(source, "default_factory"))
        made = DictVariable({}, {}, source, type(value), factory)
        self._fill_dict(made, value, source)
        return made

    def _fill_dict(self, made: DictVariable, value: Any, source: Any) -> None:
        by_identity = False
        all_keys, all_values = source and DictKeys(source), source and DictValues(source)
        for i, (k, v) in enumerate(dict.items(value) if isinstance(value, dict) else value.items()):
            if is_plain(k) or isinstance(k, type):
                key, tracker = k, ConstantVariable(k) if not isinstance(k, type) else ClassVariable(k)
                where = source and (DictItem(source, k) if isinstance(value, dict) else GetItem(source, k))
            else:
                by_identity = True
                tracker = self.wrap(k, source and Item(all_keys, i))
                key = self.key_of(tracker)
                where = source and Item(all_values, i)
            made.entries[key] = Lazy(v, where)
            made.keys[key] = tracker
            made.real_keys.append(k)
        if by_identity:
            made.guard_order(self)

    def _wrap_set(self, value: Any, source: Any) -> VariableTracker:
        if not all(is_plain(v) or isinstance(v, (type, enum.Enum)) for v in value):
            raise Unsupported("a set of objects as an input")
        if source is not None:
            self.guard(g.type_is(source, type(value)))
            self.guard(g.length(source, len(value)))
            for member in value:
                self.guard(g.python_check(source, Has(member), f"{member!r} in {source}"))
        return SetVariable({v: self.wrap(v, None) for v in value}, source, type(value))

    # -- arrays ----------------------------------------------------------------------------------------

    # -- functions, classes, objects -------------------------------------------------------------------

    def _wrap_range(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.equals(source, value))
        return RangeVariable(value, source)

    def _wrap_slice(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, slice))
        parts = [self.wrap(getattr(value, n), source and Attr(source, n)) for n in ("start", "stop", "step")]
        return SliceVariable(*parts, source)

    def _wrap_super(self, value: Any, source: Any) -> VariableTracker:
        if source is None:
            raise Unsupported("a super object that no source leads to")
        self.guard(g.type_is(source, super))
        start = self.wrap(value.__thisclass__, Attr(source, "__thisclass__"))
        return SuperVariable(start, self.wrap(value.__self__, Attr(source, "__self__")), source)

    # -- our own values --------------------------------------------------------------------------------

    def wrap_constant(self, value: Any) -> VariableTracker:
        """The tracker of a value that a computation on constants gave."""
        kind = type(value)
        if kind in PLAIN_TYPES:
            return ConstantVariable(value)
        if kind is tuple:
            return TupleVariable([self.wrap_constant(v) for v in value])
        if kind is list:
            return ListVariable([self.wrap_constant(v) for v in value])
        if kind is dict:
            return self.dict_of({k: self.wrap_constant(v) for k, v in value.items()})
        if kind in (set, frozenset):
            return SetVariable({v: self.wrap_constant(v) for v in value}, kind=kind)
        if kind is range:
            return RangeVariable(value)
        if kind is slice:
            return SliceVariable(*[self.wrap_constant(p) for p in (value.start, value.stop, value.step)])
        return self.wrap(value, None)

    def realize(self, item: Any) -> VariableTracker:
        """The tracker of an item that may be lazy."""
        return realize(self, item)

    # -- guards ----------------------------------------------------------------------------------------


def _is_stack_value(source: Any) -> bool:
    return isinstance(source, Local) and source.local.startswith((".s", ".p"))


_Rule = Callable[[Any, Any, Any], VariableTracker]
_RULES: dict[type, _Rule] = {
    int: Wrapping._wrap_int,
    float: Wrapping._wrap_float,
    FunctionType: Wrapping._wrap_function,
    BuiltinFunctionType: Wrapping._wrap_builtin,
    ModuleType: Wrapping._wrap_module,
    **{kind: Wrapping._wrap_constant for kind in PLAIN_TYPES if kind not in (int, float)},
}
_OBJECT_RULES: dict[type, _Rule] = {
    list: Wrapping._wrap_list,
    tuple: Wrapping._wrap_tuple,
    _core.Tail: Wrapping._wrap_tail,
    deque: Wrapping._wrap_deque,
    dict: Wrapping._wrap_dict,
    OrderedDict: Wrapping._wrap_dict,
    defaultdict: Wrapping._wrap_dict,
    MappingProxyType: Wrapping._wrap_dict,
    set: Wrapping._wrap_set,
    frozenset: Wrapping._wrap_set,
    range: Wrapping._wrap_range,
    slice: Wrapping._wrap_slice,
    super: Wrapping._wrap_super,
    MethodType: Wrapping._wrap_method,
    functools.partial: Wrapping._wrap_partial,
    CellType: Wrapping.wrap_cell,
    MethodDescriptorType: Wrapping._wrap_descriptor,
    WrapperDescriptorType: Wrapping._wrap_descriptor,
    ClassMethodDescriptorType: Wrapping._wrap_descriptor,
}
