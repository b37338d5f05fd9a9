"""Kinds of storage: what the tensors that view the same memory have in common.

``NumpyStorage`` (in C) is memory, ``CudaStorage`` memory of a GPU. ``FakeStorage`` is nothing: its tensors know their
specs only. ``TracedStorage`` is the current functional value of the memory in a graph: writing replaces the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx import Node, TensorSpec

from ._C import CudaStorage, NumpyStorage, StorageBase, TensorBase, no_data

if TYPE_CHECKING:
    from .tensor import Tensor
    from .tracing import Tracer

__all__ = [
    "CudaStorage", "FakeStorage", "NumpyStorage", "StorageBase", "TracedStorage", "is_host", "on_device",
    "tensor_without_data",
]  # fmt: skip

_DEVICE_CODES = {"cpu": 0, "cuda": 1, "meta": 2}


class FakeStorage(StorageBase):
    """No memory: tensors over it have a spec and no elements.

    ``spec`` is that of the tensor it was made for, whose first element is ``offset`` elements behind the start.
    ``room``: elements in all; None: up to the last of that tensor.
    """

    __slots__ = ("offset", "room", "spec")

    def __init__(self, spec: TensorSpec, offset: int = 0, room: int | None = None) -> None:
        self.spec = spec
        self.offset = offset
        self.room = room


class TracedStorage(StorageBase):
    """Memory whose present value is that of ``node`` in the graph of ``tracer``.

    ``spec`` is that of the tensor that the storage was made for; a later value may lie otherwise in memory.
    ``offset``: of that tensor's first element in the memory.
    ``generation`` counts writes; a view whose cached node is of an older generation derives its value again.
    """

    __slots__ = ("generation", "node", "offset", "spec", "tracer")

    room = None

    tracer: Tracer
    node: Node
    spec: TensorSpec
    generation: int
    offset: int


def is_host(tensor: TensorBase) -> bool:
    """Has the tensor data in the host's memory: is its array NumPy's."""
    return tensor._array is not None and type(tensor.storage) is not CudaStorage


def on_device(tensor: TensorBase) -> bool:
    """Has the tensor data on a GPU."""
    return type(tensor.storage) is CudaStorage


def tensor_without_data(storage: StorageBase, spec: TensorSpec) -> Tensor:
    """A tensor of this spec over a storage that has no data."""
    device = spec.device
    return no_data(storage, spec, spec.dtype.code, _DEVICE_CODES[device.type], device.index or 0)


def storage_kind(tensor: TensorBase) -> type[Any]:
    """The class of a tensor's storage."""
    return type(tensor.storage)
