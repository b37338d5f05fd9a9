"""Python's operators on trackers: arithmetic, comparison, truth, iteration, exceptions."""

from __future__ import annotations

import math
import operator
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import SymBool, SymInt

from ..errors import Unsupported
from ..variables import (
    FALSE,
    MISSING,
    NONE,
    TRUE,
    BuiltinVariable,
    CellVariable,
    ClassVariable,
    ConstantVariable,
    DequeVariable,
    DictVariable,
    DictViewVariable,
    ExceptionVariable,
    FixedIterator,
    HostInput,
    IteratorVariable,
    ListVariable,
    NotConstant,
    ObjectKey,
    ObservedException,
    RangeVariable,
    ScalarVariable,
    SequenceIterator,
    SequenceVariable,
    SetVariable,
    SliceVariable,
    SymIntVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    host_of,
    is_none,
    realize,
    type_lookup,
)  # fmt: skip

__all__ = ["BINARY", "Operations"]

BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "+": (operator.add, operator.iadd, "add"),
    "-": (operator.sub, operator.isub, "sub"),
    "*": (operator.mul, operator.imul, "mul"),
    "/": (operator.truediv, operator.itruediv, "truediv"),
    "//": (operator.floordiv, operator.ifloordiv, "floordiv"),
    "%": (operator.mod, operator.imod, "mod"),
    "**": (operator.pow, operator.ipow, "pow"),
    "@": (operator.matmul, operator.imatmul, "matmul"),
    "&": (operator.and_, operator.iand, "and"),
    "|": (operator.or_, operator.ior, "or"),
    "^": (operator.xor, operator.ixor, "xor"),
    "<<": (operator.lshift, operator.ilshift, "lshift"),
    ">>": (operator.rshift, operator.irshift, "rshift"),
}
"""Symbol -> the function, its in-place form, the stem of the special methods."""

COMPARE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
}

_UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}
_SET_METHODS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}
_NUMBERS = (SymIntVariable, ScalarVariable)


