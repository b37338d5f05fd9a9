"""Expressions over integers: immutable, interned, canonical.

Two expressions that are built the same way after simplification are the same object, so ``is``, ``==`` and
dict look-ups are pointer comparisons. Every constructor (``FloorDiv(x, 8)``) and operator (``x // 8``) returns
the canonical form, which may be of another class. Division and remainder round as Python's do. A divisor is
assumed not to be zero.

>>> i, j = Symbol("i", 0, 99), Symbol("j", 0, 31)
>>> (32 * i + j) // 32, (32 * i + j) % 32, (i + j) * 2 - j
(i, j, 2*i + j)
"""

# pyright: reportPrivateUsage=false
# (what is remembered of an expression)

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Union

__all__ = [
    "FALSE", "TRUE", "BooleanConstant", "BooleanExpr", "Bounds", "Expr", "ExprLike", "Integer", "Sum", "Symbol",
    "as_expr",
]  # fmt: skip

ExprLike = Union["Expr", int]
Bounds = tuple[Union[int, None], Union[int, None]]


class Expr:
    """Base of all expressions.

    ``key`` orders expressions the same way in every process (it is made of names and numbers, not addresses).
    """

    __slots__ = ("_divisor", "_free", "_key", "_range", "_text")

    _key: tuple[Any, ...] | None
    _range: Bounds | None
    _free: frozenset[Symbol] | None
    _text: str | None
    _divisor: int | None

    # -- questions -----------------------------------------------------------------------------------

    @property
    def key(self) -> tuple[Any, ...]:
        """What expressions are ordered by; made when first asked for."""
        key = self._key
        if key is None:
            key = self._key = self._make_key()
        return key

    def _make_key(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def range(self) -> Bounds:
        """Least and greatest value (inclusive), None where unbounded. Sound, not always tight."""
        known = self._range
        return ranges.compute_range(self) if known is None else known

    @property
    def free_symbols(self) -> frozenset[Symbol]:
        """The symbols that occur in this expression."""
        if self._free is None:
            self._free = frozenset().union(*[child.free_symbols for child in self.children()])
        return self._free

    def children(self) -> tuple[Expr, ...]:
        """The expressions right below this one."""
        return ()

    @property
    def is_constant(self) -> bool:
        """True for integers and for true and false."""
        return False

    def substitute(self, values: Mapping[Expr, ExprLike]) -> Expr:
        """Replace symbols (or whole subexpressions) and simplify again. All at once, not one after another."""
        return substitution.substitute(self, values)

    def evaluate(self, values: Mapping[Expr, int]) -> int:
        """The value for these values of the symbols (a bool for comparisons).

        Raises:
            KeyError: a symbol has no value.
            ZeroDivisionError: a divisor is zero.
        """
        return substitution.evaluate(self, values)

    # -- building ------------------------------------------------------------------------------------

    def __add__(self, other: ExprLike) -> Expr:
        return (
            simplify.add(self, other if isinstance(other, Expr) else Integer(other)) if _ok(other) else NotImplemented
        )

    __radd__ = __add__

    def __sub__(self, other: ExprLike) -> Expr:
        if type(other) is int:
            return simplify.shift(self, -other)
        return simplify.subtract(self, as_expr(other)) if _ok(other) else NotImplemented

    def __rsub__(self, other: ExprLike) -> Expr:
        return simplify.subtract(as_expr(other), self) if _ok(other) else NotImplemented

    def __mul__(self, other: ExprLike) -> Expr:
        if type(other) is int:
            return simplify.scale(self, other)
        return simplify.multiply(self, as_expr(other)) if _ok(other) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return simplify.scale(self, -1)

    def __pos__(self) -> Expr:
        return self

    def __floordiv__(self, other: ExprLike) -> Expr:
        return division.floor_div(self, as_expr(other)) if _ok(other) else NotImplemented

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return division.floor_div(as_expr(other), self) if _ok(other) else NotImplemented

    def __mod__(self, other: ExprLike) -> Expr:
        return division.mod(self, as_expr(other)) if _ok(other) else NotImplemented

    def __rmod__(self, other: ExprLike) -> Expr:
        return division.mod(as_expr(other), self) if _ok(other) else NotImplemented

    def __pow__(self, exponent: int) -> Expr:
        if type(exponent) is not int or exponent < 0:
            return NotImplemented
        result: Expr = Integer(1)
        for _ in range(exponent):
            result = result * self
        return result

    def __lt__(self, other: ExprLike) -> BooleanExpr:
        return boolean.less(self, as_expr(other)) if _ok(other) else NotImplemented

    def __le__(self, other: ExprLike) -> BooleanExpr:
        return boolean.less_equal(self, as_expr(other)) if _ok(other) else NotImplemented

    def __gt__(self, other: ExprLike) -> BooleanExpr:
        return boolean.less(as_expr(other), self) if _ok(other) else NotImplemented

    def __ge__(self, other: ExprLike) -> BooleanExpr:
        return boolean.less_equal(as_expr(other), self) if _ok(other) else NotImplemented

    def __bool__(self) -> bool:
        raise TypeError(f"whether {self} holds is not known; compare ranges, or ask a ShapeEnv")

    # -- identity ------------------------------------------------------------------------------------

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def __repr__(self) -> str:
        text = self._text
        if text is None:
            text = self._text = printing.to_python(self)
        return text


def _ok(value: object) -> bool:
    return isinstance(value, (Expr, int))


def as_expr(value: ExprLike) -> Expr:
    """An expression for an int or a bool; expressions pass through.

    Raises:
        TypeError: neither.
    """
    if isinstance(value, Expr):
        return value
    if value is True or value is False:
        return TRUE if value else FALSE
    if isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]  (callers may be untyped)
        return Integer(value)
    raise TypeError(f"expected an expression or an int, got {type(value).__name__}: {value!r}")


