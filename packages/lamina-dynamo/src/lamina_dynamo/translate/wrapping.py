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
    DictKey,
    DictValue,
    GetItem,
    InstanceAttr,
    Item,
    Local,
    MethodFunction,
    MethodSelf,
    TensorProperty,
    TypeOf,
)
from ..variables import (
    NONE,
    PLAIN_TYPES,
    BoundMethodVariable,
    BuiltinVariable,
    CellVariable,
    ClassVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    DisabledVariable,
    ExceptionVariable,
    HostInput,
    Lazy,
    ListVariable,
    MethodDescriptorVariable,
    ModuleVariable,
    ObjectKey,
    OpaqueVariable,
    OperatorVariable,
    PartialVariable,
    RangeVariable,
    ScalarVariable,
    SetVariable,
    SliceVariable,
    SymIntVariable,
    TensorVariable,
    TracedFunctionVariable,
    TupleVariable,
    UserFunctionVariable,
    UserObjectVariable,
    VariableTracker,
    cell_of,
    realize,
)  # fmt: skip
from ..variables.constant import is_plain
from .builtin_rules import FUNCTION_RULES

__all__ = ["Wrapping"]

_INT_LIMIT = 1 << 62


class Wrapping:
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
            self._guard_id(value, source)
            return OperatorVariable(id_, value, source)
        if isinstance(value, (type, UnionType)):
            self._guard_id(value, source)
            return ClassVariable(value, source)
        if isinstance(value, enum.Enum) or frontend.is_constant(value):
            self._guard_id(value, source)
            return ConstantVariable(value, source) if isinstance(value, enum.Enum) else OpaqueVariable(value, source)
        if isinstance(value, ModuleType):
            self._guard_id(value, source)
            return ModuleVariable(value, source)
        if isinstance(value, BaseException):
            return self._wrap_exception(value, source)
        return self._wrap_instance(value, source)

    def _wrap_switch(self, value: Any, source: Any) -> VariableTracker:
        """A compiled or disabled function: the first is its original here, the second a break when it is called."""
        self._guard_id(value, source)
        reason = self.config.disabled_reason(value)
        if reason is None:
            return self.wrap(value.function, source and Attr(source, "function"))
        return DisabledVariable(value, reason, source)

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
        if self.config.dynamic_numbers and -_INT_LIMIT < value < _INT_LIMIT:
            # what lies on the stack of a resume function is most often the next item of a loop, different each time
            if _is_stack_value(source) or self.memory.is_dynamic(source.name, value):
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
        if self.config.dynamic_numbers and value == value and self.memory.is_dynamic(source.name, value):
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
            return TupleVariable([ConstantVariable(v) if type(v) is not tuple else self._wrap_tuple(v, None) for v in value])
        return TupleVariable(self._items(value, source), source)

    def _wrap_deque(self, value: Any, source: Any) -> VariableTracker:
        elements: list[Any] = []
        if source is not None:
            self.guard(g.type_is(source, deque))
            self.guard(g.length(source, len(value)))
            self.guard(g.equals(Attr(source, "maxlen"), value.maxlen) if value.maxlen is not None else g.is_none(Attr(source, "maxlen")))
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
        for i, (k, v) in enumerate(dict.items(value) if isinstance(value, dict) else value.items()):
            if is_plain(k) or isinstance(k, type):
                key, tracker = k, ConstantVariable(k) if not isinstance(k, type) else ClassVariable(k)
                where = source and (DictItem(source, k) if isinstance(value, dict) else GetItem(source, k))
            else:
                by_identity = True
                tracker = self.wrap(k, source and DictKey(source, i))
                key = self.key_of(tracker)
                where = source and DictValue(source, i)
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
                self.guard(g.python_check(source, _Has(member), f"{member!r} in {source}"))
        return SetVariable({v: self.wrap(v, None) for v in value}, source, type(value))

    # -- arrays ----------------------------------------------------------------------------------------

    def _wrap_array(self, value: Any, source: Any) -> VariableTracker:
        if source is None:
            return self._constant_array(value)
        frontend = self.frontend
        fake = frontend.fake(value, self.shape_env, functools.partial(self._size, source, value))
        for guard in frontend.guards(value, source, fake):
            self.guard(guard)
        spec = frontend.spec(fake)
        self._guard_strides(spec, source)
        node = self.output.add_input(source, source.name, spec, value)
        made = TensorVariable(node, fake, source)
        self.fakes[id(fake)] = made
        self.arrays.append((value, made))
        return made

    def _constant_array(self, value: Any) -> VariableTracker:
        source = g_weak(value)
        self.guard(g.id_is(source, value))
        return self._wrap_array(value, source)

    def _size(self, source: Any, value: Any, dim: int, size: int) -> Any:
        where = TensorProperty(source, "size", dim)
        mark = self.config.size_mark(value, dim)
        if mark is not None and mark.policy == "static":
            return size
        forced = mark is not None and mark.policy in ("dynamic", "maybe")
        if not forced and not (self.config.dynamic_sizes and self.memory.is_dynamic(where.name, size)):
            return size
        lower = 0 if mark is None or mark.lower is None else mark.lower
        made = self.shape_env.create_symbol(
            size, where.name, lower=lower, upper=None if mark is None else mark.upper, line=self.line_text()
        )
        self.symbols[made.expr] = where
        self.shape_env_ints[made.expr] = made
        if mark is not None and (mark.lower is not None or mark.upper is not None):
            self.bounded_symbols.append((made, mark))
        return made

    def _guard_strides(self, spec: Any, source: Any) -> None:
        """Strides that follow symbolic sizes: the caller's must follow them too."""
        if not getattr(self.frontend, "guards_strides", False):
            return
        from lamina_fx.symbolic import to_python

        for dim, stride in enumerate(spec.strides):
            if type(stride) is int:
                continue
            symbols = {s.name: self.symbols[s] for s in stride.expr.free_symbols}
            text = f"t == {to_python(stride.expr)}"
            size = spec.shape[dim]
            if type(size) is not int:
                symbols["n"] = TensorProperty(source, "size", dim)
                text = f"n <= 1 or {text}"
            self.guard(g.shape_holds(text, {**symbols, "t": TensorProperty(source, "stride", dim)}))

    # -- functions, classes, objects -------------------------------------------------------------------

    def _wrap_function(self, value: Any, source: Any) -> VariableTracker:
        if self.traces and self.frontend.is_traced(value):
            self._guard_id(value, source)
            return TracedFunctionVariable(value, source)
        id_ = self.frontend.operator(value)
        if id_ is not None:
            self._guard_id(value, source)
            return OperatorVariable(id_, value, source)
        return UserFunctionVariable(value, source)

    def wrap_trusted_function(self, value: Any) -> VariableTracker:
        """A function that a guard elsewhere pins; its own globals and cells are reached weakly."""
        if not isinstance(value, FunctionType):
            return self.wrap(value, None)
        return self._wrap_function(value, g_weak(value))

    def _wrap_method(self, value: Any, source: Any) -> VariableTracker:
        id_ = self.frontend.operator(value)
        if id_ is not None:
            self._guard_id(value, source)
            return OperatorVariable(id_, value, source)
        if source is not None:
            self.guard(g.type_is(source, MethodType))
        function = self.wrap(value.__func__, source and MethodFunction(source))
        return BoundMethodVariable(function, self.wrap(value.__self__, source and MethodSelf(source)), source)

    def _wrap_builtin(self, value: Any, source: Any) -> VariableTracker:
        self._guard_id(value, source)
        id_ = None if value in FUNCTION_RULES else self.frontend.operator(value)
        if id_ is not None:
            return OperatorVariable(id_, value, source)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, (ModuleType, type)):
            return self._wrap_bound_builtin(value, owner, source)
        return BuiltinVariable(value, source)

    def _wrap_bound_builtin(self, value: Any, owner: Any, source: Any) -> VariableTracker:
        inner = self.wrap(owner, source and Attr(source, "__self__"))
        return self.bound_native(inner, value.__name__)

    def _wrap_descriptor(self, value: Any, source: Any) -> VariableTracker:
        self._guard_id(value, source)
        id_ = self.frontend.operator(value)
        return MethodDescriptorVariable(value, source) if id_ is None else OperatorVariable(id_, value, source)

    def _wrap_partial(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, functools.partial))
            self.guard(g.length(Attr(source, "args"), len(value.args)))
            self.guard(g.dict_keys(Attr(source, "keywords"), list(value.keywords)))
        function = self.wrap(value.func, source and Attr(source, "func"))
        args = [Lazy(v, source and Item(Attr(source, "args"), i)) for i, v in enumerate(value.args)]
        kwargs = {k: Lazy(v, source and DictItem(Attr(source, "keywords"), k)) for k, v in value.keywords.items()}
        return PartialVariable(function, args, kwargs, source)

    def wrap_cell(self, cell: CellType, source: Any) -> CellVariable:
        """The tracker of a cell of the caller."""
        found = self.seen.get(id(cell))
        if found is not None:
            if source is not None and found[1].source is not None and found[1].source != source:
                self.guard(g.same_object(found[1].source, source))
            return found[1]  # type: ignore[return-value]
        made = cell_of(cell, source)
        if made.content is None and source is not None:
            self.guard(g.cell_state(source, False))
        self.seen[id(cell)] = (cell, made)
        return made

    def _wrap_instance(self, value: Any, source: Any) -> VariableTracker:
        cls = type(value)
        if source is not None:
            self.guard(g.type_is(source, cls))
        made = UserObjectVariable(cls, real=value, source=source)
        self.seen[id(value)] = (value, made)
        self._fill_instance(made, value, source)
        return made

    def _fill_instance(self, made: UserObjectVariable, value: Any, source: Any) -> None:
        try:
            table = object.__getattribute__(value, "__dict__")
        except AttributeError:
            table = None
        if type(table) is dict:
            attrs = DictVariable({}, {}, source and Attr(source, "__dict__"))
            attrs.owner = made
            for name, item in table.items():
                attrs.entries[name] = Lazy(item, source and InstanceAttr(source, name))
                attrs.keys[name] = ConstantVariable(name)
                attrs.real_keys.append(name)
            made.attrs = attrs
        for base in _NATIVE_BASES:
            if isinstance(value, base):
                made.native = self._native_part(value, base, source)

    def _native_part(self, value: Any, base: type, source: Any) -> VariableTracker:
        if base is dict:
            native = DictVariable({}, {}, source, base)
            self._fill_dict(native, value, source)
            if isinstance(value, defaultdict):
                native.kind = defaultdict
                native.factory = self.wrap(value.default_factory, source and Attr(source, "default_factory"))
            return native
        if base in (list, tuple):
            elements = [Lazy(base.__getitem__(value, i), source and Item(source, i)) for i in range(base.__len__(value))]
            if source is not None:
                self.guard(g.length(source, len(elements)))
            return (ListVariable if base is list else TupleVariable)(elements, source)
        if base in (int, float, str, bytes):
            if source is not None:
                self.guard(g.python_check(source, _Equals(value, base), f"{source} == {base(value)!r}"))
            return ConstantVariable(base(value))
        raise Unsupported(f"an instance of {type(value).__name__}, a subclass of {base.__name__}, as an input")

    def _wrap_exception(self, value: BaseException, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, type(value)))
        args = self.wrap(value.args, source and Attr(source, "args"))
        made = ExceptionVariable(type(value), args, real=value, source=source)
        self._fill_instance(made, value, source)
        return made

    def _wrap_module(self, value: Any, source: Any) -> VariableTracker:
        self._guard_id(value, source)
        return ModuleVariable(value, source)

    def _wrap_range(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.equals(source, value))
        return RangeVariable(value, source)

    def _wrap_slice(self, value: Any, source: Any) -> VariableTracker:
        if source is not None:
            self.guard(g.type_is(source, slice))
        parts = [self.wrap(getattr(value, n), source and Attr(source, n)) for n in ("start", "stop", "step")]
        return SliceVariable(*parts, source)

    def class_variable(self, cls: type, source: Any) -> VariableTracker:
        """The tracker of a class that is known to be what it is (by a type guard)."""
        found = self.seen.get(id(cls))
        if found is not None:
            return found[1]
        made: VariableTracker = ClassVariable(cls, source)
        self.seen[id(cls)] = (cls, made)
        return made

    def _guard_id(self, value: Any, source: Any) -> None:
        if source is not None:
            self.guard(g.id_is(source, value))

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

    def guard(self, guard: g.Guard) -> None:
        """Add a guard."""
        self.guards.add(guard)

    def guard_equals(self, source: Any, value: Any) -> None:
        """The source keeps this value: it was pinned by a branch or an index."""
        self.guard(g.equals(source, value, line=self.line_text()))

    def guard_attr_absent(self, source: Any, name: str) -> None:
        """The object has no such attribute."""
        if source is not None:
            self.guard(g.attr_present(source, name, False))

    def guard_dict_keys(self, variable: DictVariable) -> None:
        """The caller's dict has exactly its keys, in order (those at entry)."""
        self.guard(g.dict_keys(variable.source, variable.real_keys))

    def guard_dict_absent(self, variable: DictVariable, key: Any) -> None:
        """The caller's dict (or object) lacks a key."""
        if variable.owner is not None:
            self.guard(g.attr_present(variable.owner.source, key, False, raw=True))
        elif isinstance(key, (ObjectKey, tuple)):
            variable.guard_order(self)
        elif variable.kind is MappingProxyType:
            self.guard(g.python_check(variable.source, _Lacks(key), f"{key!r} not in {variable.source}"))
        else:
            self.guard(g.dict_has(variable.source, key, False))

    def guard_super(self, instance: Any, base: type, name: str, raw: Any) -> None:
        """What a class behind in the mro holds under a name; the instance's type is guarded, the entry of the class is not a
        step that a source can make, so it is checked by a function."""
        source = instance.source if isinstance(instance, ClassVariable) else getattr(instance, "cls_source", None)
        key = (base, name)
        if source is None or key in self.super_guards:
            return
        self.super_guards.add(key)
        self.guard(g.python_check(source, _MroEntry(base, name, raw), f"super {base.__qualname__}.{name} is unchanged"))


