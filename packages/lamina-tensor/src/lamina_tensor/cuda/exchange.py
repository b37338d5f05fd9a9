"""CUDA tensors for other libraries and from them: DLPack and ``__cuda_array_interface__``."""

from __future__ import annotations

from typing import Any

from .. import _C
from .activation import active_provider, is_float8, on_device, stored_dtype

__all__ = ["array_interface", "export_dlpack", "from_interface", "import_dlpack"]


def export_dlpack(tensor: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A DLPack capsule of a CUDA tensor.

    Raises:
        BufferError: its dtype has no DLPack code.
    """
    if is_float8(tensor.dtype):
        raise BufferError(f"{tensor.dtype} has no DLPack code")
    provider = active_provider()
    with on_device(provider, tensor.device.index):
        return tensor._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def import_dlpack(value: Any) -> Any:
    """A CUDA tensor over the memory of an object that speaks DLPack."""
    provider = active_provider()
    with on_device(provider, value.__dlpack_device__()[1]):
        return _C.wrap_device(provider.namespace.from_dlpack(value))


def array_interface(tensor: Any) -> dict[str, Any]:
    """Version 3 of the interface, with the current stream.

    Raises:
        AttributeError: the tensor is not on a GPU. RuntimeError: it requires a gradient. TypeError: bfloat16 and float8
            have no code in it.
    """
    if type(tensor.storage) is not _C.CudaStorage:
        raise AttributeError(
            f"a tensor on {tensor.device} has no __cuda_array_interface__; Tensor.cuda() makes one that has"
        )
    if tensor._requires_grad:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad; use tensor.detach()")
    dtype = stored_dtype(tensor.dtype)
    if dtype.num >= 256 or is_float8(tensor.dtype):
        raise TypeError(f"{tensor.dtype} has no code in __cuda_array_interface__; use DLPack")
    from .streams import current_stream

    contiguous = tensor.is_contiguous()
    strides = None if contiguous else tuple(s * dtype.itemsize for s in tensor._strides)
    data = (tensor._data_ptr if tensor.numel() else 0, False)
    where = current_stream(tensor.device).cuda_stream or 1  # 1: the legacy default stream
    return {
        "shape": tensor._sizes, "typestr": dtype.str, "strides": strides, "data": data, "version": 3, "stream": where,
    }  # fmt: skip


def from_interface(value: Any) -> Any:
    """A CUDA tensor over the memory that ``value.__cuda_array_interface__`` describes."""
    return _C.wrap_device(active_provider().namespace.asarray(value))
