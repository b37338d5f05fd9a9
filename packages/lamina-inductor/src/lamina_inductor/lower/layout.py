"""Layout choice: the order of dimensions in memory of temporaries that a product reads permuted.

Heads ``[b, h, t, d]`` that a product reads as ``[b, t, h * d]`` are laid out as ``[b, t, h, d]``: the product then
needs no copy.
Kernels read any layout. A product or an attention is laid out so only when nothing but external steps reads it: an
epilogue wants its rows dense.

Images that a convolution reads have their channels last, where the backend's convolutions want that (``images_last``)
and what makes them reads such images, or is the epilogue of another convolution.
"""

from __future__ import annotations

from typing import Any

from lamina_prims.memory_formats import channels_last_strides

from ..ir.loops import Size, Value
from .attention import AttentionPlan
from .externs import ConvolutionPlan, GemmPlan

__all__ = ["choose_layouts"]


def choose_layouts(values: list[Value], outputs: list[Any], images_last: bool = False) -> None:
    """Set ``strides`` where an external step reads a value through a permutation, or as images."""
    fixed = {v for v in outputs if type(v) is Value}
    for value in values:
        if value.strides is not None or value in fixed:
            continue
        if images_last and _feeds_convolution(value) and _has_images_last(value):
            value.strides = channels_last_strides(value.shape)
        elif _is_free(value, fixed):
            dims = _wanted_order(value)
            if dims is not None:
                value.strides = _permuted_strides(value, dims)


def _is_free(value: Value, fixed: set[Value]) -> bool:
    if value.kind == "point" or value.kind == "reduce":
        return True
    if value.kind == "item" and type(value.inputs[0].attrs) is AttentionPlan:
        return _only_external(value, fixed)
    is_product = value.kind == "extern" and type(value.attrs) is GemmPlan and value.attrs.single
    return is_product and _only_external(value, fixed)


def _only_external(value: Value, fixed: set[Value]) -> bool:
    if value in fixed or not value.users:
        return False
    return all(u.kind == "extern" or (u.kind == "map" and _only_external(u, fixed)) for u in value.users)


def _wanted_order(value: Value) -> tuple[int, ...] | None:
    """The permutation below a reshape that some product reads; the last dimension stays the last."""
    for user in value.users:
        if user.kind == "map" and user.op == "permute" and _feeds_product(user):
            dims: Any = user.back(tuple(range(len(value.shape))))  # type: ignore[misc]
            if dims[-1] == len(dims) - 1:
                return dims
    return None


def _feeds_product(value: Value) -> bool:
    """Through a reshape (a product alone reads a permutation as it is)?"""
    return any(u.kind == "map" and u.op == "reshape" and any(_reaches_product(w) for w in u.users) for u in value.users)


def _reaches_product(value: Value) -> bool:
    if value.kind == "map":
        return any(_reaches_product(u) for u in value.users)
    return value.kind == "extern" and type(value.attrs) is GemmPlan


def _permuted_strides(value: Value, dims: tuple[int, ...]) -> tuple[Any, ...]:
    strides: list[Any] = [0] * len(dims)
    step: Any = 1
    for dim in reversed(dims):
        strides[dim] = step
        step = step * value.shape[dim]
    return tuple(strides)


# -- images ----------------------------------------------------------------------------------------------


def _feeds_convolution(value: Value) -> bool:
    users = [u for u in value.users if u.kind == "extern" and type(u.attrs) is ConvolutionPlan and u.inputs[0] is value]
    return bool(users) and (value.kind == "point" or (_is_convolution(value) and _only_external(value, set())))


def _is_convolution(value: Value) -> bool:
    return value.kind == "extern" and type(value.attrs) is ConvolutionPlan


def _has_images_last(value: Value) -> bool:
    """Is it made from a convolution, or from images with channels last, element by element?"""
    if _is_convolution(value):
        return True
    seen, stack = {value}, [value]
    while stack:
        for source in stack.pop().inputs:
            if source in seen or source.shape != value.shape:
                continue
            if _is_convolution(source) or source.strides == _last(source.shape):
                return True
            seen.add(source)
            stack.extend((source,) if source.kind == "point" else ())
    return False


def _last(shape: tuple[Size, ...]) -> tuple[Size, ...] | None:
    return channels_last_strides(shape) if len(shape) > 2 else None
