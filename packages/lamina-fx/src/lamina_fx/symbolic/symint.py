"""Integers, booleans and floats whose value is not known yet.

They behave like int, bool and float. Asking for a definite answer (``if n > 3``, ``int(n)``) uses the hint of
the ``ShapeEnv`` and records a guard there: the result holds for every input that passes the guards.

>>> from lamina_fx.symbolic import ShapeEnv
>>> env = ShapeEnv()
>>> n = env.create_symbol(8, "x.shape[0]")
>>> n * 2 + 1, n > 3
(2*s0 + 1, 4 <= s0)
>>> bool(n > 3), env.guards[0].expr
(True, 4 <= s0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from .expr import Expr, Integer, as_expr
from .operations import Eq, Max, Min, Ne
from .symfloat import SymFloat, sym_float
from .truth import TRUE, BooleanConstant, BooleanExpr

if TYPE_CHECKING:
    from .shape_env import ShapeEnv

__all__ = ["SymBool", "SymInt", "sym_int", "sym_max", "sym_min"]

IntLike = Union[int, "SymInt"]


def _expr(value: object) -> Expr | None:
    """The expression of an int-like operand, or None."""
    if type(value) is int:
        return Integer(value)
    if isinstance(value, SymInt):
        return value.expr
    if isinstance(value, (int, Expr)):
        return as_expr(int(value) if isinstance(value, bool) else value)
    return None


class SymInt:
    """An int that is an expression over the symbols of a ``ShapeEnv``.

    ``expr`` takes into account what the environment has learnt since (``s0 == s1``). A SymInt made of constants
    only is possible and guards nothing.
    """

    __slots__ = ("_expr", "_version", "env", "original")

    def __init__(self, expr: Expr | int, env: ShapeEnv) -> None:
        self.original = as_expr(expr)
        self.env = env
        self._expr = self.original
        self._version = -1

    @property
    def expr(self) -> Expr:
        """The expression, with what is known now."""
        if self._version != self.env.version:
            self._expr = self.env.simplify(self._expr)
            self._version = self.env.version
        return self._expr

    @property
    def hint(self) -> int | None:
        """The value in the example inputs; None when it depends on an unbacked symbol."""
        return self.env.hint_or_none(self.expr)

    def _make(self, expr: Expr) -> IntLike:
        if type(expr) is Integer:
            return expr.value
        result = SymInt.__new__(SymInt)
        result.original = result._expr = expr
        result.env = self.env
        result._version = -1
        return result

    # -- arithmetic: an int when the result is a constant ------------------------------------------------

    def __add__(self, other: Any) -> Any:
        value = _expr(other)
        return _float_op(self, other, "__add__") if value is None else self._make(self.expr + value)

    def __sub__(self, other: Any) -> Any:
        value = _expr(other)
        return _float_op(self, other, "__sub__") if value is None else self._make(self.expr - value)

    def __rsub__(self, other: Any) -> Any:
        value = _expr(other)
        return _float_op(self, other, "__rsub__") if value is None else self._make(value - self.expr)

    def __mul__(self, other: Any) -> Any:
        value = _expr(other)
        return _float_op(self, other, "__mul__") if value is None else self._make(self.expr * value)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        value = _expr(other)
        if value is None:
            return _float_op(self, other, "__floordiv__")
        self.env.require_nonzero(value)
        return self._make(self.expr // value)

    def __rfloordiv__(self, other: Any) -> Any:
        value = _expr(other)
        if value is None:
            return _float_op(self, other, "__rfloordiv__")
        self.env.require_nonzero(self.expr)
        return self._make(value // self.expr)

    def __mod__(self, other: Any) -> Any:
        value = _expr(other)
        if value is None:
            return _float_op(self, other, "__mod__")
        self.env.require_nonzero(value)
        return self._make(self.expr % value)

    def __rmod__(self, other: Any) -> Any:
        value = _expr(other)
        if value is None:
            return _float_op(self, other, "__rmod__")
        self.env.require_nonzero(self.expr)
        return self._make(value % self.expr)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return sym_float(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / sym_float(self)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is int and exponent >= 0:
            return self._make(self.expr**exponent)
        return _float_op(self, exponent, "__pow__")

    def __rpow__(self, base: Any) -> Any:
        return base ** int(self)

    def __neg__(self) -> IntLike:
        return self._make(-self.expr)

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> IntLike:
        low, high = self.expr.range()
        if low is not None and low >= 0:
            return self
        return self._make(Max(self.expr, -self.expr)) if high is None or high > 0 else -self

    def __floor__(self) -> SymInt:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    # -- comparison ----------------------------------------------------------------------------------------

    def _compare(self, other: Any, build: Callable[[Expr, Expr], BooleanExpr], name: str) -> Any:
        value = _expr(other)
        if value is None:
            if isinstance(other, (float, SymFloat)):
                return getattr(sym_float(self), name)(other)
            return NotImplemented
        return SymBool.of(build(self.expr, value), self.env)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, Eq, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, Ne, "__ne__")

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, Expr.__lt__, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, Expr.__le__, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, Expr.__gt__, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, Expr.__ge__, "__ge__")

    def __hash__(self) -> int:
        """That of the expression, so that compilers can use sizes as keys without a guard."""
        return hash(self.original)

    # -- definite answers: guards ----------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return self.env.evaluate(Ne(self.expr, 0))

    def __int__(self) -> int:
        return self.env.specialize(self.expr)

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __repr__(self) -> str:
        return repr(self.expr)

    def __format__(self, spec: str) -> str:
        return format(repr(self) if not spec else int(self), spec)

    def __copy__(self) -> SymInt:
        return self

    def __deepcopy__(self, memo: object) -> SymInt:
        return self


class SymBool:
    """A bool that is a comparison of sizes. ``bool()`` guards; ``&``, ``|``, ``~`` do not."""

    __slots__ = ("_expr", "env")

    def __init__(self, expr: BooleanExpr, env: ShapeEnv) -> None:
        self._expr = expr
        self.env = env

    @classmethod
    def of(cls, expr: BooleanExpr, env: ShapeEnv) -> SymBool | bool:
        """A plain bool when the expression is decided already."""
        if isinstance(expr, BooleanConstant):
            return expr.value
        known = env.decide(expr)
        return cls(expr, env) if known is None else known

    @property
    def expr(self) -> BooleanExpr:
        """The condition."""
        return self._expr

    def __bool__(self) -> bool:
        return self.env.evaluate(self)

    def __int__(self) -> int:
        return int(bool(self))

    def __and__(self, other: SymBool | bool) -> SymBool | bool:
        return SymBool.of(self._expr & _truth(other), self.env)

    def __or__(self, other: SymBool | bool) -> SymBool | bool:
        return SymBool.of(self._expr | _truth(other), self.env)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> SymBool | bool:
        return SymBool.of(~self._expr, self.env)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymBool):
            return self._expr is other._expr or bool(self) == bool(other)
        return bool(self) == other if isinstance(other, (bool, int)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._expr)

    def __repr__(self) -> str:
        return repr(self._expr)


def _truth(value: SymBool | bool) -> BooleanExpr:
    if isinstance(value, SymBool):
        return value.expr
    return TRUE if value else ~TRUE


def _float_op(value: SymInt, other: Any, name: str) -> Any:
    if isinstance(other, (float, SymFloat)):
        return getattr(sym_float(value), name)(other)
    if name == "__pow__" and isinstance(other, (int, SymInt)):
        return int(value) ** int(other)
    return NotImplemented


def sym_int(value: Any) -> IntLike:
    """``int(value)`` without a guard when it is a symbolic int."""
    return value if isinstance(value, SymInt) else int(value)


def _extremum(args: tuple[Any, ...], kind: type[Min] | type[Max], plain: Callable[..., Any]) -> Any:
    if len(args) == 1 and not isinstance(args[0], (int, float, SymInt, SymFloat)):
        args = tuple(args[0])
    first = next((a for a in args if isinstance(a, SymInt)), None)
    exprs = [_expr(a) for a in args]
    if first is None or any(e is None for e in exprs):
        return plain(args)
    return first._make(kind(*exprs))  # type: ignore[arg-type]


def sym_max(*args: Any) -> Any:
    """The greatest, without a guard when some are SymInts."""
    return _extremum(args, Max, max)


def sym_min(*args: Any) -> Any:
    """The least, without a guard when some are SymInts."""
    return _extremum(args, Min, min)
