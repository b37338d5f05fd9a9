"""Size expressions as a list of operations over numbered slots, which the launcher computes at each call.

The size symbols come first, then constants and results in the order in which they are asked for. Without symbols
everything is a constant and there are no operations.

>>> from lamina_fx.symbolic import Symbol
>>> s = Symbol("s0", 1)
>>> slots = Slots((s,))
>>> slots.slot(3 * s + 1), slots.values, slots.operations
(4, [0, 3, 0, 1, 0], [(2, 1, 0, 1), (4, 0, 2, 3)])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx.symbolic import (
    And,
    BooleanConstant,
    Comparison,
    Expr,
    FloorDiv,
    Integer,
    Max,
    Min,
    Mod,
    Or,
    Product,
    Sum,
    Symbol,
)

__all__ = ["Slots"]

_ADD, _MULTIPLY, _FLOOR_DIVIDE, _MODULO, _MINIMUM, _MAXIMUM = range(6)
_COMPARISONS = {"==": 6, "!=": 7, "<": 8, "<=": 9}
_AND, _OR = 10, 11


class Slots:
    """values: what each slot holds before a call. operations: (target, code, a, b), as in ``host/cuda_plan.h``."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.values: list[int] = [0] * len(symbols)
        self.operations: list[tuple[int, int, int, int]] = []
        self.known: dict[Any, int] = {symbol: k for k, symbol in enumerate(symbols)}

    def slot(self, size: Any) -> int:
        """Number of the slot with this size.

        Raises:
            KeyError: it has a symbol that is none of the program's.
        """
        key = size if isinstance(size, Expr) else int(size)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._write(key)
        return found

    def slots(self, sizes: Sequence[Any]) -> tuple[int, ...]:
        """The slot of each."""
        return tuple([self.slot(size) for size in sizes])

    def _new(self, value: int) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _apply(self, code: int, a: int, b: int) -> int:
        target = self._new(0)
        self.operations.append((target, code, a, b))
        return target

    def _chain(self, code: int, parts: Sequence[Any]) -> int:
        return self._join(code, [self.slot(p) for p in parts])

    def _pair(self, term: Any, factor: int) -> tuple[int, int]:
        return self.slot(term), self.slot(factor)

    def _join(self, code: int, parts: Sequence[int]) -> int:
        first, *rest = parts
        for part in rest:
            first = self._apply(code, first, part)
        return first

    def _write(self, size: Any) -> int:
        kind = type(size)
        if kind is int or kind is Integer or kind is BooleanConstant:
            return self._new(int(size if kind is int else size.value))
        if kind is Sum:
            parts = [self.slot(t) if c == 1 else self._apply(_MULTIPLY, *self._pair(t, c)) for t, c in size.terms]
            return self._join(_ADD, [*parts, *([self.slot(size.constant)] if size.constant else [])])
        if kind is Product:
            return self._chain(_MULTIPLY, size.children())
        if kind in _BINARY:
            return self._chain(_BINARY[kind], size.children())
        if isinstance(size, Comparison):
            a, b = size.args
            return self._apply(_COMPARISONS[size.symbol], self.slot(a), self.slot(b))
        if isinstance(size, (And, Or)):
            return self._chain(_AND if isinstance(size, And) else _OR, size.args)
        raise KeyError(f"no value for {size} is known when the program runs")


_BINARY: dict[type, int] = {FloorDiv: _FLOOR_DIVIDE, Mod: _MODULO, Min: _MINIMUM, Max: _MAXIMUM}
