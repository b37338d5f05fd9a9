"""Hooks: functions called with gradients, and the handles that remove them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

__all__ = ["RemovableHandle", "add_hook", "register_tensor_hook", "retain_grad", "run_hooks"]

_ids = count()


class RemovableHandle:
    """What registering a hook returns: ``remove()``, or leaving a ``with`` block, takes the hook away."""

    __slots__ = ("hooks", "id")

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks = hooks
        self.id = next(_ids)

    def remove(self) -> None:
        """Take the hook away; does nothing the second time."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def add_hook(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Add ``hook`` to ``hooks``; returns its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_tensor_hook(tensor: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(grad)`` when the tensor's gradient is known; a returned tensor replaces it.

    Raises:
        RuntimeError: the tensor does not require a gradient.
    """
    if not tensor._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    from .node import edge_of

    edge = edge_of(tensor)
    if type(edge) is tuple:
        node, index = edge
        if node.hooks is None:
            node.hooks = {}
        return add_hook(node.hooks.setdefault(index, {}), hook)
    if tensor._hooks is None:
        tensor._hooks = ({}, {})
    return add_hook(tensor._hooks[0], hook)


def register_accumulate_hook(tensor: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(tensor)`` after a gradient was accumulated into a leaf's ``.grad``.

    Raises:
        RuntimeError: the tensor is no leaf, or does not require a gradient.
    """
    if not tensor._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not tensor._is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if tensor._hooks is None:
        tensor._hooks = ({}, {})
    return add_hook(tensor._hooks[1], hook)


def run_hooks(hooks: dict[int, Any], grad: Any) -> Any:
    """The gradient after each hook saw it."""
    for hook in tuple(hooks.values()):
        replaced = hook(grad)
        if replaced is not None:
            grad = replaced
    return grad


def retain_grad(tensor: Any) -> None:
    """Keep ``.grad`` of a tensor that is no leaf.

    Raises:
        RuntimeError: the tensor does not require a gradient.
    """
    if not tensor._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if tensor._is_leaf or tensor._retains_grad:
        return
    import weakref

    from .node import edge_of

    node, index = edge_of(tensor)
    if node.retained is None:
        node.retained = {}
    node.retained.setdefault(index, []).append(weakref.ref(tensor))
    tensor._retains_grad = True
