"""In-place changes of a tensor's view of its memory: ``unsqueeze_``, ``t_``, ``resize_`` and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_prims import operator

from ._C import TensorBase, become, wrap
from .autograd.inplace import check_inplace
from .autograd.node import edge_of
from .storage import on_device

__all__ = ["MetadataChanges"]


def _reshaped(tensor: Any, name: str, *args: Any) -> Any:
    """Let ``tensor`` be the view that the operator makes of it, with the view's history."""
    check_inplace(tensor)
    view = operator(name)(tensor, *args)
    edge = edge_of(view) if view._requires_grad and not view._no_grad_view else None
    become(tensor, view, False)
    if type(edge) is tuple:
        tensor._grad_fn, tensor._output_nr = edge
    return tensor


class MetadataChanges:
    """Mixed into ``Tensor``."""

    __slots__ = ()

    def unsqueeze_(self: Any, dim: int) -> Any:
        """Insert a dimension of size 1; returns the tensor."""
        return _reshaped(self, "unsqueeze", dim)

    def squeeze_(self: Any, dim: Any = None) -> Any:
        """Remove dimensions of size 1; returns the tensor."""
        return _reshaped(self, "squeeze", dim)

    def t_(self: Any) -> Any:
        """Transpose a matrix; returns the tensor."""
        return _reshaped(self, "t")

    def transpose_(self: Any, dim0: int, dim1: int) -> Any:
        """Swap two dimensions; returns the tensor."""
        return _reshaped(self, "transpose", dim0, dim1)

    swapaxes_ = swapdims_ = transpose_

    def as_strided_(self: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
        """Show the storage with these sizes, strides and offset (in elements); returns the tensor."""
        return _reshaped(self, "as_strided.storage", size, stride, storage_offset)

    def __divmod__(self: Any, other: Any) -> Any:
        """The quotients rounded down, and what remains: ``divmod(tensor, other)``."""
        return self // other, self % other

    def __rdivmod__(self: Any, other: Any) -> Any:
        return other // self, other % self

    def resize_(self: Any, *sizes: Any) -> Any:
        """Change the shape; new elements, if it grows, are not initialised. Returns the tensor.

        Raises:
            RuntimeError: the tensor requires a gradient, or has no data.
        """
        if self._requires_grad:
            raise RuntimeError("cannot resize variables that require grad")
        if self._array is None:
            raise RuntimeError(f"resize_: a tensor without data ({self.spec}) cannot be resized")
        shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        count = int(np.prod(shape, dtype=np.int64))
        if on_device(self):
            flat = operator("reshape")(self.detach(), (-1,))
            if count > flat.numel():
                more = operator("zeros")((count - flat.numel(),), dtype=self.dtype, device=self.device)
                flat = operator("cat")([flat, more])
            become(self, operator("reshape")(operator("narrow")(flat, 0, 0, count), shape), False)
            return self
        flat = self._array.reshape(-1)
        if count > flat.size:
            flat = np.concatenate([flat, np.zeros(count - flat.size, flat.dtype)])
        become(self, wrap(flat[:count].reshape(shape)), False)
        return self

    def resize_as_(self: Any, the_template: TensorBase) -> Any:
        """``resize_`` to the shape of another tensor."""
        return self.resize_(the_template._sizes)

    def new(self: Any, *data: Any) -> Any:
        """A tensor of this dtype of the given sizes or data."""
        from .creation import legacy_tensor

        return legacy_tensor(data).to(self.dtype)

    def to_dense(self: Any, dtype: Any = None) -> Any:
        """The tensor itself: all are dense."""
        return self if dtype is None else self.to(dtype)

    def equal(self: Any, other: Any) -> bool:
        """See ``lamina_tensor.equal``."""
        from .functions import equal

        return equal(self, other)

    def allclose(self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """See ``lamina_tensor.allclose``."""
        from .functions import allclose

        return allclose(self, other, rtol, atol, equal_nan)
