"""Python's operators on trackers: arithmetic, comparison, truth, iteration, exceptions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import SymBool, SymInt

from ..errors import Unsupported
from ..variables import (
    ArrayNumberVariable,
    ClassVariable,
    ConstantVariable,
    DictVariable,
    DictViewVariable,
    HostInput,
    ListVariable,
    MaskedVariable,
    NotConstant,
    ScalarVariable,
    SequenceVariable,
    SetVariable,
    SymIntVariable,
    TensorVariable,
    UserObjectVariable,
    VariableTracker,
    host_of,
    masked_binary,
    number_binary,
    realize,
)  # fmt: skip
from .comparing import COMPARE, Comparing
from .raising import Raising

__all__ = ["BINARY", "COMPARE", "Operations"]

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


_UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}
_SET_METHODS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}
_NUMBERS = (SymIntVariable, ScalarVariable)


class Operations(Raising, Comparing):
    """The part of the translator that knows the operators."""

    # -- exceptions of the traced program ----------------------------------------------------------------

    # -- building values -----------------------------------------------------------------------------------

    # -- keys and indices ------------------------------------------------------------------------------------

    # -- truth and comparison --------------------------------------------------------------------------------

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

    def binary(
        self, symbol: str, left: VariableTracker, right: VariableTracker, inplace: bool = False
    ) -> VariableTracker:
        """``left + right``, or ``left += right``."""
        function, inplace_function, stem = BINARY[symbol]
        if type(left) is ConstantVariable and type(right) is ConstantVariable:
            try:
                return self.wrap_constant(function(left.value, right.value))
            except (TypeError, ValueError, ArithmeticError) as error:
                raise self.observed(error) from None
        if isinstance(left, MaskedVariable) or isinstance(right, MaskedVariable):
            return masked_binary(self, symbol, left, right)
        if isinstance(left, ArrayNumberVariable) or isinstance(right, ArrayNumberVariable):
            return number_binary(self, symbol, left, right, inplace)
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
        if (
            symbol == "%"
            and isinstance(left, ConstantVariable)
            and isinstance(left.value, str)
            and not right.is_constant()
        ):
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
        exact = all(
            isinstance(o, SymIntVariable) or (isinstance(o, ConstantVariable) and type(o.value) in (int, bool))
            for o in operands
        )
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
            if any(isinstance(realize(self, a), ArrayNumberVariable) for a in (*args, *kwargs.values())):
                raise Unsupported(
                    f"{name}() needs the number that .item() gives, which only running the graph tells",
                    "The graph ends here; print or format the number outside of the compiled function",
                ) from None
            raise Unsupported(f"{name} of a value that is not known while tracing ({error})") from None
        try:
            result = function(*values, **named)
        except Exception as error:  # noqa: BLE001  (whatever it raises is what the traced program sees)
            raise self.observed(error) from None
        return self.wrap_constant(result)


_EXACT = frozenset(
    (
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.mod,
        operator.neg,
        operator.pos,
        abs,
        math.floor,
        math.ceil,
    )
)


def _numeric(value: VariableTracker) -> bool:
    if isinstance(value, _NUMBERS):
        return True
    return isinstance(value, ConstantVariable) and type(value.value) in (int, float, bool)
