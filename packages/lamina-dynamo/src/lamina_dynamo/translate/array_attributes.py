"""Attributes of arrays: facts, properties, methods, gradients."""

from __future__ import annotations

import types
from typing import Any

from .. import guard as g
from ..errors import Unsupported
from ..frontend import DataDependent
from ..source import Attr, Grad
from ..variables import (
    ArrayNumberVariable,
    BoundMethodVariable,
    HookMethodVariable,
    ItemMethodVariable,
    MethodDescriptorVariable,
    OperatorVariable,
    RefusedMethodVariable,
    TensorVariable,
    TracedFunctionVariable,
    TupleVariable,
    UserFunctionVariable,
    VariableTracker,
)  # fmt: skip

__all__ = ["ArrayAttributes"]


class ArrayAttributes:
    """The part of the translator that reads and sets attributes of arrays."""

    def tensor_attribute(self, tensor: TensorVariable, name: str) -> VariableTracker:
        """An attribute of an array."""
        frontend = self.frontend
        if name == "__class__":
            return self.class_variable(frontend.array_type(tensor.fake), None)
        if name == "grad":
            self.load_gradient(tensor, read=True)
        found = frontend.member(tensor.fake, name)
        if found is None:
            return self._stored_attribute(tensor, name)
        if found.kind == "value":
            return self._member_value(tensor, name, found.value)
        if found.kind == "operator":
            return self.operator(found.value, [tensor], {})
        if found.kind == "traced":
            return BoundMethodVariable(TracedFunctionVariable(found.value), tensor)
        if found.kind == "hook":
            return HookMethodVariable(tensor, name)
        if found.kind == "number":
            return ItemMethodVariable(tensor, "item")
        if found.kind == "unsupported":
            if isinstance(getattr(frontend.array_type(tensor.fake), name, None), types.FunctionType):
                return RefusedMethodVariable(tensor, name, found.value)
            raise Unsupported(found.value)
        if found.kind == "id":
            method = getattr(frontend.array_type(tensor.fake), name)  # what a break puts on the stack again
            return BoundMethodVariable(OperatorVariable(found.value, method), tensor)
        return BoundMethodVariable(self.wrap_frontend_function(found.value), tensor)

    def number_of(self, tensor: TensorVariable, kind: type) -> VariableTracker:
        """The number that an array of one element holds now."""
        value: Any = tensor
        for name, args in (("detach", []), ("clone", []), ("reshape", [TupleVariable([])])):
            value = value.getattr(self, name).call(self, args, {})
        return ArrayNumberVariable(value, kind)

    def wrap_frontend_function(self, function: Any) -> VariableTracker:
        """A function of the front end itself: taken as fixed."""
        if isinstance(function, types.FunctionType):
            id_ = self.frontend.operator(function)
            return self.wrap(function, None) if id_ is not None else UserFunctionVariable(function)
        if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            id_ = self.frontend.operator(function)
            return MethodDescriptorVariable(function) if id_ is None else self.wrap(function, None)
        return self.wrap(function, None)

    def _member_value(self, tensor: TensorVariable, name: str, value: Any) -> VariableTracker:
        if not self.frontend.is_fake(value):
            return self.wrap_result(value)
        known = self.fakes.get(id(value))
        if known is not None:
            return known
        if name != "grad":
            raise Unsupported(f"attribute {name!r} of an array, which is an array the region did not make")
        node = self.output.call(
            "grad_get", (tensor.node,), {}, self.frontend.spec(value), "grad", self.regions(), self.user_line()
        )
        return self.from_result(value, node)

    def _stored_attribute(self, tensor: TensorVariable, name: str) -> VariableTracker:
        """An attribute that the user stored on the array object."""
        if tensor.source is not None:
            real = self.real_of(tensor)
            table = getattr(real, "__dict__", None)
            if table is not None and name in table:
                return self.wrap(table[name], Attr(tensor.source, name))
            self.guard(g.attr_present(tensor.source, name, False))
        raise self.attribute_error(tensor, name)

    def real_of(self, tensor: TensorVariable) -> Any:
        """The caller's array behind an input."""
        for value, known in self.arrays:
            if known is tensor:
                return value
        return None

    def tensor_set_attribute(self, tensor: TensorVariable, name: str, value: VariableTracker) -> bool:
        """Assign an attribute that is an operator (``x.grad = y``); False when it is an ordinary one."""
        if name == "grad":
            self.with_gradient.add(tensor)  # what it had at entry no longer matters
        try:
            id_ = self.frontend.set_member(tensor.fake, name)
        except DataDependent as error:
            raise Unsupported(str(error)) from None
        if id_ is None:
            return False
        self.operator(id_, [tensor, value], {})
        return True

    def guard_backward(self, id: str) -> None:
        """A backward pass in the graph must not leave it: by the history of an input, or by a hook on one."""
        check = getattr(self.frontend, "backward_guards", None)
        if check is None:
            return
        for value, tensor in list(self.arrays):
            if tensor.source is None:
                continue
            guards = check(value, tensor.source, tensor.fake)
            if isinstance(guards, str):
                raise Unsupported(f"{id}, because {tensor.source} {guards}")
            for guard in guards:
                self.guard(guard)
            if hasattr(self.frontend, "gradient_hooks"):
                self.load_hooks(value, tensor)

    def guard_memory(self, id: str, args: Any, kwargs: dict[str, Any]) -> None:
        """An operator that depends on where an input lies in its memory."""
        check = getattr(self.frontend, "memory_guards", None)
        if check is None:
            return
        # not a list: it is asked about every operator, and looks at the inputs for few
        inputs = ((value, tensor.source, tensor.fake) for value, tensor in self.arrays if tensor.source is not None)
        for guard in check(id, args, kwargs, inputs):
            self.guard(guard)

    def load_gradients(self) -> None:
        """Let every input that can receive a gradient know the one it has: a backward pass adds to it."""
        for _, tensor in list(self.arrays):
            self.load_gradient(tensor)

    def load_gradient(self, tensor: TensorVariable, read: bool = False) -> None:
        """Make the gradient that an input has at entry known to its fake; ``read``: also one that is no leaf's."""
        if tensor.source is None or tensor in self.with_gradient or not hasattr(self.frontend, "attach_gradient"):
            return
        real = self.real_of(tensor)
        if not self.frontend.takes_gradient(tensor.fake) and not (read and self.frontend.gradient(real) is not None):
            return
        self.with_gradient.add(tensor)
        source = Grad(tensor.source)
        grad = self.frontend.gradient(real)
        found = self.wrap(grad, source)
        if isinstance(found, TensorVariable):
            self.frontend.attach_gradient(tensor.fake, found.fake)
            found.node.meta["grad_of"] = tensor.node
