"""Keys, truth, identity, comparison and sorting."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import SymInt

from ..errors import Unsupported
from ..guard import python_check
from ..source import Source
from ..variables import (
    FALSE,
    MISSING,
    NO_BRANCH,
    TRUE,
    ArrayNumberVariable,
    BuiltinVariable,
    ClassVariable,
    ConstantVariable,
    DictVariable,
    DictViewVariable,
    ExceptionVariable,
    ListVariable,
    NotConstant,
    ObjectKey,
    ScalarVariable,
    SequenceVariable,
    SetVariable,
    SliceVariable,
    SymIntVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    is_none,
    type_lookup,
)  # fmt: skip

__all__ = ["COMPARE", "Comparing"]


_NUMBERS = (SymIntVariable, ScalarVariable)


class Comparing:
    """The part of the translator that compares."""

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
        if value.native is not None and hasher is type_lookup(
            type(value.native).kind if isinstance(value.native, SequenceVariable) else value.native.python_type(),
            "__hash__",
        ):
            return self.key_of(value.native)
        if isinstance(value, ExceptionVariable):
            return ObjectKey(value)
        inner = value.special(self, "__hash__")
        assert inner is not None
        return _HashedKey(self, value, inner.call(self, [], {}).as_constant())

    def index_of(self, value: VariableTracker) -> Any:
        """A list index: an int or a slice of ints."""
        if isinstance(value, SliceVariable):
            return slice(*[None if is_none(p) or is_none(p) else self.index_of(p) for p in value.parts])
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
            if isinstance(left, ArrayNumberVariable):
                left = left.beside(self, right)
            elif isinstance(right, ArrayNumberVariable):
                right = right.beside(self, left)
            return self.python_operator(COMPARE[symbol][0], [left, right])
        if isinstance(left, ArrayNumberVariable) or isinstance(right, ArrayNumberVariable):
            raise Unsupported(*NO_BRANCH)
        if isinstance(left, _NUMBERS) or isinstance(right, _NUMBERS):
            found = self._compare_numbers(symbol, left, right)
            if found is not None:
                return found
        if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
            return self._compare_objects(symbol, left, right)
        return self._compare_containers(symbol, left, right)

    def _compare_with_constant(self, symbol: str, left: VariableTracker, right: VariableTracker) -> Any:
        """A float of the caller beside a number: the answer is guarded, not the float. None for other operands."""
        is_left = isinstance(left, ScalarVariable)
        scalar, other = (left, right) if is_left else (right, left)
        if not isinstance(scalar, ScalarVariable) or not isinstance(other, ConstantVariable):
            return None
        host = scalar.host_value
        if host.fn is not None or not isinstance(host.operands[0], Source) or type(other.value) not in (int, float):
            return None
        check = FloatCompares(COMPARE[symbol][0], other.value, is_left)
        check.answer = check.compare(host.value)
        text = f"{host.operands[0]} {symbol} {other.value}" if is_left else f"{other.value} {symbol} {host.operands[0]}"
        self.guard(python_check(host.operands[0], check, f"({text}) is {check.answer}"))
        return TRUE if check.answer else FALSE

    def _compare_numbers(self, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker | None:
        known = self._compare_with_constant(symbol, left, right)
        if known is not None:
            return known
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
            values = [
                int(v) if isinstance(v, SymInt) and isinstance(values[1 - i], float) else v
                for i, v in enumerate(values)
            ]
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
        keys = values if key is None or is_none(key) or is_none(key) else [key.call(self, [v], {}) for v in values]
        pairs = [_SortKey(self, k, v) for k, v in zip(keys, values, strict=True)]
        pairs.sort(reverse=reverse is not None and self.truth(reverse))
        return [p.value for p in pairs]


COMPARE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
}


class _SortKey:
    """Compares through the traced program's ``<``."""

    __slots__ = ("key", "tx", "value")

    def __init__(self, tx: Any, key: VariableTracker, value: VariableTracker) -> None:
        self.tx = tx
        self.key = key
        self.value = value

    def __lt__(self, other: _SortKey) -> bool:
        return self.tx.truth(self.tx.compare("<", self.key, other.key))


class _HashedKey(ObjectKey):
    """A key with the hash and equality of a user's class."""

    __slots__ = ("hash", "tx")

    def __init__(self, tx: Any, tracker: VariableTracker, hash_value: int) -> None:
        self.tx = tx
        self.tracker = tracker
        self.hash = hash_value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectKey):
            return False
        return self.tracker is other.tracker or self.tx.equal(self.tracker, other.tracker)

    def __hash__(self) -> int:
        return self.hash


def _identity(value: VariableTracker) -> Any:
    for name in ("real", "fn"):
        found = getattr(value, name, None)
        if found is not None:
            return found
    return getattr(value, "value", None) if not isinstance(value, (ConstantVariable, SymIntVariable)) else None


class FloatCompares:
    """Whether a float compares with a number as it did while tracing."""

    __slots__ = ("answer", "function", "is_left", "other")

    def __init__(self, function: Callable[[Any, Any], bool], other: float, is_left: bool) -> None:
        self.function, self.other, self.is_left = function, other, is_left
        self.answer = False

    def compare(self, value: Any) -> bool:
        """The comparison."""
        return self.function(value, self.other) if self.is_left else self.function(self.other, value)

    def __call__(self, value: Any) -> bool:
        return self.compare(value) is self.answer
