"""Specs of a composite's result, by running its body on proxies of a scratch graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx import Graph, GraphBuilder, Proxy, Spec, TensorSpec

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["infer_composite"]


def infer_composite(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
    """Run ``operator``'s body on proxies with these specs; returns the spec of what it returns."""
    graph = Graph()
    builder = GraphBuilder(graph)

    def lift(value: Any) -> Any:
        if isinstance(value, TensorSpec):
            return builder.proxy(graph.placeholder("x", spec=value))
        if type(value) in (list, tuple):
            return type(value)(lift(v) for v in value)
        return value

    result = operator.function(*(lift(a) for a in args), **{k: lift(v) for k, v in kwargs.items()})
    return _spec(result)


def _spec(value: Any) -> Spec:
    if isinstance(value, Proxy):
        return value.node.spec
    if isinstance(value, (tuple, list)):
        return tuple(_spec(v) for v in value)
    return getattr(value, "spec", None)
