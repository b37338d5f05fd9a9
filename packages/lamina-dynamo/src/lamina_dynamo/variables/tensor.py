"""Arrays of the front end: a graph node and a fake that knows shape, dtype, aliasing and gradient state."""

from __future__ import annotations

import operator
from typing import Any

from lamina_fx import Node

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .constant import NONE, ConstantVariable
from .known import KnownVariable
from .looked_up import LookedUpMethodVariable
from .masked import MaskedVariable, select_masked, write_masked

__all__ = ["OperatorVariable", "RefusedMethodVariable", "TensorVariable", "TracedFunctionVariable"]


class TensorVariable(VariableTracker):
    """An array. ``node`` computes it; ``fake`` is what the front end's ``fake`` or ``call`` gave for it."""

    __slots__ = ("attributes", "fake", "node")

    def __init__(self, node: Node, fake: Any, source: Any = None) -> None:
        self.source = source
        self.node = node
        self.fake = fake
        self.attributes: dict[str, VariableTracker] | None = None
        """What the region stored on the object; None when nothing."""

    def python_type(self) -> type:
        return type(self.fake)

    def children(self) -> list[Any]:
        return [] if self.attributes is None else list(self.attributes.values())

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if self.attributes is not None and name in self.attributes:
            return self.attributes[name]
        return tx.tensor_attribute(self, name)

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        if tx.tensor_set_attribute(self, name, value):
            return
        tx.mutating(self)
        if self.attributes is None:
            self.attributes = {}
        self.attributes[name] = value

    def delattr(self, tx: Any, name: str) -> None:
        if name == "grad":
            self.setattr(tx, name, NONE)
            return
        raise Unsupported(f"deletion of attribute {name!r} of an array")

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call(tx, args, kwargs)

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        raise tx.error(TypeError, f"{self.python_type().__name__!r} object is not callable")

    def truth(self, tx: Any) -> bool:
        known = tx.frontend.truth(self.fake)
        if known is not None:
            return known
        raise Unsupported(
            "a branch on the value of an array, which only running the graph tells",
            "Use where(), or move the branch out of the compiled function",
        )

    def length(self, tx: Any) -> VariableTracker:
        shape = self.fake.shape
        if not shape:
            raise tx.error(TypeError, "len() of a 0-d tensor")
        return tx.wrap_result(shape[0])

    def iterator(self, tx: Any) -> VariableTracker:
        if not self.fake.shape:
            raise tx.error(TypeError, "iteration over a 0-d tensor")
        size = int(self.fake.shape[0])
        rows = [tx.python_operator(operator.getitem, [self, ConstantVariable(i)]) for i in range(size)]
        return tx.iterator_over(rows)

    def getitem(self, tx: Any, index: VariableTracker) -> VariableTracker:
        if isinstance(index, TensorVariable):
            found = select_masked(tx, self, index)
            if found is not None:
                return found
        return tx.python_operator(operator.getitem, [self, index])

    def setitem(self, tx: Any, index: VariableTracker, value: VariableTracker) -> None:
        if isinstance(value, MaskedVariable) and write_masked(tx, self, index, value):
            return
        tx.python_operator(operator.setitem, [self, index, value])

    def contains(self, tx: Any, item: VariableTracker) -> VariableTracker:
        raise Unsupported("a membership test in an array depends on its values")

    def reconstruct(self, cg: Any) -> None:
        cg.load_output(self)

    def __repr__(self) -> str:
        return f"array {self.node.name}"


class RefusedMethodVariable(LookedUpMethodVariable):
    """A method of an array whose call cannot be captured; looking it up can."""

    __slots__ = ("reason",)

    def __init__(self, owner: TensorVariable, name: str, reason: str) -> None:
        super().__init__(owner, name)
        self.reason = reason

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        raise Unsupported(self.reason)


class TracedFunctionVariable(KnownVariable):
    """A function of the front end that is called on fakes; the operators that it calls become nodes."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.traced_call(self.value, args, kwargs)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.wrap_constant(getattr(self.value, name))

    def __repr__(self) -> str:
        return f"function {getattr(self.value, '__qualname__', self.value)}"


class OperatorVariable(KnownVariable):
    """A callable of the front end that is an operator: calling it writes a node."""

    __slots__ = ("id",)

    def __init__(self, id: str, value: Any, source: Any = None) -> None:
        self.source = source
        self.id = id
        self.value = value

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.operator(self.id, args, kwargs, self.value)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        return tx.wrap_constant(getattr(self.value, name))

    def __repr__(self) -> str:
        return f"operator {self.id}"
