"""Lower a whole graph: each node becomes a loop IR value, an output, a write-back or an external step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lamina_fx import DType, Graph, Node, ScalarSpec, TensorSpec, bool_
from lamina_prims import operator
from lamina_prims.index_errors import called_name

from ..ir.loops import Size, Value
from . import (  # noqa: F401  (fill the table)
    attention,
    externs,
    indexing,
    pointwise,
    reductions,
    scans,
    scatters,
    sorts,
    spacing,
    strided,
    topk,
    views,
    windows,
)
from .table import RULES, Call, elementwise_only, size_of, sizes_of

__all__ = ["LoweredGraph", "lower_graph"]


@dataclass
class LoweredGraph:
    """A graph in loop IR.

    inputs: per placeholder a buffer value, or the symbol of a size, or None. values: in program order.
    outputs: per result a value, or a number, size or None. writes: (input number, value) of each write-back, in order.
    """

    inputs: list[Any] = field(default_factory=list)
    input_specs: list[Any] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    output_specs: list[Any] = field(default_factory=list)
    writes: list[tuple[int, Value]] = field(default_factory=list)
    constants: list[tuple[Value, Any]] = field(default_factory=list)
    nested_outputs: bool = False


def lower_graph(graph: Graph, *, supports: Callable[[str, DType], bool] = elementwise_only) -> LoweredGraph:
    """Loop IR of a graph of primitives in strict form.

    ``supports(op, dtype)`` says whether the backend can print an elementwise operator; others run by their reference.
    """
    return _Lowering(graph, supports).run()


class _Lowering:
    def __init__(self, graph: Graph, supports: Callable[[str, DType], bool]) -> None:
        self.graph = graph
        self.supports = supports
        self.env: dict[Node, Any] = {}
        self.calls: dict[Any, Value] = {}
        self.result = LoweredGraph()

    def run(self) -> LoweredGraph:
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "get_attr":
                self._constant(node)
            elif node.op == "output":
                self._output(node)
            elif node.op == "call_function":
                self._call(node)
            else:
                raise NotImplementedError(
                    f"inductor takes no {node.op} nodes (node {node.name}); trace the graph first"
                )
        return self.result

    def _placeholder(self, node: Node) -> None:
        result, spec = self.result, node.spec
        number = len(result.inputs)
        if isinstance(spec, TensorSpec):
            value = Value("buffer", "placeholder", node.name, (), sizes_of(spec.shape), spec.dtype)
            value.strides = sizes_of(spec.strides)
            value.buffer = f"arg{number}"
            value.attrs = ("input", number)
            self._add(value)
            self.env[node] = value
        else:
            value = self.env[node] = node.meta.get("symbol", spec.value if isinstance(spec, ScalarSpec) else None)
            if value is not None:
                value = self.env[node] = size_of(value)
        result.inputs.append(value)
        result.input_specs.append(spec)

    def _constant(self, node: Node) -> None:
        array = self.graph.attributes[node.target]
        spec = node.spec
        value = Value("buffer", "constant", node.name, (), sizes_of(spec.shape), spec.dtype)
        value.strides = sizes_of(TensorSpec(spec.shape, spec.dtype).strides)
        value.buffer = f"const{len(self.result.constants)}"
        value.attrs = ("constant", len(self.result.constants))
        self.result.constants.append((value, array))
        self._add(value)
        self.env[node] = value

    def _output(self, node: Node) -> None:
        outputs = node.args[0]
        flat = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        self.result.nested_outputs = not isinstance(outputs, (tuple, list))
        for item in flat:
            self.result.outputs.append(self.env[item] if isinstance(item, Node) else size_of(item))
            self.result.output_specs.append(item.spec if isinstance(item, Node) else None)

    def _call(self, node: Node) -> None:
        if node.target == "getitem":
            self.env[node] = self.env[node.args[0]].outputs[node.args[1]]
            return
        if node.target == "copy_to":
            target, value = (self._argument(a) for a in node.args)
            self.result.writes.append((target.attrs[1], value))
            return
        if node.spec is None:
            hint = "give GraphBuilder a resolver (lamina_prims.operator)"
            raise ValueError(f"{node.name} ({node.target}) has no spec; {hint}")
        second = _second_run(node)
        key = None if node.effect else _key((node.target, _plain_args(node), node.kwargs, second), self.env)
        if key is not None:
            known = self.calls.get(key)
            if known is not None:
                self.env[node] = known
                return
        call = self._bind(node)
        rule = RULES.get(node.target)
        value = rule(call) if rule is not None else None
        if value is None:
            value = self._elementwise(node, call)
        if value is None:
            value = externs.host_call(call)
        self._finish(node, value)
        if key is not None:
            self.calls[key] = value
            value.backward = bool(second)

    def _bind(self, node: Node) -> Call:
        op, given, tensors = operator(node.target), node.args, node.all_input_nodes
        named = node.kwargs
        if node.target == "as_strided":
            given, named = strided.from_memory(node), {}
            tensors = [given[0]]
        args = op.schema.bind(
            tuple([self._argument(a) for a in given]), {k: self._argument(v) for k, v in named.items()}
        )
        named = {p.name: a for p, a in zip(op.schema.parameters, args, strict=True)}
        specs = tuple([n.spec for n in tensors])
        return Call(node.target, node.name, named, node.spec, specs, self.supports)

    def _argument(self, argument: Any) -> Any:
        kind = type(argument)
        if kind is Node:
            return self.env[argument]
        if kind is tuple or kind is list:
            return tuple([self._argument(a) for a in argument])
        return argument if kind in _PLAIN else _plain_size(argument)

    def _elementwise(self, node: Node, call: Call) -> Value | None:
        op = operator(node.target)
        if op.elementwise is None or not isinstance(call.spec, TensorSpec):
            return None
        operands, extra = [], []
        for parameter in op.schema.parameters:
            value = call.args[parameter.name]
            if parameter.tensor == "one" or parameter.annotation == "Scalar":
                operands.append(value)
            elif value != parameter.default:
                extra.append(value)
        if extra or any(o is None for o in operands):
            return None
        tensors = [o for o in operands if type(o) is Value]
        if not tensors or any(t.shape != call.value_shape() for t in tensors):
            return None
        if not self.supports(node.target, next((t.dtype for t in tensors if t.dtype is not bool_), bool_)):
            return None
        return pointwise.pointwise_call(call, tuple(operands))

    def _finish(self, node: Node, value: Value) -> None:
        source = node.meta.get("source")
        origin = (node.name, node.target, f"{source[0]}:{source[1]}" if source else "")
        value.origin = origin
        value.called = called_name(node.meta.get("from", (node.target,))[0])
        for item in (value, *value.outputs):
            item.origin = origin
            self._add(item)
        self.env[node] = value

    def _add(self, value: Value) -> None:
        for item in value.inputs:  # a rule may have made values below the one that it returns
            if item.order == 0:
                item.origin, item.called = (item.origin[0], item.origin[1], value.origin[2]), value.called
                self._add(item)
        if value.order == 0:
            self.result.values.append(value)
            value.order = len(self.result.values)


_LARGE = 1 << 18


def _second_run(node: Node) -> tuple[str, ...]:
    """What sets a value of the backward apart from an equal one of the forward, which would otherwise be kept until
    then: checkpoints say so; elsewhere it is meant for large values only (keeping a norm's statistics costs nothing).
    """
    if "backward" not in node.regions or len(node.regions) > 1:
        return node.regions if "backward" in node.regions else ()
    if not isinstance(node.spec, TensorSpec):
        return ()
    elements: Any = 1
    for size in node.spec.shape:
        elements = elements * (size if type(size) is int else int(size.hint))
    return node.regions if elements * node.spec.dtype.itemsize >= _LARGE else ()


def _plain_args(node: Node) -> tuple[Any, ...]:
    """The arguments without ``keepdim=False`` at their end, which says nothing."""
    args = node.args
    return args[:2] if node.target in reductions.REDUCTIONS and len(args) == 3 and args[2] is False else args


def _key(argument: Any, env: dict[Node, Any]) -> Any:
    """What makes two calls equal: operator and arguments, with constants told apart by type and sign."""
    kind = type(argument)
    if kind is Node:
        return env[argument] if type(env[argument]) is Value else (Node, argument.name)
    if kind is tuple or kind is list:
        return tuple([_key(a, env) for a in argument])
    if kind is dict:
        return tuple([(k, _key(v, env)) for k, v in argument.items()])
    if kind is float:
        return (float, argument.hex())
    return argument if kind is str or kind is DType else (kind, str(argument))


_PLAIN = frozenset((int, float, bool, complex, str, type(None), DType))


def _plain_size(argument: Any) -> Any:
    expr: Size | None = getattr(argument, "expr", None)
    return argument if expr is None else size_of(argument)
