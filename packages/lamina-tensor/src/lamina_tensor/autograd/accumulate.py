"""Accumulation of gradients into the ``.grad`` of leaves."""

from __future__ import annotations

import sys
from typing import Any

from lamina_prims import operator

from .._C import TensorBase, alias, is_grad_enabled
from ..storage import TracedStorage

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
    if type(gradient.storage) is TracedStorage and not is_grad_enabled():
        return gradient.storage.tracer.copy(gradient)
    if is_grad_enabled():
        return gradient if unshared else operator("clone")(gradient)
    storage = gradient.storage
    alone = sys.getrefcount(storage) <= 3 and unshared and not gradient._is_view_flag
    del storage
    if alone and (gradient._array is None or gradient._array.base is None):
        return alias(gradient, type(gradient), False)
    return operator("clone")(gradient)


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
