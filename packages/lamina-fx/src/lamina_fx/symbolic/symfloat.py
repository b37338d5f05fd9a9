"""Floats computed from sizes.

>>> from lamina_fx.symbolic import ShapeEnv
>>> n = ShapeEnv().create_symbol(16, "x.shape[0]")
>>> 1.0 / sym_sqrt(n), (1.0 / sym_sqrt(n)).hint
((1.0 / sqrt(float(s0))), 0.25)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import symint
from .expr import Expr

if TYPE_CHECKING:
    from .shape_env import ShapeEnv

__all__ = ["SymFloat", "sym_float", "sym_sqrt"]


class SymFloat:
    """A float computed from sizes: ``1 / math.sqrt(n)`` and the like.

    Keeps the computation as text and as a function of the symbols; a definite answer specialises every size in it.
    """

    __slots__ = ("compute", "env", "exprs", "text")

    def __init__(self, text: str, exprs: tuple[Expr, ...], compute: Callable[..., float], env: ShapeEnv) -> None:
        self.text = text
        self.exprs = exprs
        self.compute = compute
        self.env = env

    def _combine(self, other: Any, symbol: str, fn: Callable[[float, float], Any], swap: bool = False) -> Any:
        if isinstance(other, symint.SymInt):
            other = sym_float(other)
        if isinstance(other, SymFloat):
            mine, other_text, count = self.compute, other.text, len(self.exprs)
            theirs, exprs = other.compute, self.exprs + other.exprs

            def both(*values: int) -> Any:
                pair = mine(*values[:count]), theirs(*values[count:])
                return fn(pair[1], pair[0]) if swap else fn(*pair)
        elif isinstance(other, (int, float)):
            mine, exprs, other_text, number = self.compute, self.exprs, repr(other), other

            def both(*values: int) -> Any:
                return fn(number, mine(*values)) if swap else fn(mine(*values), number)
        else:
            return NotImplemented
        left, right = (other_text, self.text) if swap else (self.text, other_text)
        return SymFloat(f"({left} {symbol} {right})", exprs, both, self.env)

    def __add__(self, other: Any) -> Any:
        return self._combine(other, "+", lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._combine(other, "+", lambda a, b: a + b, swap=True)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, "-", lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, "-", lambda a, b: a - b, swap=True)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, "*", lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self._combine(other, "*", lambda a, b: a * b, swap=True)

    def __truediv__(self, other: Any) -> Any:
        return self._combine(other, "/", lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combine(other, "/", lambda a, b: a / b, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, "//", lambda a, b: a // b)

    def __pow__(self, other: Any) -> Any:
        return self._combine(other, "**", lambda a, b: a**b)

    def __rpow__(self, other: Any) -> Any:
        return self._combine(other, "**", lambda a, b: a**b, swap=True)

    def __neg__(self) -> SymFloat:
        return self._combine(-1.0, "*", lambda a, b: a * b)

    @property
    def hint(self) -> float:
        """The value in the example inputs."""
        return self.compute(*[self.env.hint(e) for e in self.exprs])

    def evaluate(self, values: Any) -> float:
        """The value for these values of the symbols."""
        return self.compute(*[e.evaluate(values) for e in self.exprs])

    def __float__(self) -> float:
        return float(self.compute(*[self.env.specialize(e) for e in self.exprs]))

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def __eq__(self, other: object) -> bool:
        return float(self) == (float(other) if isinstance(other, (SymFloat, symint.SymInt)) else other)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


def sym_float(value: Any) -> Any:
    """``float(value)`` without a guard when it is symbolic."""
    if isinstance(value, symint.SymInt):
        return SymFloat(f"float({value})", (value.expr,), float, value.env)
    return value if isinstance(value, SymFloat) else float(value)


def sym_sqrt(value: Any) -> Any:
    """``math.sqrt`` without a guard."""
    value = sym_float(value)
    if not isinstance(value, SymFloat):
        return math.sqrt(value)
    inner = value.compute
    return SymFloat(f"sqrt({value.text})", value.exprs, lambda *v: math.sqrt(inner(*v)), value.env)
