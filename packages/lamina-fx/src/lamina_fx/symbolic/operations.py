"""Operations on expressions: each is its class and a tuple of arguments.

>>> from lamina_fx.symbolic import Symbol
>>> x = Symbol("x", 0, 7)
>>> Min(x, 9), Mod(x + 8, 8), Eq(2 * x, 4), Not(x < 4)
(x, x, x == 2, 4 <= x)
"""

from __future__ import annotations

from typing import Any, ClassVar

from .expr import Expr, ExprLike, as_expr
from .truth import BooleanExpr

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

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        """The rule that makes the canonical expression."""
        raise NotImplementedError

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

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return simplify.product(args)


class FloorDiv(_Operation):
    """``args[0] // args[1]``, rounded towards minus infinity."""

    __slots__ = ()
    rank = 2

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return division.floor_div(*args)


class Mod(_Operation):
    """``args[0] % args[1]``, with the sign of the divisor."""

    __slots__ = ()
    rank = 3

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return division.mod(*args)


class Min(_Operation):
    """The least of two or more."""

    __slots__ = ()
    rank = 6

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return simplify.minimum(args)


class Max(_Operation):
    """The greatest of two or more."""

    __slots__ = ()
    rank = 7

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return simplify.maximum(args)


class Comparison(_Operation, BooleanExpr):
    """``args[0]`` compared with ``args[1]``. Common terms and factors are cancelled."""

    __slots__ = ()
    symbol: ClassVar[str] = ""


class Eq(Comparison):
    """Equal."""

    __slots__ = ()
    rank, symbol = 11, "=="

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.equal(*args)


class Ne(Comparison):
    """Not equal."""

    __slots__ = ()
    rank, symbol = 12, "!="

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.negation(boolean.equal(*args))


class Lt(Comparison):
    """Less."""

    __slots__ = ()
    rank, symbol = 13, "<"

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.less(*args)


class Le(Comparison):
    """Less or equal."""

    __slots__ = ()
    rank, symbol = 14, "<="

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.less_equal(*args)


class And(_Operation, BooleanExpr):
    """All hold."""

    __slots__ = ()
    rank = 15

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.conjunction(args)


class Or(_Operation, BooleanExpr):
    """One holds."""

    __slots__ = ()
    rank = 16

    @staticmethod
    def _simplified(*args: Expr) -> Expr:
        return boolean.disjunction(args)


class Not:
    """``Not(x)`` is the opposite of ``x``; it is pushed down to comparisons, so there is no node of this kind."""

    def __new__(cls, value: BooleanExpr | bool) -> Any:
        """The opposite."""
        return boolean.negation(as_expr(value))


# The rules import the classes above.
from . import boolean, division, simplify  # noqa: E402