class Operations:
    """The part of the translator that knows the operators."""

    Observed = ObservedException
    frontend: Any
    side_effects: Any

    # -- exceptions of the traced program ----------------------------------------------------------------

    def error(self, cls: type, *args: Any) -> ObservedException:
        """An exception of the traced program with constant arguments."""
        return self.error_of(cls, [ConstantVariable(a) for a in args])

    def error_of(self, cls: type, args: list[VariableTracker]) -> ObservedException:
        """An exception of the traced program."""
        variable = ExceptionVariable(cls, TupleVariable(list(args)))
        variable.attrs = DictVariable()
        return self.observe(variable)

    def observe(self, variable: ExceptionVariable) -> ObservedException:
        """Raise this exception object in the traced program."""
        handled = self.handled
        if handled is not None and handled is not variable and is_none(variable.context):
            variable.context = handled
        return ObservedException(variable)

    def observed(self, error: BaseException) -> ObservedException:
        """An exception that a computation on constants or fakes raised."""
        made = self.error_of(type(error), [])
        try:
            made.variable.args = self.wrap_constant(error.args)
        except Unsupported:
            made.variable.args = TupleVariable([ConstantVariable(str(error))])
        return made

    def observed_from(self, value: VariableTracker) -> ObservedException:
        """What ``raise value`` raises."""
        if isinstance(value, ClassVariable) and issubclass(value.value, BaseException):
            value = value.call(self, [], {})
        if isinstance(value, ExceptionVariable):
            return self.observe(value)
        return self.error(TypeError, "exceptions must derive from BaseException")

    def stop_iteration(self, value: VariableTracker = NONE) -> ObservedException:
        """The end of an iterator."""
        return ObservedException(ExceptionVariable(StopIteration, TupleVariable([] if is_none(value) else [value])))

    def attribute_error(self, variable: VariableTracker, name: str) -> ObservedException:
        """No such attribute."""
        return self.error(AttributeError, f"{variable.python_type().__name__!r} object has no attribute {name!r}")

    def is_exception(self, error: ObservedException, classes: Any) -> bool:
        """Whether the traced program's exception is of these classes."""
        return issubclass(error.variable.cls, classes)

    def unsupported(self, reason: str, hint: str = "") -> Any:
        """End the graph here."""
        raise Unsupported(reason, hint)

    # -- building values -----------------------------------------------------------------------------------

    def tuple_of(self, values: list[Any]) -> TupleVariable:
        """A new tuple."""
        return TupleVariable(values)

    def list_variable(self, values: list[Any]) -> ListVariable:
        """A new list."""
        return ListVariable(values)

    def list_of(self, values: VariableTracker) -> ListVariable:
        """``list(values)``."""
        return values if isinstance(values, ListVariable) else ListVariable(self.unpack(values))

    def dict_of(self, values: dict[Any, Any]) -> DictVariable:
        """A new dict with constant keys."""
        return DictVariable(dict(values), {k: ConstantVariable(k) for k in values})

    def set_of(self, values: list[VariableTracker], kind: type = set) -> SetVariable:
        """A new set."""
        return SetVariable({self.key_of(v): v for v in reversed(values)}, kind=kind)

    def iterator_over(self, values: list[VariableTracker]) -> FixedIterator:
        """An iterator over fixed values."""
        return FixedIterator(values)

    def sequence_iterator(self, owner: SequenceVariable) -> SequenceIterator:
        """An iterator over a list that may still change."""
        return SequenceIterator(owner)

    def unpack(self, values: VariableTracker) -> list[VariableTracker]:
        """Everything an iterable gives."""
        if isinstance(values, SequenceVariable):
            return values.all(self)
        if isinstance(values, DictViewVariable):
            return values.list(self)
        if isinstance(values, DictVariable):
            return values.key_list(self)
        iterator = values.iterator(self)
        if isinstance(iterator, IteratorVariable):
            return iterator.remaining(self)
        return IteratorVariable.remaining(iterator, self)  # type: ignore[arg-type]

    def dict_update(self, target: DictVariable, other: VariableTracker) -> None:
        """``target.update(other)``."""
        native = getattr(other, "native", None)
        if isinstance(native, DictVariable):
            other = native
        if isinstance(other, DictVariable):
            for tracker, value in zip(other.key_list(self), other.value_list(self), strict=True):
                target.set(self, self.key_of(tracker), tracker, value)
            return
        if isinstance(other, UserObjectVariable) and other.special(self, "keys") is not None:
            for tracker in self.unpack(other.method(self, "keys", [], {})):
                target.set(self, self.key_of(tracker), tracker, other.getitem(self, tracker))
            return
        for pair in self.unpack(other):
            tracker, value = self.unpack(pair)
            target.set(self, self.key_of(tracker), tracker, value)

    def mutating(self, variable: VariableTracker) -> None:
        """Say that a tracker is about to change."""
        self.side_effects.mutating(variable)

    # -- keys and indices ------------------------------------------------------------------------------------

    def key_of(self, value: VariableTracker) -> Any:
        """What stands for a value in dicts and sets."""
        if isinstance(value, TupleVariable):
            return tuple([self.key_of(v) for v in value.all(self)])
        if isinstance(value, (ListVariable, DictVariable)) or (isinstance(value, SetVariable) and value.kind is set):
            raise self.error(TypeError, f"unhashable type: {value.python_type().__name__!r}")
        if isinstance(value, SetVariable):
            return frozenset(value.members)
        if isinstance(value, ScalarVariable):
            return value.specialized(self).value
        if isinstance(value, UserObjectVariable):
            return self._object_key(value)
        key = value.key()
        return key

    def _object_key(self, value: UserObjectVariable) -> Any:
        hasher = type_lookup(value.cls, "__hash__")
        if hasher is object.__hash__:
            return ObjectKey(value)
        if hasher is None:
            raise self.error(TypeError, f"unhashable type: {value.cls.__name__!r}")
        if value.native is not None and hasher is type_lookup(type(value.native).kind if isinstance(value.native, SequenceVariable) else value.native.python_type(), "__hash__"):
            return self.key_of(value.native)
        if isinstance(value, ExceptionVariable):
            return ObjectKey(value)
        inner = value.special(self, "__hash__")
        assert inner is not None
        return _HashedKey(self, value, inner.call(self, [], {}).as_constant())

    def index_of(self, value: VariableTracker) -> Any:
        """A list index: an int or a slice of ints."""
        if isinstance(value, SliceVariable):
            return slice(*[None if is_none(p) or _is_none(p) else self.index_of(p) for p in value.parts])
        if isinstance(value, SymIntVariable):
            return int(value.value)
        if isinstance(value, ConstantVariable):
            try:
                return operator.index(value.value)
            except TypeError:
                name = type(value.value).__name__
                raise self.error(TypeError, f"list indices must be integers or slices, not {name}") from None
        if isinstance(value, UserObjectVariable):
            method = value.special(self, "__index__")
            if method is not None:
                return self.index_of(method.call(self, [], {}))
        if isinstance(value, TensorVariable):
            raise Unsupported("an array as an index of a list", "Keep the index a Python int")
        raise self.error(TypeError, f"list indices must be integers or slices, not {value.python_type().__name__}")

    # -- truth and comparison --------------------------------------------------------------------------------

    def truth(self, value: VariableTracker) -> bool:
        """``bool(value)``."""
        return value.truth(self)

    def equal(self, left: VariableTracker, right: VariableTracker) -> bool:
        """``bool(left == right)``."""
        return self.truth(self.compare("==", left, right))

    def identical(self, left: VariableTracker, right: VariableTracker) -> bool:
        """``left is right``."""
        if left is right:
            return True
        if isinstance(left, ConstantVariable) and isinstance(right, ConstantVariable):
            return left.value is right.value or (type(left.value) is type(right.value) and left.value == right.value)
        for kind in (ClassVariable, BuiltinVariable):
            if isinstance(left, kind) and isinstance(right, kind):
                return left.value is right.value
        real_left, real_right = _identity(left), _identity(right)
        return real_left is not None and real_left is real_right

    def compare(self, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
        """``left < right`` and the like."""
        if type(left) is ConstantVariable and type(right) is ConstantVariable:
            try:
                return TRUE if COMPARE[symbol][0](left.value, right.value) else FALSE
            except TypeError as error:
                raise self.observed(error) from None
        if isinstance(left, TensorVariable) or isinstance(right, TensorVariable):
            return self.python_operator(COMPARE[symbol][0], [left, right])
        if isinstance(left, _NUMBERS) or isinstance(right, _NUMBERS):
            found = self._compare_numbers(symbol, left, right)
            if found is not None:
                return found
        if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
            return self._compare_objects(symbol, left, right)
        return self._compare_containers(symbol, left, right)

    def _compare_numbers(self, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker | None:
        values = []
        for side in (left, right):
            if isinstance(side, SymIntVariable):
                values.append(side.value)
            elif isinstance(side, ScalarVariable):
                values.append(side.specialized(self).value)
            elif isinstance(side, ConstantVariable):
                values.append(side.value)
            else:
                return None
        if any(isinstance(v, (int, SymInt)) for v in values):
            values = [int(v) if isinstance(v, SymInt) and isinstance(values[1 - i], float) else v for i, v in enumerate(values)]
        if any(v is None or isinstance(v, str) for v in values):
            values = [int(v) if isinstance(v, SymInt) else v for v in values]
        try:
            return ConstantVariable(bool(COMPARE[symbol][0](*values)))
        except TypeError as error:
            raise self.observed(error) from None

    def _compare_objects(self, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
        _, name, reflected = COMPARE[symbol]
        order = [(left, name, right), (right, reflected, left)]
        lt, rt = left.python_type(), right.python_type()
        if lt is not rt and issubclass(rt, lt):
            order.reverse()
        for owner, method_name, other in order:
            result = self._try_special(owner, method_name, other)
            if result is not None:
                return result
        if symbol == "==":
            return ConstantVariable(self.identical(left, right))
        if symbol == "!=":
            return ConstantVariable(not self.equal(left, right))
        message = f"{symbol!r} not supported between instances of {lt.__name__!r} and {rt.__name__!r}"
        raise self.error(TypeError, message)

    def _try_special(self, owner: VariableTracker, name: str, other: VariableTracker) -> VariableTracker | None:
        """``owner.__op__(other)``; None when it has no such method or gives NotImplemented."""
        if not isinstance(owner, UserObjectVariable):
            return None
        raw = type_lookup(owner.cls, name)
        if raw is MISSING or raw is None or getattr(raw, "__objclass__", None) is object:
            return None
        result = owner.special(self, name).call(self, [other], {})  # type: ignore[union-attr]
        return None if isinstance(result, ConstantVariable) and result.value is NotImplemented else result

    def _compare_containers(self, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
        if symbol == "!=":
            return ConstantVariable(not self.equal(left, right))
        if isinstance(left, SequenceVariable) and isinstance(right, SequenceVariable) and left.kind is right.kind:
            return self._compare_sequences(symbol, left, right)
        if isinstance(left, DictViewVariable) and left.view != "values":
            left = self.set_of(left.list(self))
        if isinstance(right, DictViewVariable) and right.view != "values":
            right = self.set_of(right.list(self))
        if isinstance(left, SetVariable) and isinstance(right, SetVariable):
            return ConstantVariable(COMPARE[symbol][0](set(left.members), set(right.members)))
        if symbol == "==":
            if isinstance(left, DictVariable) and isinstance(right, DictVariable):
                return ConstantVariable(self._equal_dicts(left, right))
            return ConstantVariable(self._equal_values(left, right))
        return self.call_native(COMPARE[symbol][0], [left, right], {})

    def _equal_values(self, left: VariableTracker, right: VariableTracker) -> bool:
        if self.identical(left, right):
            return True
        try:
            return bool(left.as_constant() == right.as_constant())
        except NotConstant:
            return False

    def _equal_dicts(self, left: DictVariable, right: DictVariable) -> bool:
        if len(left.key_list(self)) != len(right.key_list(self)):
            return False
        for key in left.entries:
            mine, other = left.get(self, key), right.get(self, key)
            if other is None or not (mine is other or self.equal(mine, other)):
                return False
        return True

    def _compare_sequences(self, symbol: str, left: SequenceVariable, right: SequenceVariable) -> VariableTracker:
        ours, theirs = left.all(self), right.all(self)
        if symbol == "==" and len(ours) != len(theirs):
            return FALSE
        for a, b in zip(ours, theirs, strict=False):
            if a is b or self.equal(a, b):
                continue
            return FALSE if symbol == "==" else self.compare(symbol, a, b)
        return ConstantVariable(COMPARE[symbol][0](len(ours), len(theirs)))

    def contains(self, container: VariableTracker, item: VariableTracker) -> bool:
        """``item in container``."""
        return self.truth(container.contains(self, item))

    def sorted(self, values: list[VariableTracker], key: Any, reverse: Any) -> list[VariableTracker]:
        """``sorted``: stable, through ``<`` of the traced program."""
        keys = values if key is None or is_none(key) or _is_none(key) else [key.call(self, [v], {}) for v in values]
        pairs = [_SortKey(self, k, v) for k, v in zip(keys, values, strict=True)]
        pairs.sort(reverse=reverse is not None and self.truth(reverse))
        return [p.value for p in pairs]

    # -- arithmetic ------------------------------------------------------------------------------------------

    def unary(self, symbol: str, value: VariableTracker) -> VariableTracker:
        """``-value`` and the like."""
        function, name = _UNARY[symbol]
        if isinstance(value, TensorVariable):
            return self.python_operator(function, [value])
        if isinstance(value, _NUMBERS):
            return self.number(function, [value])
        if isinstance(value, UserObjectVariable):
            method = value.special(self, name)
            if method is None:
                raise self.error(TypeError, f"bad operand type for unary {symbol}: {value.cls.__name__!r}")
            return method.call(self, [], {})
        return self.call_native(function, [value], {})

    def binary(self, symbol: str, left: VariableTracker, right: VariableTracker, inplace: bool = False) -> VariableTracker:
        """``left + right``, or ``left += right``."""
        function, inplace_function, stem = BINARY[symbol]
        if type(left) is ConstantVariable and type(right) is ConstantVariable:
            try:
                return self.wrap_constant(function(left.value, right.value))
            except (TypeError, ValueError, ArithmeticError) as error:
                raise self.observed(error) from None
        if isinstance(left, TensorVariable) or isinstance(right, TensorVariable):
            use = inplace_function if inplace and isinstance(left, TensorVariable) else function
            return self.python_operator(use, [left, right])
        if (isinstance(left, _NUMBERS) or isinstance(right, _NUMBERS)) and _numeric(left) and _numeric(right):
            return self.number(function, [left, right])
        if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
            return self._binary_objects(symbol, stem, left, right, inplace)
        if symbol == "|" and (isinstance(left, ClassVariable) or isinstance(right, ClassVariable)):
            return ClassVariable(function(left.as_constant(), right.as_constant()))  # a union of types
        return self._binary_containers(symbol, left, right, inplace)

    def _binary_objects(self, symbol: str, stem: str, left: Any, right: Any, inplace: bool) -> VariableTracker:
        tries = [(left, f"__{stem}__", right), (right, f"__r{stem}__", left)]
        if left.python_type() is not right.python_type() and issubclass(right.python_type(), left.python_type()):
            tries.reverse()
        if inplace:
            tries.insert(0, (left, f"__i{stem}__", right))
        for owner, name, other in tries:
            result = self._try_special(owner, name, other)
            if result is not None:
                return result
        left_native, right_native = getattr(left, "native", None) or left, getattr(right, "native", None) or right
        if left_native is not left or right_native is not right:
            return self.binary(symbol, left_native, right_native)
        names = f"{left.python_type().__name__!r} and {right.python_type().__name__!r}"
        raise self.error(TypeError, f"unsupported operand type(s) for {symbol}{'=' if inplace else ''}: {names}")

    def _binary_containers(self, symbol: str, left: Any, right: Any, inplace: bool) -> VariableTracker:
        if isinstance(left, DictViewVariable) and symbol in _SET_METHODS:
            left = self.set_of(left.list(self))
        if isinstance(right, DictViewVariable) and symbol in _SET_METHODS:
            right = self.set_of(right.list(self))
        if isinstance(left, SequenceVariable):
            if symbol == "+":
                if inplace and isinstance(left, ListVariable):
                    left._m_extend(self, right)
                    return left
                return left.concatenated(self, right)
            if symbol == "*":
                return self._repeat(left, right, inplace)
        if isinstance(right, SequenceVariable) and symbol == "*":
            return right.repeated(self, left)
        if isinstance(left, SetVariable) and isinstance(right, SetVariable) and symbol in _SET_METHODS:
            result = left.method(self, _SET_METHODS[symbol], [right], {})
            if inplace and left.kind is set:
                left._replace(self, result)
                return left
            return result
        if isinstance(left, DictVariable) and isinstance(right, DictVariable) and symbol == "|":
            target = left if inplace else left._m_copy(self)
            self.dict_update(target, right)
            return target
        if symbol == "%" and isinstance(left, ConstantVariable) and isinstance(left.value, str) and not right.is_constant():
            return self.polyfill("percent_format", [left, right], {})
        return self.call_native(BINARY[symbol][0], [left, right], {})

    def _repeat(self, left: SequenceVariable, right: VariableTracker, inplace: bool) -> VariableTracker:
        result = left.repeated(self, right)
        if inplace and isinstance(left, ListVariable):
            self.mutating(left)
            left.elements[:] = result.elements  # type: ignore[attr-defined]
            return left
        return result

    def number(self, function: Callable[..., Any], operands: list[VariableTracker]) -> VariableTracker:
        """Arithmetic on numbers of which some are symbolic."""
        exact = all(isinstance(o, SymIntVariable) or (isinstance(o, ConstantVariable) and type(o.value) in (int, bool)) for o in operands)
        if exact and function in _EXACT:
            values = [o.value if isinstance(o, SymIntVariable) else int(o.as_constant()) for o in operands]
            try:
                result = function(*values)
            except ArithmeticError as error:
                raise self.observed(error) from None
            if isinstance(result, SymInt):
                return SymIntVariable(result)
            if isinstance(result, (int, bool)):
                return ConstantVariable(result)
            if isinstance(result, SymBool):
                return ConstantVariable(bool(result))
        hosts = tuple([host_of(o) for o in operands])
        try:
            value = function(*[h.value for h in hosts])
        except (ArithmeticError, TypeError, ValueError):
            return self.call_native(function, [self.specialize(o) for o in operands], {})
        if type(value) not in (int, float):
            return self.call_native(function, [self.specialize(o) for o in operands], {})
        return ScalarVariable(HostInput(function, hosts, value))

    def specialize(self, value: VariableTracker) -> VariableTracker:
        """A symbolic number as a constant (guarded); others as they are."""
        if isinstance(value, SymIntVariable):
            return value.specialized()
        if isinstance(value, ScalarVariable):
            return value.specialized(self)
        return value

    # -- calls of C functions on constants -------------------------------------------------------------------

    def call_native(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call a pure C function on known values; an exception it raises is the traced program's."""
        try:
            values = [self.specialize(realize(self, a)).as_constant() for a in args]
            named = {k: self.specialize(realize(self, v)).as_constant() for k, v in kwargs.items()}
        except NotConstant as error:
            name = getattr(function, "__qualname__", repr(function))
            raise Unsupported(f"{name} of a value that is not known while tracing ({error})") from None
        try:
            result = function(*values, **named)
        except Exception as error:  # noqa: BLE001  (whatever it raises is what the traced program sees)
            raise self.observed(error) from None
        return self.wrap_constant(result)


_EXACT = frozenset(
    (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.pos, abs, math.floor, math.ceil)
)


class _SortKey:
    """Compares through the traced program's ``<``."""

    __slots__ = ("key", "tx", "value")

    def __init__(self, tx: Operations, key: VariableTracker, value: VariableTracker) -> None:
        self.tx = tx
        self.key = key
        self.value = value

    def __lt__(self, other: _SortKey) -> bool:
        return self.tx.truth(self.tx.compare("<", self.key, other.key))


class _HashedKey(ObjectKey):
    """A key with the hash and equality of a user's class."""

    __slots__ = ("hash", "tx")

    def __init__(self, tx: Operations, tracker: VariableTracker, hash_value: int) -> None:
        self.tx = tx
        self.tracker = tracker
        self.hash = hash_value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectKey):
            return False
        return self.tracker is other.tracker or self.tx.equal(self.tracker, other.tracker)

    def __hash__(self) -> int:
        return self.hash


def _is_none(value: VariableTracker) -> bool:
    return isinstance(value, ConstantVariable) and value.value is None


def _numeric(value: VariableTracker) -> bool:
    if isinstance(value, _NUMBERS):
        return True
    return isinstance(value, ConstantVariable) and type(value.value) in (int, float, bool)


def _identity(value: VariableTracker) -> Any:
    for name in ("real", "fn"):
        found = getattr(value, name, None)
        if found is not None:
            return found
    return getattr(value, "value", None) if not isinstance(value, (ConstantVariable, SymIntVariable)) else None


_ = CellVariable, DequeVariable, RangeVariable, defaultdict, deque
