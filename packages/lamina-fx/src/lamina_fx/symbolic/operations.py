"""Operations on expressions: each is its class and a tuple of arguments.

>>> from lamina_fx.symbolic import Symbol
>>> x = Symbol("x", 0, 7)
>>> Min(x, 9), Mod(x + 8, 8), Eq(2 * x, 4), Not(x < 4)
(x, x, x == 2, 4 <= x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .expr import BooleanExpr, Expr, ExprLike, as_expr

__all__ = [
    "And", "Comparison", "Eq", "FloorDiv", "Le", "Lt", "Max", "Min", "Mod", "Ne", "Not", "Or", "Product",
]  # fmt: skip


class _Operation(Expr):
    """A node that is its class and a tuple of arguments. The constructor simplifies; ``make`` does not."""

    __slots__ = ("args",)
    args: tuple[Expr, ...]
    rank: ClassVar[int] = 0
    _table: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __new__(cls, *args: ExprLike) -> Any:
        """The canonical expression, perhaps of another class."""
        return cls._simplified(*[as_expr(a) for a in args])

    _simplified: ClassVar[Callable[..., Expr]]
    """The rule that makes the canonical expression."""

    @classmethod
    def make(cls, *args: Expr) -> Any:
        """The node for arguments that are canonical already."""
        ident = (cls, args)
        node = _Operation._table.get(ident)
        if node is None:
            node = object.__new__(cls)
            node.args = args
            node._key = node._range = node._free = node._text = node._divisor = None
            node = _Operation._table.setdefault(ident, node)
        return node

    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args

    def _make_key(self) -> tuple[Any, ...]:
        return (self.rank, *[a.key for a in self.args])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args


class Product(_Operation):
    """Two or more factors in the order of ``key``, repeated for powers; none is a constant."""

    __slots__ = ()
    rank = 1

    _simplified = staticmethod(lambda *args: simplify.product(args))


class FloorDiv(_Operation):
    """``args[0] // args[1]``, rounded towards minus infinity."""

    __slots__ = ()
    rank = 2

    _simplified = staticmethod(lambda a, b: division.floor_div(a, b))


class Mod(_Operation):
    """``args[0] % args[1]``, with the sign of the divisor."""

    __slots__ = ()
    rank = 3

    _simplified = staticmethod(lambda a, b: division.mod(a, b))


class Min(_Operation):
    """The least of two or more."""

    __slots__ = ()
    rank = 6

    _simplified = staticmethod(lambda *args: simplify.minimum(args))


class Max(_Operation):
    """The greatest of two or more."""

    __slots__ = ()
    rank = 7

    _simplified = staticmethod(lambda *args: simplify.maximum(args))


class Comparison(_Operation, BooleanExpr):
    """``args[0]`` compared with ``args[1]``. Common terms and factors are cancelled."""

    __slots__ = ()
    symbol: ClassVar[str] = ""


class Eq(Comparison):
    """Equal."""

    __slots__ = ()
    rank, symbol = 11, "=="

    _simplified = staticmethod(lambda a, b: boolean.equal(a, b))


class Ne(Comparison):
    """Not equal."""

    __slots__ = ()
    rank, symbol = 12, "!="

    _simplified = staticmethod(lambda a, b: boolean.negation(boolean.equal(a, b)))


class Lt(Comparison):
    """Less."""

    __slots__ = ()
    rank, symbol = 13, "<"

    _simplified = staticmethod(lambda a, b: boolean.less(a, b))


class Le(Comparison):
    """Less or equal."""

    __slots__ = ()
    rank, symbol = 14, "<="

    _simplified = staticmethod(lambda a, b: boolean.less_equal(a, b))


class And(_Operation, BooleanExpr):
    """All hold."""

    __slots__ = ()
    rank = 15

    _simplified = staticmethod(lambda *args: boolean.conjunction(args))


class Or(_Operation, BooleanExpr):
    """One holds."""

    __slots__ = ()
    rank = 16

    _simplified = staticmethod(lambda *args: boolean.disjunction(args))


class Not:
    """``Not(x)`` is the opposite of ``x``; it is pushed down to comparisons, so there is no node of this kind."""

    def __new__(cls, value: BooleanExpr | bool) -> Any:
        """The opposite."""
        return boolean.negation(as_expr(value))


# The rules import the classes above.
from . import boolean, division, simplify  # noqa: E402
