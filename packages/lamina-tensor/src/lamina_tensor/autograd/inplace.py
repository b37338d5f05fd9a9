"""Gradient history of tensors that are written in place.

A write to a tensor gives it a new history; a write to a view gives its base one (``CopySlices``): the base's gradient
splits into that of the written elements, which goes to what was written, and the rest, which goes to what the
base was before. Views made earlier get their history anew from the base when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_prims import operator

from .._C import is_grad_enabled, set_grad_enabled
from ..views import ViewStep, autograd_steps, has_strided, offset_of, replay, scatter, steps_from
from .node import Node, edge_of

__all__ = ["CopySlices", "check_inplace", "edge_before_write", "note_copy", "rebase_history", "refresh_view"]

_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
_LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
_NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case "
    "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
    "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
    "the inplace to be tracked)."
)
_MULTI_VIEW = (
    "Output {} of {} is a view and is being modified inplace. This view is the output of a function that returns "
    "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
    "inplace operation by an out-of-place one."
)


def check_inplace(tensor: Any) -> None:
    """Refuse a write that autograd cannot follow (with recording on).

    Raises:
        RuntimeError: the tensor is a leaf that requires a gradient, or a view of one; in PyTorch's words.
    """
    if not is_grad_enabled():
        return
    base = tensor._base
    if base is not None:
        if tensor._no_grad_view:
            if base._requires_grad:
                raise RuntimeError(_NO_GRAD_VIEW)
        elif base._requires_grad and base._is_leaf:
            raise RuntimeError(_LEAF_VIEW)
        elif base._requires_grad and (step := autograd_steps(tensor)[-1])[3] is not None:
            raise RuntimeError(_MULTI_VIEW.format(step[3], step[0].id))
    elif tensor._requires_grad and tensor._is_leaf:
        raise RuntimeError(_LEAF)


class CopySlices(Node):
    """Backward of a write through a view: edges are the base before the write, then the written value."""

    __slots__ = ("order", "steps")

    def __init__(self, base: Any, base_edge: Any, view: Any, value_edge: Any, steps: Sequence[ViewStep]) -> None:
        super().__init__((base_edge, value_edge), ((base._sizes, base.dtype), (view._sizes, view.dtype)))
        self.steps = steps_from(base.spec, offset_of(base), view, steps)
        self.order: tuple[int, ...] | None = None
        if has_strided(steps):  # the gradient must lie in memory as the base does
            strides = base._strides
            self.order = tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Split the base's gradient."""
        gradient = grads[0]
        if self.order is not None:
            dense = operator("clone")(operator("permute")(gradient, self.order), memory_format="contiguous_format")
            gradient = operator("permute")(dense, tuple(self.order.index(d) for d in range(len(self.order))))
        written = replay(gradient, self.steps)
        rest = None
        if self.edges[0] is not None:
            rest = scatter(gradient, self.steps, operator("zeros_like")(written))
        return rest, operator("clone")(written) if self.edges[1] is not None else None

    def name(self) -> str:
        """As PyTorch prints it."""
        return "CopySlices"


class _Overwritten(Node):
    """History of a tensor whose elements were replaced by constants: what it was before gets zeros."""

    __slots__ = ()

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        device = grads[0].device
        return [None if m is None else operator("zeros")(m[0], dtype=m[1], device=device) for m in self.metas]

    def name(self) -> str:
        return "OverwriteBackward0"


class _Copied(Node):
    """History of a tensor that another was copied into. Edges: the tensor before, which gets zeros, and the other."""

    __slots__ = ()

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        shape, dtype = self.metas[0]
        return operator("zeros")(shape, dtype=dtype, device=grads[0].device), grads[0]

    def name(self) -> str:
        return "CopyBackwards"


def note_copy(tensor: Any, before: Any) -> None:
    """After a copy into ``tensor``, whose history was ``before``: that gets a gradient of zeros."""
    if tensor._base is None or tensor._no_grad_view:
        meta = (tensor._sizes, tensor.dtype)
        tensor._grad_fn = _Copied((before, edge_of(tensor)), (meta, meta))
        tensor._output_nr = 0


def rebase_history(tensor: Any, node: Any, output_nr: int) -> None:
    """Give a tensor that was just written the history ``(node, output_nr)`` (None: constants were written)."""
    base = tensor._base
    if base is None or tensor._no_grad_view:
        if node is None:
            node = _Overwritten((edge_of(tensor),), ((tensor._sizes, tensor.dtype),))
        tensor._grad_fn = node
        tensor._output_nr = output_nr
        return
    base_edge = edge_of(base) if base._requires_grad else None
    value_edge = None if node is None else (node, output_nr)
    base._grad_fn = CopySlices(base, base_edge, tensor, value_edge, autograd_steps(tensor))
    base._output_nr = 0
    refresh_view(tensor)


def edge_before_write(tensor: Any) -> Any:
    """Where the gradient of a tensor goes that is about to be written.

    What ``as_strided`` shows beyond the view it was called on takes part as well: its history is taken from the base.
    """
    if tensor._base is not None and not tensor._no_grad_view and has_strided(autograd_steps(tensor)):
        refresh_view(tensor)
    return edge_of(tensor)


def refresh_view(view: Any) -> None:
    """Derive a view's history from its base again."""
    if not view._base._requires_grad:
        view._grad_version = view._version
        return
    before = set_grad_enabled(True)
    try:
        base = view._base
        again = replay(base, steps_from(base.spec, offset_of(base), view, autograd_steps(view)))
    finally:
        set_grad_enabled(before)
    view._grad_fn = again._grad_fn
    view._output_nr = again._output_nr
