"""The table of lowering rules: operator id -> function that makes loop IR for a call.

A rule gets the ``Call`` (arguments by parameter name, tensors as ``Value``s) and returns a ``Value``, or None when this
particular call is better done by the operator's reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, TensorSpec
from lamina_fx.symbolic import Integer

from ..ir.loops import Size, Value

__all__ = ["RULES", "Call", "elementwise_only", "fixed", "lowers", "size_of", "sizes_of"]


def elementwise_only(op: str, dtype: DType) -> bool:
    """What is supported where nothing is said: everything but rows that are sorted in a tile, which a CPU has not."""
    return op != "sort"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a primitive. ``spec`` is that of the result, ``specs`` those of the node's inputs;
    ``supports(op, dtype)`` says what the backend has code for."""

    op: str
    name: str
    args: dict[str, Any]
    spec: Any
    specs: tuple[Any, ...] = ()
    supports: Callable[[str, DType], bool] = elementwise_only

    def __getitem__(self, parameter: str) -> Any:
        return self.args[parameter]

    def get(self, *names: str, default: Any = None) -> Any:
        """The argument of the first of these names that there is."""
        for name in names:
            if name in self.args:
                return self.args[name]
        return default

    def value_shape(self) -> tuple[Size, ...]:
        """Shape of the result."""
        return sizes_of(self.spec.shape)

    def value(self, kind: str, inputs: tuple[Value, ...], dtype: DType | None = None) -> Value:
        """A new value with the result's shape and dtype."""
        spec: TensorSpec = self.spec
        return Value(kind, self.op, self.name, inputs, sizes_of(spec.shape), dtype or spec.dtype)


Rule = Callable[[Call], "Value | None"]
RULES: dict[str, Rule] = {}
"""Operator id -> rule."""


def lowers(*ids: str) -> Callable[[Rule], Rule]:
    """Put a rule into the table under these operator ids."""

    def put(rule: Rule) -> Rule:
        for id in ids:
            RULES[id] = rule
        return rule

    return put


def size_of(size: Any) -> Size:
    """A size as loop IR has it: an int where it is known, otherwise an expression."""
    if type(size) is int:
        return size
    if type(size) is Integer:
        return size.value
    expr = getattr(size, "expr", size)
    return expr.value if type(expr) is Integer else expr


def sizes_of(shape: Any) -> tuple[Size, ...]:
    """``size_of`` for each."""
    return tuple([size_of(s) for s in shape])


def fixed(size: Any) -> bool:
    """True for a size that is a plain int."""
    return type(size) is int