def _is_stack_value(source: Any) -> bool:
    return isinstance(source, Local) and source.local.startswith(".s")


class _Has:
    """Membership, as a guard."""

    __slots__ = ("member",)

    def __init__(self, member: Any) -> None:
        self.member = member

    def __call__(self, value: Any) -> bool:
        return self.member in value


class _Lacks(_Has):
    __slots__ = ()

    def __call__(self, value: Any) -> bool:
        return self.member not in value


class _Equals:
    """Equality of the built-in part of an instance."""

    __slots__ = ("base", "value")

    def __init__(self, value: Any, base: type) -> None:
        self.value = base(value)
        self.base = base

    def __call__(self, value: Any) -> bool:
        return self.base.__eq__(value, self.value) is True


class _MroEntry:
    """An entry of a class's own dict, by identity; holds the class and the entry weakly where it can."""

    __slots__ = ("base", "entry", "name")

    def __init__(self, base: type, name: str, raw: Any) -> None:
        self.base = g.Identity.of(base)
        self.name = name
        self.entry = g.Identity.of(raw)

    def __call__(self, value: Any) -> bool:
        base = self.base.get()
        return base is not None and base.__dict__.get(self.name) is self.entry.get()  # type: ignore[attr-defined]


def g_weak(value: Any) -> Any:
    """A source for an object that no path leads to."""
    from ..source import Const, WeakObject

    try:
        return WeakObject(value)
    except TypeError:
        return Const(value)


_NATIVE_BASES = (dict, list, tuple, set, frozenset, int, float, str, bytes, deque)

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
    deque: Wrapping._wrap_deque,
    dict: Wrapping._wrap_dict,
    OrderedDict: Wrapping._wrap_dict,
    defaultdict: Wrapping._wrap_dict,
    MappingProxyType: Wrapping._wrap_dict,
    set: Wrapping._wrap_set,
    frozenset: Wrapping._wrap_set,
    range: Wrapping._wrap_range,
    slice: Wrapping._wrap_slice,
    MethodType: Wrapping._wrap_method,
    functools.partial: Wrapping._wrap_partial,
    CellType: Wrapping.wrap_cell,
    MethodDescriptorType: Wrapping._wrap_descriptor,
    WrapperDescriptorType: Wrapping._wrap_descriptor,
    ClassMethodDescriptorType: Wrapping._wrap_descriptor,
}
_ = NONE, TypeOf
