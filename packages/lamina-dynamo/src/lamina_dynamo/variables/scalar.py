"""Numbers that are not fixed while tracing: sizes and ints as ``SymInt``, other scalars as computations on the host.

A ``ScalarVariable`` is worked out by the emitted code before the graph is called, and enters the graph as an input.
A definite answer about it (a branch, an index) pins the values that it is computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import SymInt

from .base import Args, Kwargs, VariableTracker
from .constant import ConstantVariable

__all__ = ["HostInput", "ScalarVariable", "SymIntVariable"]


class SymIntVariable(VariableTracker):
    """An int that is an expression over sizes and int arguments."""

    __slots__ = ("value",)

    def __init__(self, value: SymInt, source: Any = None) -> None:
        self.source = source
        self.value = value

    def python_type(self) -> type:
        return int

    def specialized(self) -> ConstantVariable:
        """The value as a constant, guarded to stay what it is."""
        return ConstantVariable(int(self.value))

    def key(self) -> Any:
        return int(self.value)

    def truth(self, tx: Any) -> bool:
        return bool(self.value)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return self.specialized().getattr(tx, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.specialized().method(tx, name, args, kwargs)

    def host(self) -> HostInput:
        """The same number as a host computation."""
        return HostInput(None, (self.value,), self.value.hint)

    def reconstruct(self, cg: Any) -> None:
        cg.load_expression(self.value)

    def __repr__(self) -> str:
        return f"int {self.value}"


class HostInput:
    """A node of a host computation: ``fn(*operands)``, or a leaf (``fn`` is None): a source, a SymInt or a constant."""

    __slots__ = ("fn", "operands", "value")

    def __init__(self, fn: Callable[..., Any] | None, operands: tuple[Any, ...], value: Any) -> None:
        self.fn = fn
        self.operands = operands
        self.value = value

    def leaves(self) -> list[HostInput]:
        """The leaves, left to right."""
        if self.fn is None:
            return [self]
        return [leaf for operand in self.operands for leaf in operand.leaves()]


class ScalarVariable(VariableTracker):
    """A float (or an int beyond sizes' arithmetic) that the emitted code computes."""

    __slots__ = ("host_value",)

    def __init__(self, host: HostInput, source: Any = None) -> None:
        self.source = source
        self.host_value = host

    def python_type(self) -> type:
        return type(self.host_value.value)

    def host(self) -> HostInput:
        """The computation."""
        return self.host_value

    def specialized(self, tx: Any) -> ConstantVariable:
        """The value as a constant; everything it is computed from is guarded to stay what it is."""
        for leaf in self.host_value.leaves():
            operand = leaf.operands[0]
            if isinstance(operand, SymInt):
                int(operand)
            elif operand is not None:
                tx.guard_equals(operand, leaf.value)
        return ConstantVariable(self.host_value.value)

    def truth(self, tx: Any) -> bool:
        return tx.truth(tx.compare("!=", self, ConstantVariable(0)))

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return self.specialized(tx).getattr(tx, name)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.specialized(tx).method(tx, name, args, kwargs)

    def reconstruct(self, cg: Any) -> None:
        cg.load_host(self.host_value)

    def __repr__(self) -> str:
        return f"{self.python_type().__name__} of the host"


def host_of(value: VariableTracker) -> HostInput:
    """A number as a host computation."""
    if isinstance(value, (SymIntVariable, ScalarVariable)):
        return value.host()
    return HostInput(None, (None,), value.as_constant())
