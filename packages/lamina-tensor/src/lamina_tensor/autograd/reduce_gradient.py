"""Bring a gradient to the shape and dtype of what it is the gradient of."""

from __future__ import annotations

from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Integer
from lamina_prims import operator

__all__ = ["reduce_gradient", "sum_to_shape"]


def reduce_gradient(gradient: Any, shape: tuple[Any, ...], dtype: DType, name: str) -> Any:
    """Sum over the dimensions that broadcasting made or widened; convert (complex to real takes the real part).

    Raises:
        RuntimeError: the gradient's shape does not reduce to ``shape``.
    """
    if len(gradient._sizes) != len(shape) or gradient._sizes != shape:  # a guard compares items of symbols
        gradient = sum_to_shape(gradient, shape, name)
    if gradient.dtype is not dtype:
        if gradient.dtype.kind == "complex" and dtype.kind != "complex":
            gradient = operator("real")(gradient)
        if gradient.dtype is not dtype:
            gradient = operator("convert_element_type")(gradient, dtype)
    return gradient


def sum_to_shape(value: Any, shape: tuple[Any, ...], name: str = "sum_to_size") -> Any:
    """Sum ``value`` over leading and widened dimensions so that its shape is ``shape``."""
    have, shape = tuple(map(_plain, value._sizes)), tuple(map(_plain, shape))
    extra = len(have) - len(shape)
    fits = extra >= 0
    dims = list(range(max(extra, 0)))
    for index, size in enumerate(shape if fits else ()):
        found = have[extra + index]
        if found is size or (type(found) is int and type(size) is int and found == size):
            continue
        if type(size) is int and size == 1:
            dims.append(extra + index)
        elif found != size:
            fits = False
    if not fits:
        raise RuntimeError(
            f"Function {name} returned an invalid gradient: got {list(have)} but expected shape compatible with "
            f"{list(shape)}"
        )
    if dims:
        value = operator("sum")(value, tuple(dims), False)
    if len(value._sizes) == len(shape) and value._sizes == shape:
        return value
    return operator("reshape")(value, shape)


def _plain(size: Any) -> Any:
    """A symbolic size that a guard has fixed meanwhile (broadcasting asks whether one is 1) as its number."""
    expr = getattr(size, "expr", None)
    return expr.value if type(expr) is Integer else size