def _finish(node: Any, key: tuple[Any, ...] | None = None) -> None:
    node._key = key
    node._range = node._free = node._text = node._divisor = None


# -- leaves --------------------------------------------------------------------------------------------


class Integer(Expr):
    """A constant. Equal to the int of the same value."""

    __slots__ = ("value",)
    value: int
    _table: ClassVar[dict[int, Integer]] = {}

    def __new__(cls, value: int) -> Integer:
        """The one object of this value."""
        node = cls._table.get(value)
        if node is None:
            node = object.__new__(cls)
            node.value = value = int(value)
            _finish(node, (9, value))
            node._range = (value, value)
            node._free = frozenset()
            node = cls._table.setdefault(value, node)
        return node

    @property
    def is_constant(self) -> bool:
        """True."""
        return True

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __bool__(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Integer, (self.value,)


_NUMBERED = re.compile(r"(.*?)(\d{0,9})\Z", re.DOTALL)


class Symbol(Expr):
    """An unknown integer with ``lower <= value <= upper`` (None: unbounded), a multiple of ``divisor``.

    ``upper`` may be an expression, such as ``n - 1`` for the index of a loop over ``n`` elements. Symbols are
    equal when name, bounds and divisor are.
    """

    __slots__ = ("divisor", "lower", "name", "upper")
    name: str
    lower: int | None
    upper: ExprLike | None
    divisor: int
    _table: ClassVar[dict[tuple[Any, ...], Symbol]] = {}

    def __new__(cls, name: str, lower: int | None = None, upper: ExprLike | None = None, divisor: int = 1) -> Symbol:
        """The one object of this name, these bounds and this divisor.

        Raises:
            ValueError: the name is no identifier, or the divisor is not positive.
        """
        if type(upper) is Integer:
            upper = upper.value
        ident = (name, lower, upper, divisor)
        node = cls._table.get(ident)
        if node is None:
            if not name.isidentifier():
                raise ValueError(f"a symbol's name must be an identifier, got {name!r}")
            if divisor < 1:
                raise ValueError(f"the divisor of {name} must be positive, got {divisor}")
            node = object.__new__(cls)
            node.name, node.lower, node.upper, node.divisor = ident
            match = _NUMBERED.match(name)
            assert match is not None
            _finish(node, (0, match[1], int(match[2] or -1), name, f"{lower} {upper} {divisor}"))
            node._free = frozenset((node,))
            node._text = name
            node = cls._table.setdefault(ident, node)
        return node

    def __reduce__(self) -> tuple[Any, ...]:
        return Symbol, (self.name, self.lower, self.upper, self.divisor)


# -- integer operations --------------------------------------------------------------------------------


class Sum(Expr):
    """``constant`` plus each term times its coefficient. Also ``3*x``, the sum of one term.

    ``terms`` is a tuple of (expression, coefficient) in the order of ``key``; no term is a sum or a constant and no
    coefficient is zero.
    """

    __slots__ = ("constant", "terms")
    constant: int
    terms: tuple[tuple[Expr, int], ...]
    _table: ClassVar[dict[tuple[Any, ...], Sum]] = {}

    def __new__(cls, *summands: ExprLike) -> Any:
        """The canonical sum, perhaps of another class."""
        total: Expr = Integer(0)
        for summand in summands:
            total = total + summand
        return total

    @staticmethod
    def make(constant: int, terms: tuple[tuple[Expr, int], ...]) -> Sum:
        """The node for terms that are canonical already."""
        ident = (constant, terms)
        node = Sum._table.get(ident)
        if node is None:
            node = object.__new__(Sum)
            node.constant, node.terms = constant, terms
            node._key = node._range = node._free = node._text = node._divisor = None
            node = Sum._table.setdefault(ident, node)
        return node

    def children(self) -> tuple[Expr, ...]:
        """The terms, without coefficients."""
        return tuple([term for term, _ in self.terms])

    def _make_key(self) -> tuple[Any, ...]:
        return (5, tuple([(term.key, c) for term, c in self.terms]), self.constant)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sum.make, (self.constant, self.terms)


# What follows imports the classes above, and operators call it: hence it stands at the end.
from .truth import FALSE, TRUE, BooleanConstant, BooleanExpr  # noqa: E402

# isort: split
from . import boolean, division, printing, ranges, simplify, substitution  # noqa: E402
