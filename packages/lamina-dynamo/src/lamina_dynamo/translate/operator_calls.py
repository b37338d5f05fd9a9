"""Calls of the front end"s operators: on fakes, with a node for each."""

from __future__ import annotations

import operator as python_operators
from contextlib import suppress
from typing import Any

from lamina_fx.symbolic import SymBool, SymFloat, SymInt, UnbackedSizeError

from ..errors import Unsupported
from ..frontend import DataDependent
from ..variables import (
    ArrayNumberVariable,
    ConstantVariable,
    DictVariable,
    ObservedException,
    ScalarVariable,
    SymIntVariable,
    TensorVariable,
    TupleVariable,
    VariableTracker,
    beside_arrays,
    realize,
)  # fmt: skip
from ..variables.base import NotConstant
from .out_arguments import call_into

__all__ = ["HostFloat", "OperatorCalls"]


class OperatorCalls:
    """The part of the translator that calls operators."""

    def python_operator(self, function: Any, args: list[Any]) -> VariableTracker:
        """One of Python's operators where an operand is an array."""
        id_ = self.frontend.operator(function)
        if id_ is not None:
            return self.operator(id_, args, {}, function)
        return self._python_operator_by_method(function, args)

    def _python_operator_by_method(self, function: Any, args: list[Any]) -> VariableTracker:
        """An operator that the front end writes as a method in Python: ``__getitem__`` and the like are inlined."""
        stem = function.__name__.strip("_")
        name = f"__{stem}__"
        order = [(args[0], name, args[1:])]
        if len(args) == 2 and stem in _REFLECTED:
            order.append((args[1], _REFLECTED[stem], args[:1]))
        for owner, method_name, rest in order:
            if isinstance(owner, TensorVariable) and self.frontend.member(owner.fake, method_name) is not None:
                result = owner.getattr(self, method_name).call(self, list(rest), {})
                if not (isinstance(result, ConstantVariable) and result.value is NotImplemented):
                    return result
        if stem.startswith("i") and hasattr(python_operators, stem[1:]):
            return self.python_operator(getattr(python_operators, stem[1:]), args)
        raise Unsupported(f"operator.{function.__name__} of {', '.join(map(repr, args))}")

    def operator(self, id: str, args: list[Any], kwargs: dict[str, Any], function: Any = None) -> VariableTracker:
        """Run an operator on fakes and write its node."""
        if "out" in kwargs:
            return call_into(self, lambda rest: self.operator(id, args, rest, function), kwargs)
        if any(isinstance(a, ArrayNumberVariable) for a in args):
            args = beside_arrays(self, id, args)
        frontend = self.frontend
        mode = frontend.mode_function(function) if function is not None else None
        if mode is not None:
            return self.mode_call(mode, args)
        effect = frontend.effect(id)
        if effect is None and function is not None and self.traces:
            return self.traced_call(function, args, kwargs)
        if effect == "grad" and id.startswith("autograd."):
            self.guard_backward(id)
            self.load_gradients()
        elif effect == "write" and self.deferred:
            self.writing()
        fakes = [self.to_fake(a) for a in args]
        named = {k: self.to_fake(v) for k, v in kwargs.items()}
        nodes = tuple([self.to_node(a) for a in args])
        named_nodes = {k: self.to_node(v) for k, v in kwargs.items()}
        of_input = bool(nodes) and getattr(nodes[0], "op", "") == "placeholder"
        if id == "detach_" and of_input and getattr(fakes[0], "requires_grad", False):
            raise Unsupported("detach_ of an input")  # a graph has no way to change what the caller's tensor is
        layout = frontend.spec(fakes[0]) if effect == "write" and of_input else None
        try:
            result = frontend.call(id, fakes, named)
            self.guard_memory(id, fakes, named)
        except (DataDependent, UnbackedSizeError) as error:
            raise Unsupported(f"{id}: {error}") from None
        except Unsupported:
            raise
        except Exception as error:  # noqa: BLE001  (the error that the call has in eager belongs to the traced program)
            raise self.observed(error) from None
        if layout is not None and layout != frontend.spec(fakes[0]):
            raise Unsupported(
                f"{id}: an input that gets another shape or other strides"
            )  # a graph writes only elements
        if effect == "write":
            self.note_write(fakes[0])
        elif id == "requires_grad_":
            self.leaves.append((fakes[0], self.frame.steps_to_break()))
        elif id == "retain_grad":
            self.retained.append((fakes[0], self.frame.steps_to_break()))
        spec = self.spec_of(result)
        node = self.output.call(id, nodes, named_nodes, spec, effect, self.regions(), self.user_line())
        return self.from_result(result, node)

    def traced_call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call a function of the front end on fakes; every operator that it calls becomes a node."""
        if "out" in kwargs:
            return call_into(self, lambda rest: self.traced_call(function, args, rest), kwargs)
        fakes = [self.to_fake(a) for a in args]
        named = {k: self.to_fake(v) for k, v in kwargs.items()}
        try:
            result = self.frontend.trace(function, fakes, named, self.record_call)
        except (DataDependent, UnbackedSizeError) as error:
            name = getattr(function, "__qualname__", None) or getattr(function, "__name__", function)
            raise Unsupported(f"{name}: {error}") from None
        except (Unsupported, ObservedException):
            raise
        except Exception as error:  # noqa: BLE001  (the error that the call has in eager belongs to the traced program)
            raise self.observed(error) from None
        return self.wrap_result(result)

    def record_call(self, id: str, args: Any, kwargs: dict[str, Any], run: Any) -> Any:
        """Called by the front end for each operator inside ``traced_call``: run it and write its node."""
        nodes = self.nodes_of(args)
        named = self.nodes_of(kwargs)
        result = run()
        self.guard_memory(id, args, kwargs)
        effect = self.frontend.effect(id)
        if effect == "write":
            self.note_write(args[0])
        elif id == "requires_grad_":
            self.leaves.append((args[0], self.frame.steps_to_break()))
        node = self.output.call(id, nodes, named, self.spec_of(result), effect, self.regions(), self.user_line())
        self.from_result(result, node)
        return result

    def nodes_of(self, value: Any) -> Any:
        """Nested arguments with fakes replaced by their nodes."""
        kind = type(value)
        if kind is tuple:
            return tuple([self.nodes_of(v) for v in value])
        if kind is list:
            return [self.nodes_of(v) for v in value]
        if kind is dict:
            return {k: self.nodes_of(v) for k, v in value.items()}
        if kind is slice:
            return slice(self.nodes_of(value.start), self.nodes_of(value.stop), self.nodes_of(value.step))
        if kind is HostFloat:
            return self.scalar_input(value.variable)
        if isinstance(value, tuple):
            return tuple([self.nodes_of(v) for v in value])
        if self.frontend.is_fake(value):
            known = self.fakes.get(id(value))
            if known is None:
                raise Unsupported(
                    "an array that the region did not make, such as one held by a function of the front end"
                )
            return known.node
        if self.frontend.is_array(value):
            return self.constant_node(value)
        return value

    def constant_node(self, value: Any) -> Any:
        """A node for an array that no source leads to: it becomes a constant of the graph."""
        graph = self.output.graph
        name = f"constant_{len(graph.attributes)}"
        graph.attributes[name] = value
        return graph.get_attr(name, spec=self.frontend.spec(value))

    def spec_of(self, result: Any) -> Any:
        """The spec of an operator's result."""
        if self.frontend.is_fake(result):
            return self.frontend.spec(result)
        if isinstance(result, (tuple, list)):
            return tuple([self.spec_of(r) for r in result])
        return None

    def from_result(self, result: Any, node: Any) -> VariableTracker:
        """The tracker of an operator's result."""
        if self.frontend.is_fake(result):
            known = self.fakes.get(id(result))
            if known is not None:
                return known
            made = TensorVariable(node, result)
            self.fakes[id(result)] = made
            return made
        if isinstance(result, (tuple, list)):
            values = []
            for position, part in enumerate(result):
                item = self.output.graph.call_function("getitem", (node, position), spec=self.spec_of(part))
                item.meta["source"] = node.meta["source"]
                values.append(self.from_result(part, item))
            return self._sequence_like(result, values)
        return self.wrap_result(result)

    def _sequence_like(self, result: Any, values: list[Any]) -> VariableTracker:
        if type(result) is list:
            return self.list_variable(values)
        if type(result) is tuple:
            return TupleVariable(values)
        return self.native_result(type(result), values)

    def wrap_result(self, value: Any) -> VariableTracker:
        """A plain value that the front end computed on a fake."""
        if isinstance(value, SymInt):
            expr = value.expr
            return ConstantVariable(expr.value) if not expr.free_symbols else SymIntVariable(value)
        if isinstance(value, SymBool):
            return ConstantVariable(bool(value))
        if isinstance(value, SymFloat):
            return ConstantVariable(float(value))
        if self.frontend.is_fake(value):
            known = self.fakes.get(id(value))
            if known is None:
                raise Unsupported("an array that the region did not make")
            return known
        if type(value) is tuple:
            return TupleVariable([self.wrap_result(v) for v in value])
        if isinstance(value, tuple):
            return self.native_result(type(value), [self.wrap_result(v) for v in value])
        return self.wrap_constant(value)

    def native_result(self, cls: type, values: list[Any]) -> VariableTracker:
        """An instance of a subclass of tuple (a size, a named result) with these elements."""
        from ..variables import UserObjectVariable

        made = UserObjectVariable(
            cls, native=TupleVariable(values), attrs=DictVariable() if cls.__dictoffset__ else None
        )
        if made.attrs is not None:
            made.attrs.owner = made
        return made

    def to_fake(self, value: Any) -> Any:
        """An argument as the front end's ``call`` takes it."""
        return self._argument(
            value, lambda t: t.fake, self._host_number if self.traces else lambda s: s.host_value.value
        )

    def _host_number(self, value: ScalarVariable) -> Any:
        """A host number that remembers where it is from; ints of the host are pinned."""
        if value.python_type() is float:
            return HostFloat.of(value)
        return value.specialized(self).value

    def to_node(self, value: Any) -> Any:
        """An argument as it stands in the graph."""
        return self._argument(value, lambda t: t.node, self.scalar_input)

    def scalar_input(self, value: ScalarVariable) -> Any:
        """The graph input that carries a number the host computes."""
        key = id(value.host_value)
        found = self.host_inputs.get(key)
        if found is None:
            from lamina_fx import ScalarSpec

            host = value.host_value
            origin = host.operands[0] if host.fn is None and not isinstance(host.operands[0], SymInt) else host
            name = value.source.name if value.source is not None else "scalar"
            node = self.output.add_input(origin, name, ScalarSpec(value.python_type()), host.value)
            found = self.host_inputs[key] = (node, host)
        return found[0]

    def _argument(self, value: Any, tensor: Any, scalar: Any) -> Any:
        if not isinstance(value, VariableTracker):
            value = realize(self, value)
        kind = type(value)
        if kind is TensorVariable:
            return tensor(value)
        if kind is ConstantVariable:
            return value.value
        if kind is SymIntVariable:
            return value.value
        if kind is ScalarVariable:
            return scalar(value)
        return self._nested_argument(value, tensor, scalar)

    def _nested_argument(self, value: Any, tensor: Any, scalar: Any) -> Any:
        from ..variables import ListVariable, SliceVariable, UserObjectVariable

        if isinstance(value, TupleVariable):
            return tuple([self._argument(v, tensor, scalar) for v in value.elements])
        if isinstance(value, ListVariable):
            return [self._argument(v, tensor, scalar) for v in value.elements]
        if isinstance(value, SliceVariable):
            return slice(*[self._argument(v, tensor, scalar) for v in value.parts])
        if isinstance(value, DictVariable):
            names = [k.as_constant() for k in value.key_list(self)]
            return dict(zip(names, [self._argument(v, tensor, scalar) for v in value.value_list(self)], strict=True))
        if isinstance(value, UserObjectVariable) and value.native is not None:
            return self._argument(value.native, tensor, scalar)
        with suppress(NotConstant, Unsupported):
            return value.as_constant()
        example = getattr(value, "real", None)
        if example is not None and self.frontend.is_constant(example):
            return example
        raise Unsupported(f"{value!r} as an argument of an operator")

    def mode_call(self, mode: str, args: list[Any]) -> VariableTracker:
        """Read or set ambient state, such as the grad mode."""
        action, _, name = mode.partition(":")
        if action == "get":
            return self.wrap_constant(self.frontend.get_mode(name))
        value = args[0].as_constant()
        return self.wrap_constant(self.frontend.set_mode(name, value))


class HostFloat(float):
    """A float argument that the emitted code computes: its value while tracing, and the tracker."""

    variable: ScalarVariable

    @classmethod
    def of(cls, variable: ScalarVariable) -> HostFloat:
        """The value of a tracker."""
        made = cls(variable.host_value.value)
        made.variable = variable
        return made


_REFLECTED = {
    name: f"__r{name}__"
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    )
} | {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__", "eq": "__eq__", "ne": "__ne__"}
