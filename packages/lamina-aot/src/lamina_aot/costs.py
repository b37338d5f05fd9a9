"""What it costs to keep a value, and to compute it again."""

from __future__ import annotations

from typing import Any

from lamina_fx import Node, Size, TensorSpec
from lamina_prims import operators

__all__ = ["BANNED", "CHEAP", "FREE", "MODERATE", "bytes_of", "recompute_cost"]

FREE, CHEAP, MODERATE, BANNED = range(4)
"""Classes of recomputation: a view or constant; pointwise (fuses into its user); a reduction, norm or gather;
a product, convolution or external call."""


def bytes_of(value: Any) -> int:
    """Bytes that keeping a node's value takes; 0 for numbers. Symbolic sizes count with their hints."""
    spec = value.spec if isinstance(value, Node) else value
    if isinstance(spec, TensorSpec):
        count = spec.dtype.itemsize
        for size in spec.shape:
            count *= size_hint(size)
        return count
    if isinstance(spec, tuple):
        return sum(map(bytes_of, spec))
    return 0


def size_hint(size: Size) -> int:
    """An integer to reckon with for a size that may be symbolic."""
    return size if type(size) is int else int(size.hint)


def recompute_cost(node: Node) -> int:
    """The class of computing ``node`` again (one of the four constants)."""
    if node.op != "call_function":
        return FREE
    if node.effect is not None:
        return BANNED
    if node.target == "getitem":
        return FREE
    operator = operators().get(node.target)
    if operator is None:
        return BANNED
    if operator.alias:
        return FREE
    return min(operator.cost, BANNED)
