"""What the built-in functions do."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ..errors import Unsupported
from ..variables import (
    MISSING,
    NONE,
    ConstantVariable,
    DictVariable,
    ExceptionVariable,
    ListVariable,
    NotConstant,
    ObservedException,
    ScalarVariable,
    SetVariable,
    SymIntVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    type_lookup,
)  # fmt: skip
from .builtin_classes import str_of
from .builtin_tables import FUNCTION_RULES, rule_for


@rule_for(len)
def _len(tx: Any, value: Any) -> VariableTracker:
    return value.length(tx)


@rule_for(iter)
def _iter(tx: Any, value: Any, *sentinel: Any) -> VariableTracker:
    if sentinel:
        raise Unsupported("iter() with a sentinel")
    return value.iterator(tx)


@rule_for(next)
def _next(tx: Any, iterator: Any, *default: Any) -> VariableTracker:
    if not default:
        return iterator.next(tx)
    try:
        return iterator.next(tx)
    except ObservedException as error:
        if not tx.is_exception(error, StopIteration):
            raise
        return default[0]


@rule_for(isinstance)
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
        elif not isinstance(cls, (type, types.UnionType)):
            return tx.call_native(isinstance, [ConstantVariable(None), ConstantVariable(cls)], {})
    return ConstantVariable(False)


def _classes(tx: Any, classes: Any) -> list[Any]:
    if isinstance(classes, TupleVariable):
        return [c for part in classes.all(tx) for c in _classes(tx, part)]
    try:
        return [classes.as_constant()]
    except NotConstant:
        raise Unsupported("isinstance() with a class that is not known") from None


@rule_for(issubclass)
def _issubclass(tx: Any, cls: Any, classes: Any) -> VariableTracker:
    return tx.call_native(issubclass, [cls, classes], {})


@rule_for(callable)
def _callable(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, UserObjectVariable):
        return ConstantVariable(type_lookup(value.cls, "__call__") is not MISSING)
    if isinstance(value, TensorVariable):
        return ConstantVariable(callable(value.fake))
    return ConstantVariable(type_lookup(value.python_type(), "__call__") is not MISSING)


@rule_for(getattr)
def _getattr(tx: Any, value: Any, name: Any, *default: Any) -> VariableTracker:
    if not default:
        return value.getattr(tx, name.as_constant())
    try:
        return value.getattr(tx, name.as_constant())
    except ObservedException as error:
        if not tx.is_exception(error, AttributeError):
            raise
        return default[0]


@rule_for(hasattr)
def _hasattr(tx: Any, value: Any, name: Any) -> VariableTracker:
    try:
        value.getattr(tx, name.as_constant())
    except ObservedException as error:
        if not tx.is_exception(error, AttributeError):
            raise
        return ConstantVariable(False)
    return ConstantVariable(True)


@rule_for(setattr)
def _setattr(tx: Any, value: Any, name: Any, new: Any) -> VariableTracker:
    value.setattr(tx, name.as_constant(), new)
    return NONE


@rule_for(delattr)
def _delattr(tx: Any, value: Any, name: Any) -> VariableTracker:
    value.delattr(tx, name.as_constant())
    return NONE


@rule_for(vars)
def _vars(tx: Any, value: Any) -> VariableTracker:
    return value.getattr(tx, "__dict__")


@rule_for(id)
def _id(tx: Any, value: Any) -> VariableTracker:
    raise Unsupported("id(), which is an address", "Compare with `is`, or use the object itself as a key")


@rule_for(hash)
def _hash(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__hash__")
        if method is None:
            raise tx.error(TypeError, f"unhashable type: {value.cls.__name__!r}")
        return method.call(tx, [], {})
    tx.key_of(value)
    return tx.call_native(hash, [value], {})


@rule_for(repr)
def _repr(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, ExceptionVariable) and not isinstance(type_lookup(value.cls, "__repr__"), types.FunctionType):
        return tx.native_call(BaseException.__repr__, "__repr__", value, [], {})
    if isinstance(value, UserObjectVariable):
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


@rule_for(format)
def _format(tx: Any, value: Any, spec: Any = None) -> VariableTracker:
    spec = spec or ConstantVariable("")
    if isinstance(value, UserObjectVariable):
        method = value.special(tx, "__format__")
        if isinstance(type_lookup(value.cls, "__format__"), types.FunctionType):
            return method.call(tx, [spec], {})  # type: ignore[union-attr]
        value = str_of(tx, value)
    if isinstance(value, (ListVariable, DictVariable, SetVariable)):
        value = _repr(tx, value)
    return tx.call_native(format, [value, spec], {})


@rule_for(min, max)
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


@rule_for(sorted)
def _sorted(tx: Any, values: Any, *, key: Any = None, reverse: Any = None) -> VariableTracker:
    return ListVariable(tx.sorted(tx.unpack(values), key, reverse))


@rule_for(abs)
def _abs(tx: Any, value: Any) -> VariableTracker:
    if isinstance(value, TensorVariable):
        return tx.python_operator(abs, [value])
    if isinstance(value, (SymIntVariable, ScalarVariable)):
        return tx.number(abs, [value])
    if isinstance(value, UserObjectVariable):
        return value.method(tx, "__abs__", [], {})
    return tx.call_native(abs, [value], {})


@rule_for(round)
def _round(tx: Any, value: Any, *digits: Any) -> VariableTracker:
    if isinstance(value, (TensorVariable, UserObjectVariable)):
        return value.method(tx, "round" if isinstance(value, TensorVariable) else "__round__", list(digits), {})
    return tx.call_native(round, [value, *digits], {})


@rule_for(pow)
def _pow(tx: Any, base: Any, exponent: Any, *modulus: Any) -> VariableTracker:
    if modulus:
        return tx.call_native(pow, [base, exponent, *modulus], {})
    return tx.binary("**", base, exponent)


@rule_for(divmod)
def _divmod(tx: Any, left: Any, right: Any) -> VariableTracker:
    return TupleVariable([tx.binary("//", left, right), tx.binary("%", left, right)])


@rule_for(globals, locals)
def _namespace(tx: Any) -> VariableTracker:
    raise Unsupported("globals() or locals()")


@rule_for(print)
def _print(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    if any(name not in ("sep", "end", "flush") or not value.is_constant() for name, value in kwargs.items()):
        raise Unsupported("print() to a file")
    tx.defer(print, [a if isinstance(a, TensorVariable) else str_of(tx, a) for a in args], kwargs)
    return NONE
