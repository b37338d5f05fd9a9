"""Kinds of storage: what the tensors that view the same memory have in common.

``NumpyStorage`` (in C) is memory. ``FakeStorage`` is nothing: its tensors know their specs only. ``TracedStorage``
is the current functional value of the memory in a graph: writing replaces the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx import Node, TensorSpec

from ._C import NumpyStorage, StorageBase, TensorBase, no_data

if TYPE_CHECKING:
    from .tensor import Tensor
    from .tracing import Tracer

__all__ = ["FakeStorage", "NumpyStorage", "StorageBase", "TracedStorage", "tensor_without_data"]

_DEVICE_CODES = {"cpu": 0, "cuda": 1, "meta": 2}


class FakeStorage(StorageBase):
    """No memory: tensors over it have a spec and no elements."""

    __slots__ = ()


class TracedStorage(StorageBase):
    """Memory whose present value is that of ``node`` in the graph of ``tracer``.

    ``spec`` is that of the tensor that the storage was made for; a later value may lie otherwise in memory.
    ``generation`` counts writes; a view whose cached node is of an older generation derives its value again.
    """

    __slots__ = ("generation", "node", "spec", "tracer")

    tracer: Tracer
    node: Node
    spec: TensorSpec
    generation: int


def tensor_without_data(storage: StorageBase, spec: TensorSpec) -> Tensor:
    """A tensor of this spec over a storage that has no data."""
    device = spec.device
    return no_data(storage, spec, spec.dtype.code, _DEVICE_CODES[device.type], device.index or 0)


def storage_kind(tensor: TensorBase) -> type[Any]:
    """The class of a tensor's storage."""
    return type(tensor.storage)
