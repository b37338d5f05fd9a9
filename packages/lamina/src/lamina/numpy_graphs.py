"""Graphs of NumPy calls, as capture writes them for functions of arrays, become graphs of Lamina's operators.

Each call is replayed by a rule of ``numpy_rules``; what comes out must have the shape and dtype that NumPy gave. A
call without a rule, or one whose result would differ, refuses the graph: it then runs call by call in NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina_dynamo import CaptureWarning
from lamina_dynamo.backends import interpret
from lamina_fx import Graph, GraphBuilder, Node, Proxy, TensorSpec
from lamina_prims import operator
from lamina_tensor import Tensor, from_numpy

from .numpy_rules import NotTranslated, rule_of

__all__ = ["compile_arrays", "tensor_graph"]

_REFUSALS = (
    *(NotTranslated, TypeError, RuntimeError, IndexError, ValueError, AttributeError, OverflowError),
    NotImplementedError,
)
"""What rules and operators raise at calls that they do not take; NumPy itself took the call when it was captured."""


def tensor_graph(captured: Graph) -> Graph:
    """The same computation in Lamina's operators.

    Raises:
        NotTranslated: a call has no counterpart that gives NumPy's results; the message names it and its line.
    """
    graph = Graph()
    builder = GraphBuilder(graph, resolver=operator)
    made: dict[Node, Any] = {}

    def value(argument: Any) -> Any:
        if isinstance(argument, Node):
            return made[argument]
        if isinstance(argument, (tuple, list)):
            return type(argument)(value(a) for a in argument)
        return argument

    for node in captured.nodes:
        if isinstance(node.spec, TensorSpec) and node.spec.dtype.kind == "complex":
            raise NotTranslated(f"complex numbers{_line_of(node)}")
        if node.op == "placeholder":
            made[node] = builder.proxy(graph.placeholder(node.name, spec=node.spec))
        elif node.op == "output":
            graph.output(tuple(v.node if isinstance(v, Proxy) else v for v in value(node.args[0])))
        elif node.op == "call_function" and node.effect is None:
            before = len(graph.nodes)
            made[node] = _replayed(node, value(node.args), {k: value(v) for k, v in node.kwargs.items()})
            for new in list(graph.nodes)[before:]:
                new.meta.update({k: v for k, v in node.meta.items() if k == "source"})
        else:
            what = "writes into an array" if node.effect else "is a constant array"
            raise NotTranslated(f"{node.target} {what}{_line_of(node)}")
    return graph


def _line_of(node: Node) -> str:
    source = node.meta.get("source")
    return f" ({source[0]}:{source[1]})" if source else ""


def _replayed(node: Node, args: Any, kwargs: dict[str, Any]) -> Any:
    if not isinstance(node.spec, TensorSpec):
        raise NotTranslated(f"{node.target} has several results{_line_of(node)}")
    try:
        result = rule_of(str(node.target))(node.spec, *args, **kwargs)
    except _REFUSALS as error:
        raise NotTranslated(f"{node.target}: {error}{_line_of(node)}") from error
    spec = result.node.spec if isinstance(result, Proxy) else None
    if not isinstance(spec, TensorSpec) or len(spec.shape) != len(node.spec.shape):
        raise NotTranslated(f"{node.target} gives another shape here{_line_of(node)}")
    if spec.dtype is not node.spec.dtype:
        raise NotTranslated(
            f"{node.target} gives {spec.dtype.name} here, {node.spec.dtype.name} in NumPy{_line_of(node)}"
        )
    return result


def compile_arrays(
    captured: Graph, inputs: Sequence[Any], context: Any, compile_graph: Callable[..., Callable[..., Sequence[Any]]]
) -> Callable[..., tuple[Any, ...]]:
    """Compile a graph of NumPy calls by ``compile_graph``, which takes one of Lamina's operators and tensors."""
    try:
        graph = tensor_graph(captured)
    except NotTranslated as reason:
        warnings.warn(
            f"{getattr(context, 'function', 'a function')}: its NumPy calls run one by one, uncompiled: {reason}",
            CaptureWarning,
            stacklevel=2,
        )
        return interpret(captured, list(inputs), context)
    run = compile_graph(graph, [_tensor(v) for v in inputs], context)

    def call(*values: Any) -> tuple[Any, ...]:
        return tuple([_array(r) for r in run(*[_tensor(v) for v in values])])

    return call


def _tensor(value: Any) -> Any:
    """A tensor over an array's memory (over a contiguous copy where it is not contiguous); numbers as they are."""
    if isinstance(value, (np.ndarray, np.generic)):
        return from_numpy(np.array(value, order="C", copy=None))
    return value


def _array(value: Any) -> Any:
    """NumPy's results: arrays, and scalars where there is no dimension."""
    return value.detach().numpy()[()] if isinstance(value, Tensor) else value
