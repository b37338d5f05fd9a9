"""Truth values: the base of comparisons, and the two constants.

>>> TRUE & FALSE, TRUE | FALSE, ~TRUE
(False, True, False)
"""

# pyright: reportPrivateUsage=false
# (what is remembered of an expression)

from __future__ import annotations

from typing import Any

from .expr import Expr, as_expr

__all__ = ["FALSE", "TRUE", "BooleanConstant", "BooleanExpr"]


class BooleanExpr(Expr):
    """Something that is true or false. ``&``, ``|`` and ``~`` are and, or, not."""

    __slots__ = ()

    def __and__(self, other: BooleanExpr | bool) -> BooleanExpr:
        return boolean.conjunction((self, as_expr(other)))

    def __or__(self, other: BooleanExpr | bool) -> BooleanExpr:
        return boolean.disjunction((self, as_expr(other)))

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> BooleanExpr:
        return boolean.negation(self)


class BooleanConstant(BooleanExpr):
    """``TRUE`` or ``FALSE``."""

    __slots__ = ("value",)
    value: bool

    def __new__(cls, value: bool) -> BooleanConstant:
        """``TRUE`` or ``FALSE``."""
        return TRUE if value else FALSE

    @property
    def is_constant(self) -> bool:
        """True."""
        return True

    def __bool__(self) -> bool:
        return self.value

    def __reduce__(self) -> tuple[Any, ...]:
        return BooleanConstant, (self.value,)


def _constant(value: bool) -> BooleanConstant:
    node = object.__new__(BooleanConstant)
    node.value = value
    node._key = (10, value)
    node._text = node._divisor = None
    node._free = frozenset()
    node._range = (int(value), int(value))
    return node


TRUE = _constant(True)
FALSE = _constant(False)


# The rules import the classes above.
from . import boolean  # noqa: E402
