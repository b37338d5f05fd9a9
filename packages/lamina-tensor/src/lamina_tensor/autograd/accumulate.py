"""Accumulation of gradients into the ``.grad`` of leaves."""

from __future__ import annotations

import sys
from typing import Any

from lamina_prims import operator

from .._C import TensorBase, alias, is_grad_enabled, wrap
from ..storage import TracedStorage, is_host

__all__ = ["accumulate_gradient", "check_gradient"]


def accumulate_gradient(leaf: Any, box: list[Any]) -> None:
    """Add the gradient in ``box`` (emptied, so that an unshared one can be kept without a copy) to ``leaf.grad``."""
    gradient = box.pop()
    if gradient.device != leaf.device:  # a number on the CPU went along with a CUDA tensor
        gradient = operator("device_put")(gradient, leaf.device)
    have = leaf._grad
    if have is None:
        leaf._grad = _owned(leaf, gradient, sys.getrefcount(gradient) <= 2)
    elif is_grad_enabled() or have._requires_grad:
        leaf._grad = operator("add")(have, gradient)
    else:
        from ..inplace import add_into

        add_into(have, gradient)
    if leaf._hooks is not None and leaf._hooks[1]:
        for hook in tuple(leaf._hooks[1].values()):
            hook(leaf)


def _owned(leaf: Any, gradient: Any, unshared: bool) -> Any:
    """The gradient as a tensor that shares its memory with nothing else."""
    other = gradient._strides != leaf._strides and _is_fixed(leaf) and not _has_layout_of(leaf, gradient)
    if type(gradient.storage) is TracedStorage and not is_grad_enabled():
        return gradient.storage.tracer.copy(_in_layout_of(leaf, gradient) if other else gradient)
    if other:
        return _in_layout_of(leaf, gradient)
    if is_grad_enabled():
        return gradient if unshared else operator("clone")(gradient)
    storage = gradient.storage
    alone = sys.getrefcount(storage) <= 3 and unshared and not gradient._is_view_flag
    del storage
    if alone and (gradient._array is None or gradient._array.base is None):
        return alias(gradient, type(gradient), False)
    return operator("clone")(gradient)


def _is_fixed(leaf: Any) -> bool:
    """Are all sizes and strides numbers: comparing symbolic ones would guard."""
    return all(type(n) is int for n in (*leaf._sizes, *leaf._strides))


def _order(leaf: Any) -> list[int]:
    """The dimensions from the outermost in: the leaf's own order where its memory is dense, otherwise row-major."""
    sizes, strides = leaf._sizes, leaf._strides
    order = sorted(range(len(sizes)), key=lambda d: -strides[d])
    step = 1
    for d in reversed(order):
        if sizes[d] != 1:
            if strides[d] != step:
                return list(range(len(sizes)))
            step *= sizes[d]
    return order


def _has_layout_of(leaf: Any, gradient: Any) -> bool:
    step, sizes = 1, leaf._sizes
    for d in reversed(_order(leaf)):
        if sizes[d] != 1:
            if gradient._strides[d] != step:
                return 0 in sizes
            step *= sizes[d]
    return True


def _in_layout_of(leaf: Any, gradient: Any) -> Any:
    """A copy whose strides are the leaf's, as PyTorch keeps ``.grad``: an optimizer walks both in one order."""
    order = _order(leaf)
    back = sorted(range(len(order)), key=order.__getitem__)
    if is_host(gradient) and not is_grad_enabled():
        return wrap(gradient._array.transpose(order).copy().transpose(back))
    moved = operator("permute")(gradient, tuple(order))
    return operator("permute")(operator("contiguous")(moved), tuple(back))


def check_gradient(tensor: Any, given: Any, index: int) -> None:
    """Refuse a gradient of another shape or kind.

    Raises:
        RuntimeError, TypeError: names both.
    """
    if not isinstance(given, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._sizes != tensor._sizes:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {given.shape} and output[{index}] has a shape of "
            f"{tensor.shape}."
        )
    if (given.dtype.kind == "complex") != (tensor.dtype.kind == "complex"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {given.dtype} and output[{index}] has a dtype of {tensor.dtype}."
        )
