"""What the built-in functions and classes do on trackers: two tables, by the function or class itself.

A rule takes the translator and the call's arguments as trackers. Functions without a rule are folded when all their arguments are
known and their module is known to be pure; otherwise the graph breaks.
"""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import math
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

from ..errors import Unsupported
from ..status import is_compiling
from ..variables import (
    MISSING,
    NONE,
    BoundMethodVariable,
    ClassVariable,
    ConstantVariable,
    CountIterator,
    DequeVariable,
    DictVariable,
    DictViewVariable,
    EnumerateIterator,
    ExceptionVariable,
    FunctionVariable,
    HostInput,
    IteratorVariable,
    ListVariable,
    MapIterator,
    NotConstant,
    ObservedException,
    PartialVariable,
    RangeVariable,
    ScalarVariable,
    SequenceVariable,
    SetVariable,
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
from .operations import BINARY, COMPARE

__all__ = ["CLASS_RULES", "FUNCTION_RULES"]

FUNCTION_RULES: dict[Any, Callable[..., VariableTracker]] = {}
CLASS_RULES: dict[type, Callable[..., VariableTracker]] = {}


def _rule(*functions: Any) -> Callable[[Any], Any]:
    def register(rule: Any) -> Any:
        for function in functions:
            (CLASS_RULES if isinstance(function, type) else FUNCTION_RULES)[function] = rule
        return rule

    return register


# -- classes ---------------------------------------------------------------------------------------------


@_rule(tuple)
def _tuple(tx: Any, values: Any = None) -> VariableTracker:
    if values is None:
        return TupleVariable([])
    return values if type(values) is TupleVariable else TupleVariable(list(tx.unpack(values)))


@_rule(list)
def _list(tx: Any, values: Any = None) -> VariableTracker:
    if isinstance(values, SequenceVariable):
        return ListVariable(list(values.elements))
    return ListVariable([] if values is None else list(tx.unpack(values)))


@_rule(set, frozenset)
def _set(tx: Any, values: Any = None) -> VariableTracker:
    return tx.set_of([] if values is None else tx.unpack(values))


@_rule(frozenset)
def _frozenset(tx: Any, values: Any = None) -> VariableTracker:
    return tx.set_of([] if values is None else tx.unpack(values), frozenset)


@_rule(dict)
def _dict(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    made = DictVariable()
    made._m_update(tx, *args, **kwargs)
    return made


@_rule(collections.OrderedDict)
def _ordered_dict(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    made = _dict(tx, *args, **kwargs)
    made.kind = collections.OrderedDict  # type: ignore[attr-defined]
    return made


@_rule(collections.defaultdict)
def _defaultdict(tx: Any, factory: Any = NONE, *args: Any, **kwargs: Any) -> VariableTracker:
    made = _dict(tx, *args, **kwargs)
    made.kind, made.factory = collections.defaultdict, factory  # type: ignore[attr-defined]
    return made


@_rule(collections.deque)
def _deque(tx: Any, values: Any = None, maxlen: Any = NONE) -> VariableTracker:
    made = DequeVariable([], maxlen=maxlen.as_constant())
    if values is not None:
        made._m_extend(tx, values)
    return made


@_rule(range)
def _range(tx: Any, *bounds: Any) -> VariableTracker:
    return RangeVariable(range(*[tx.index_of(b) for b in bounds]))


@_rule(slice)
def _slice(tx: Any, *parts: Any) -> VariableTracker:
    if len(parts) == 1:
        return SliceVariable(NONE, parts[0], NONE)
    return SliceVariable(*parts, *[NONE] * (3 - len(parts)))


@_rule(zip)
def _zip(tx: Any, *parts: Any, strict: Any = None) -> VariableTracker:
    return ZipIterator([p.iterator(tx) for p in parts], strict is not None and tx.truth(strict))


@_rule(enumerate)
def _enumerate(tx: Any, iterable: Any, start: Any = None) -> VariableTracker:
    return EnumerateIterator(iterable.iterator(tx), 0 if start is None else tx.index_of(start))


@_rule(map)
def _map(tx: Any, function: Any, *parts: Any) -> VariableTracker:
    return MapIterator(function, [p.iterator(tx) for p in parts])


@_rule(filter)
def _filter(tx: Any, function: Any, values: Any) -> VariableTracker:
    return MapIterator(function, [values.iterator(tx)], keep=True)


@_rule(reversed)
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
    return tx.iterator_over(list(reversed(tx.unpack(values))))


@_rule(itertools.count)
def _count(tx: Any, start: Any = None, step: Any = None) -> VariableTracker:
    return CountIterator(start or ConstantVariable(0), step or ConstantVariable(1))


@_rule(itertools.repeat)
def _repeat(tx: Any, value: Any, times: Any = None) -> VariableTracker:
    return CountIterator(value, None, None if times is None else tx.index_of(times))


@_rule(type)
def _type(tx: Any, value: Any, *rest: Any) -> VariableTracker:
    if rest:
        raise Unsupported("making a class")
    if isinstance(value, UserObjectVariable):
        return tx.class_variable(value.cls, value.cls_source)
    if isinstance(value, TensorVariable):
        return tx.class_variable(tx.frontend.array_type(value.fake), None)
    return tx.class_variable(value.python_type(), None)


@_rule(object)
def _object(tx: Any) -> VariableTracker:
    return UserObjectVariable(object)


@_rule(super)
def _super(tx: Any, *args: Any) -> VariableTracker:
    if not args:
        frame = tx.frame
        cell = frame.cells["__class__"]
        args = (cell.load(tx, "__class__"), frame.first_argument())
    start, instance = args
    return SuperVariable(start.as_constant(), instance)


@_rule(functools.partial)
def _partial(tx: Any, function: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    if isinstance(function, PartialVariable):
        return PartialVariable(function.function, [*function.args, *args], {**function.kwargs, **kwargs})
    return PartialVariable(function, list(args), kwargs)


@_rule(int, float, bool, complex)
def _unused(tx: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _number(kind: type) -> Callable[..., VariableTracker]:
    def rule(tx: Any, value: Any = None, *rest: Any, **kwargs: Any) -> VariableTracker:
        if value is None:
            return ConstantVariable(kind())
        if kind is bool:
            return ConstantVariable(tx.truth(value))
        if isinstance(value, TensorVariable):
            return _number_of_array(tx, value, kind)
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


def _number_of_array(tx: Any, value: TensorVariable, kind: type) -> VariableTracker:
    raise Unsupported(
        f"{kind.__name__}() of an array needs its value, which only running the graph tells",
        "Keep the value an array, or compute it outside the compiled function",
    )


for _kind in (int, float, bool, complex):
    CLASS_RULES[_kind] = _number(_kind)


@_rule(str)
def _str(tx: Any, value: Any = None, *rest: Any) -> VariableTracker:
    if value is None:
        return ConstantVariable("")
    if isinstance(value, ExceptionVariable) and not isinstance(type_lookup(value.cls, "__str__"), types.FunctionType):
        return tx.exception_text(value)
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__str__")
        return method.call(tx, [], {})  # type: ignore[union-attr]
    return tx.call_native(str, [value, *rest], {})


@_rule(property, staticmethod, classmethod)
def _descriptor(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    raise Unsupported("making a descriptor")


# -- functions -------------------------------------------------------------------------------------------


@_rule(len)
def _len(tx: Any, value: Any) -> VariableTracker:
    return value.length(tx)


@_rule(iter)
def _iter(tx: Any, value: Any, *sentinel: Any) -> VariableTracker:
    if sentinel:
        raise Unsupported("iter() with a sentinel")
    return value.iterator(tx)


@_rule(next)
def _next(tx: Any, iterator: Any, *default: Any) -> VariableTracker:
    if not default:
        return iterator.next(tx)
    try:
        return iterator.next(tx)
    except ObservedException as error:
        if not tx.is_exception(error, StopIteration):
            raise
        return default[0]


@_rule(isinstance)
def _isinstance(tx: Any, value: Any, classes: Any) -> VariableTracker:
    if isinstance(value, TensorVariable):
        kind = tx.frontend.array_type(value.fake)
        real = value.fake if tx.frontend.array_type(value.fake) is type(value.fake) else None
        wanted = classes.as_constant()
        return ConstantVariable(isinstance(real, wanted) if real is not None else issubclass(kind, wanted))
    wanted = _classes(tx, classes)
    kind = value.python_type()
    for cls in wanted:
        hook = type_lookup(type(cls), "__instancecheck__")
        if isinstance(hook, types.FunctionType) and type(cls).__module__ not in ("abc", "typing", "enum"):
            verdict = tx.wrap_trusted_function(hook).call(tx, [tx.class_variable(cls, None), value], {})
            if tx.truth(verdict):
                return ConstantVariable(True)
        elif isinstance(cls, (type, types.UnionType)) and issubclass(kind, cls):
            return ConstantVariable(True)
    return ConstantVariable(False)


def _classes(tx: Any, classes: Any) -> list[Any]:
    if isinstance(classes, TupleVariable):
        return [c for part in classes.all(tx) for c in _classes(tx, part)]
    try:
        return [classes.as_constant()]
    except NotConstant:
        raise Unsupported("isinstance() with a class that is not known") from None


@_rule(issubclass)
def _issubclass(tx: Any, cls: Any, classes: Any) -> VariableTracker:
    return tx.call_native(issubclass, [cls, classes], {})


@_rule(callable)
def _callable(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, UserObjectVariable):
        return ConstantVariable(type_lookup(value.cls, "__call__") is not MISSING)
    if isinstance(value, TensorVariable):
        return ConstantVariable(callable(value.fake))
    return ConstantVariable(type_lookup(value.python_type(), "__call__") is not MISSING)


@_rule(getattr)
def _getattr(tx: Any, value: Any, name: Any, *default: Any) -> VariableTracker:
    if not default:
        return value.getattr(tx, name.as_constant())
    try:
        return value.getattr(tx, name.as_constant())
    except ObservedException as error:
        if not tx.is_exception(error, AttributeError):
            raise
        return default[0]


@_rule(hasattr)
def _hasattr(tx: Any, value: Any, name: Any) -> VariableTracker:
    try:
        value.getattr(tx, name.as_constant())
    except ObservedException as error:
        if not tx.is_exception(error, AttributeError):
            raise
        return ConstantVariable(False)
    return ConstantVariable(True)


@_rule(setattr)
def _setattr(tx: Any, value: Any, name: Any, new: Any) -> VariableTracker:
    value.setattr(tx, name.as_constant(), new)
    return NONE


@_rule(delattr)
def _delattr(tx: Any, value: Any, name: Any) -> VariableTracker:
    value.delattr(tx, name.as_constant())
    return NONE


@_rule(vars)
def _vars(tx: Any, value: Any) -> VariableTracker:
    return value.getattr(tx, "__dict__")


@_rule(id)
def _id(tx: Any, value: Any) -> VariableTracker:
    raise Unsupported("id(), which is an address", "Compare with `is`, or use the object itself as a key")


@_rule(hash)
def _hash(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__hash__")
        if method is None:
            raise tx.error(TypeError, f"unhashable type: {value.cls.__name__!r}")
        return method.call(tx, [], {})
    tx.key_of(value)
    return tx.call_native(hash, [value], {})


@_rule(repr)
def _repr(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, UserObjectVariable) and not isinstance(value, ExceptionVariable):
        method = value.special(tx, "__repr__")
        return method.call(tx, [], {})  # type: ignore[union-attr]
    if isinstance(value, (ListVariable, DictVariable, SetVariable)) and value.source is None:
        return _repr_container(tx, value)
    return tx.call_native(repr, [value], {})


def _repr_container(tx: Any, value: Any) -> VariableTracker:
    def text(item: Any) -> str:
        return _repr(tx, item).as_constant()

    if isinstance(value, DictVariable) and value.kind is dict:
        pairs = zip(value.key_list(tx), value.value_list(tx), strict=True)
        return ConstantVariable("{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in pairs) + "}")
    if type(value) is ListVariable:
        return ConstantVariable("[" + ", ".join(text(v) for v in value.all(tx)) + "]")
    raise Unsupported(f"repr() of {value!r}")


@_rule(format)
def _format(tx: Any, value: Any, spec: Any = None) -> VariableTracker:
    spec = spec or ConstantVariable("")
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__format__")
        if isinstance(type_lookup(value.cls, "__format__"), types.FunctionType):
            return method.call(tx, [spec], {})  # type: ignore[union-attr]
        value = _str(tx, value)
    if isinstance(value, (ListVariable, DictVariable, SetVariable)):
        value = _repr(tx, value)
    return tx.call_native(format, [value, spec], {})


@_rule(min, max)
def _minmax(tx: Any, *args: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _extremum(name: str, least: bool) -> Callable[..., VariableTracker]:
    def rule(tx: Any, *args: Any, key: Any = NONE, default: Any = None) -> VariableTracker:
        values = args[0] if len(args) == 1 else TupleVariable(list(args))
        given = default is not None
        return tx.polyfill(
            "extremum",
            [values, key, default or NONE, ConstantVariable(given), ConstantVariable(name), ConstantVariable(least)],
            {},
        )

    return rule


FUNCTION_RULES[min] = _extremum("min", True)
FUNCTION_RULES[max] = _extremum("max", False)


@_rule(sorted)
def _sorted(tx: Any, values: Any, *, key: Any = None, reverse: Any = None) -> VariableTracker:
    return ListVariable(tx.sorted(tx.unpack(values), key, reverse))


@_rule(abs)
def _abs(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, TensorVariable):
        return tx.python_operator(abs, [value])
    if isinstance(value, (SymIntVariable, ScalarVariable)):
        return tx.number(abs, [value])
    if isinstance(value, UserObjectVariable):
        return value.method(tx, "__abs__", [], {})
    return tx.call_native(abs, [value], {})


@_rule(round)
def _round(tx: Any, value: Any, *digits: Any) -> VariableTracker:
    if isinstance(value, (TensorVariable, UserObjectVariable)):
        return value.method(tx, "round" if isinstance(value, TensorVariable) else "__round__", list(digits), {})
    return tx.call_native(round, [value, *digits], {})


@_rule(pow)
def _pow(tx: Any, base: Any, exponent: Any, *modulus: Any) -> VariableTracker:
    if modulus:
        return tx.call_native(pow, [base, exponent, *modulus], {})
    return tx.binary("**", base, exponent)


@_rule(divmod)
def _divmod(tx: Any, left: Any, right: Any) -> VariableTracker:
    return TupleVariable([tx.binary("//", left, right), tx.binary("%", left, right)])


@_rule(math.sqrt, math.floor, math.ceil, math.exp, math.log, math.pow, math.sin, math.cos, math.tanh, math.log2)
def _unused_math(tx: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _math(function: Any) -> Callable[..., VariableTracker]:
    def rule(tx: Any, *args: Any) -> VariableTracker:
        if any(isinstance(a, (SymIntVariable, ScalarVariable)) for a in args) and function not in (math.floor, math.ceil):
            return tx.number(function, list(args))
        if any(isinstance(a, TensorVariable) for a in args):
            return _number_of_array(tx, args[0], float)
        return tx.call_native(function, list(args), {})

    return rule


for _function in (math.sqrt, math.floor, math.ceil, math.exp, math.log, math.pow, math.sin, math.cos, math.tanh, math.log2):
    FUNCTION_RULES[_function] = _math(_function)


@_rule(globals, locals)
def _namespace(tx: Any) -> VariableTracker:
    raise Unsupported("globals() or locals()")


@_rule(print)
def _print(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    raise Unsupported("print()")


# -- the operator module -----------------------------------------------------------------------------------


def _binary_rule(symbol: str, inplace: bool) -> Callable[..., VariableTracker]:
    def rule(tx: Any, left: Any, right: Any) -> VariableTracker:
        return tx.binary(symbol, left, right, inplace)

    return rule


def _compare_rule(symbol: str) -> Callable[..., VariableTracker]:
    def rule(tx: Any, left: Any, right: Any) -> VariableTracker:
        return tx.compare(symbol, left, right)

    return rule


for _symbol, (_plain, _inplace, _) in BINARY.items():
    FUNCTION_RULES[_plain] = _binary_rule(_symbol, False)
    FUNCTION_RULES[_inplace] = _binary_rule(_symbol, True)
for _symbol, (_plain, _, _) in COMPARE.items():
    FUNCTION_RULES[_plain] = _compare_rule(_symbol)


@_rule(operator.getitem)
def _getitem(tx: Any, value: Any, index: Any) -> VariableTracker:
    return value.getitem(tx, index)


@_rule(operator.setitem)
def _setitem(tx: Any, value: Any, index: Any, new: Any) -> VariableTracker:
    value.setitem(tx, index, new)
    return NONE


@_rule(operator.delitem)
def _delitem(tx: Any, value: Any, index: Any) -> VariableTracker:
    value.delitem(tx, index)
    return NONE


@_rule(operator.contains)
def _contains(tx: Any, value: Any, item: Any) -> VariableTracker:
    return ConstantVariable(tx.contains(value, item))


@_rule(operator.is_)
def _is(tx: Any, left: Any, right: Any) -> VariableTracker:
    return ConstantVariable(tx.identical(left, right))


@_rule(operator.is_not)
def _is_not(tx: Any, left: Any, right: Any) -> VariableTracker:
    return ConstantVariable(not tx.identical(left, right))


@_rule(operator.truth)
def _truth(tx: Any, value: Any) -> VariableTracker:
    return ConstantVariable(tx.truth(value))


@_rule(operator.not_)
def _not(tx: Any, value: Any) -> VariableTracker:
    return ConstantVariable(not tx.truth(value))


@_rule(operator.neg)
def _neg(tx: Any, value: Any) -> VariableTracker:
    return tx.unary("-", value)


@_rule(operator.index)
def _index(tx: Any, value: Any) -> VariableTracker:
    return value if isinstance(value, SymIntVariable) else ConstantVariable(tx.index_of(value))


@_rule(operator.itemgetter)
def _itemgetter(tx: Any, *keys: Any) -> VariableTracker:
    return PartialVariable(tx.polyfill_function("itemgetter_call"), [TupleVariable(list(keys))], {})


@_rule(operator.attrgetter)
def _attrgetter(tx: Any, *names: Any) -> VariableTracker:
    return PartialVariable(tx.polyfill_function("attrgetter_call"), [TupleVariable(list(names))], {})


@_rule(operator.methodcaller)
def _methodcaller(tx: Any, name: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    bound = [name, TupleVariable(list(args)), tx.dict_of(kwargs)]
    return PartialVariable(tx.polyfill_function("methodcaller_call"), bound, {})


@_rule(inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isfunction)
def _is_generator_function(tx: Any, value: Any) -> VariableTracker:
    raise AssertionError  # replaced below


def _code_flag(flag: int) -> Callable[..., VariableTracker]:
    def rule(tx: Any, value: Any) -> VariableTracker:
        if isinstance(value, BoundMethodVariable):
            value = value.function
        return ConstantVariable(isinstance(value, FunctionVariable) and bool(value.code.co_flags & flag))

    return rule


FUNCTION_RULES[inspect.isgeneratorfunction] = _code_flag(inspect.CO_GENERATOR)
FUNCTION_RULES[inspect.iscoroutinefunction] = _code_flag(inspect.CO_COROUTINE)
FUNCTION_RULES[inspect.isfunction] = _code_flag(inspect.CO_OPTIMIZED)


@_rule(typing.cast)
def _cast(tx: Any, kind: Any, value: Any) -> VariableTracker:
    return value


@_rule(is_compiling)
def _is_compiling(tx: Any) -> VariableTracker:
    return ConstantVariable(True)


_ = ClassVariable, DictViewVariable, FunctionVariable, IteratorVariable
