"""What it costs to keep a value, and to compute it again."""

from __future__ import annotations

from typing import Any

from lamina_fx import Node, Size, TensorSpec
from lamina_prims import Operator, operators

from .calls import called_operators

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
    if node.op != "call_function" or node.target == "getitem":
        return FREE
    if node.effect is not None:
        return BANNED
    operator = operators().get(node.target)
    return BANNED if operator is None else _class_of(operator)


_FAMILIES = {
    "reductions": MODERATE,
    "scans": MODERATE,
    "indexing": MODERATE,
    "index_update": MODERATE,
    "pooling": MODERATE,
    "windows": MODERATE,
    "products": BANNED,
    "convolution": BANNED,
    "linalg": BANNED,
    "fourier": BANNED,
    "sorting": BANNED,
}
"""Primitives by the module that declares them; all others are pointwise or move data."""

_known: dict[Operator, int] = {}


def _class_of(operator: Operator) -> int:
    """A primitive's own class; of a composite, the dearest of what its body calls."""
    found = _known.get(operator)
    if found is None:
        if operator.is_primitive:
            family = operator.function.__module__.rpartition(".")[2]
            found = FREE if operator.alias else _FAMILIES.get(family, CHEAP)
        else:
            found = max(map(_class_of, called_operators(operator)), default=CHEAP)
        _known[operator] = found
    return found
