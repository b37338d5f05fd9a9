"""What a mask in a graph is: a triangle that says "causal", or a tensor that says what takes part.

>>> from lamina_fx import Graph, GraphBuilder
>>> from .registry import operator, ops
>>> builder = GraphBuilder(Graph(), resolver=operator)
>>> ones = builder.call(operator("ones"), ((4, 4),), {})
>>> triangle(ops.tril(ones).node, (4, 4)), triangle(ops.eq(ops.tril(ones), 0).node, (4, 4))
(True, False)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lamina_fx import Node, TensorSpec, bool_

from .dims import surely_same
from .registry import operators

__all__ = ["arguments_of", "number_of", "triangle", "triangle_of_infinities"]


def arguments_of(node: Node) -> dict[str, Any]:
    """The arguments of a call by parameter name; those of an in-place id are the operator's. Empty: not a call."""
    target = node.target
    op = operators().get(target) or operators().get(target.removesuffix("_"))
    if node.op != "call_function" or op is None:
        return {}
    args, kwargs = node.args, node.kwargs
    if op.variadic is not None:
        args = op.schema.gather(args, op.variadic)
    return {p.name: v for p, v in zip(op.schema.parameters, op.schema.bind(args, kwargs), strict=True)}


def number_of(value: Any) -> float | None:
    """A number, or a tensor of one element that the graph fills with a number."""
    if isinstance(value, Node):
        if value.target != "full" or not isinstance(value.spec, TensorSpec) or value.spec.shape != ():
            return None
        value = arguments_of(value)["fill_value"]
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def triangle(node: Any, shape: tuple[Any, Any]) -> bool | None:
    """Is this (queries, keys) mask true exactly where key <= query (True), exactly elsewhere (False)? None: unknown.

    Dimensions of size 1 in front do not matter.
    """
    if not isinstance(node, Node) or not isinstance(node.spec, TensorSpec):
        return None
    sizes = node.spec.shape
    if not surely_same(sizes[-2:], shape) or any(type(n) is not int or n != 1 for n in sizes[:-2]):
        return None
    rule = _RULES.get(node.target)
    return None if rule is None else rule(arguments_of(node), shape)


def triangle_of_infinities(node: Any, shape: tuple[Any, Any]) -> bool:
    """Is this added mask -inf exactly where key > query and 0 elsewhere?"""
    if not isinstance(node, Node) or not isinstance(node.spec, TensorSpec):
        return False
    given = arguments_of(node)
    if node.target in _VIEWS or node.target in _SAME:
        sizes = node.spec.shape
        return surely_same(sizes[-2:], shape) and triangle_of_infinities(given["input"], shape)
    if node.target == "triu":
        fits = surely_same(node.spec.shape, shape)
        return fits and given["diagonal"] == 1 and _filled(given["input"]) == -math.inf
    if node.target == "masked_fill":
        return (
            _filled(given["input"]) == 0 and number_of(given["value"]) == -math.inf and _is_upper(given["mask"], shape)
        )
    return False


def _is_upper(mask: Any, shape: tuple[Any, Any]) -> bool:
    return triangle(mask, shape) is False


def _filled(node: Any) -> float | None:
    """The number that all elements have."""
    if not isinstance(node, Node):
        return None
    if node.target in ("full", "full_like"):
        value = arguments_of(node)["fill_value"]
        return float(value) if isinstance(value, (int, float)) else None
    if node.target in _SAME or node.target in _VIEWS:
        return _filled(arguments_of(node)["input"])
    return {"ones": 1.0, "ones_like": 1.0, "zeros": 0.0, "zeros_like": 0.0}.get(node.target)


_SAME = frozenset(
    {"to_bool", "to_float32", "to_float16", "to_float64", "to_bfloat16", "to_int32", "to_int64"}
) | frozenset({"to.dtype", "to.device", "convert_element_type", "clone", "contiguous"})
"""What leaves 0 and 1 as they are."""
_VIEWS = frozenset({"view", "reshape", "unsqueeze", "detach", "expand"})


def _lower(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
    fits = isinstance(given["input"], Node) and surely_same(given["input"].spec.shape, shape)  # type: ignore[union-attr]
    return True if fits and given["diagonal"] == 0 and _filled(given["input"]) not in (None, 0.0) else None


def _upper(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
    fits = isinstance(given["input"], Node) and surely_same(given["input"].spec.shape, shape)  # type: ignore[union-attr]
    return False if fits and given["diagonal"] == 1 and _filled(given["input"]) not in (None, 0.0) else None


def _passed(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
    return triangle(given["input"], shape)


def _negated(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
    found = triangle(given["input"], shape)
    return None if found is None else not found


def _inverted(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
    spec = given["input"].spec
    return _negated(given, shape) if isinstance(spec, TensorSpec) and spec.dtype is bool_ else None


def _compared(equal: bool) -> Callable[[dict[str, Any], tuple[Any, Any]], bool | None]:
    def rule(given: dict[str, Any], shape: tuple[Any, Any]) -> bool | None:
        other = given["other"]
        if isinstance(other, Node) or other not in (0, 1):
            return None
        found = triangle(given["input"], shape)
        if found is None or (other == 1 and not _of_ones(given["input"])):
            return None
        return found if bool(other) is equal else not found

    return rule


def _of_ones(node: Any) -> bool:
    """Is what a triangle was cut from all ones (so that comparing with 1 tells it)?"""
    while isinstance(node, Node):
        if node.target in ("tril", "triu"):
            return _filled(arguments_of(node)["input"]) == 1.0
        node = arguments_of(node).get("input")
    return False


_RULES: dict[str, Callable[[dict[str, Any], tuple[Any, Any]], bool | None]] = {
    "tril": _lower, "triu": _upper, "logical_not": _negated, "bitwise_not": _inverted,
    "eq": _compared(True), "ne": _compared(False),
    **dict.fromkeys(_SAME | _VIEWS, _passed),
}  # fmt: skip
