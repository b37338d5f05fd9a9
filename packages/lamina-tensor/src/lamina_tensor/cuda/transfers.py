"""Copies between the host and devices, and within tensors on a device."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from lamina_fx import Device, contiguous_strides
from lamina_prims.arrays import converted, numpy_dtype
from lamina_prims.strides import dense_strides

from .. import _C
from .activation import active_provider, dense_order, device_index, is_float8, on_device, stored_dtype
from .memory import explaining
from .recorded import hold
from .streams import current_stream
from .synchronization import refuse_while_capturing, run_checks

__all__ = ["copy_data", "host_copy", "is_pinned", "place", "pin", "upload", "wrap_as"]

_PINNED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Storages in pinned memory."""


def wrap_as(array: Any, dtype: Any) -> Any:
    """A tensor of ``dtype`` over an array on the device that holds it."""
    return _C.wrap_device(array, dtype.code)


def host_copy(tensor: Any) -> np.ndarray[Any, Any]:
    """The elements of a CUDA tensor as an ndarray of its dtype. Waits, and runs the checks of a synchronisation."""
    refuse_while_capturing("values cannot be copied to the host")
    index = tensor.device.index
    with on_device(active_provider(), index):
        array = _to_host(tensor._array)
    run_checks()
    return array.view(numpy_dtype(tensor.dtype)) if is_float8(tensor.dtype) else array


def _to_host(array: Any) -> np.ndarray[Any, Any]:
    """A copy on the host; dense arrays keep the order of their dimensions."""
    order = dense_order(array)
    return array.get() if order is None else array.transpose(order).get().transpose(np.argsort(order))


def _to_peer(array: Any, index: int) -> Any:
    """A copy on another device, which is the thread's now.

    It is work of that device: it waits for what the other one has to do by now, and what that one does later (it may
    give the memory to somebody else) waits for the copy.
    """
    provider = active_provider()
    ours, theirs = current_stream(index).handle, current_stream(array.data.device_id).handle
    with on_device(provider, array.data.device_id):
        written = provider.new_event(False, False)
        written.record(theirs)
    ours.wait_event(written)
    made, read = provider.namespace.array(array, order="K"), provider.new_event(False, False)
    read.record(ours)
    theirs.wait_event(read)
    return made


def upload(array: np.ndarray[Any, Any], dtype: Any, index: int, wait: bool = True) -> Any:
    """A CUDA tensor with a copy of an ndarray, whose elements are of ``dtype``."""
    if is_float8(dtype):
        array = array.view(np.uint8)
    with explaining(index), on_device(active_provider(), index):
        return wrap_as(active_provider().to_device(array, index, wait), dtype)


def place(tensor: Any, device: Device, non_blocking: bool = False) -> Any:
    """A copy of a tensor with data on a device, without history.

    Raises:
        RuntimeError: there is no such device. OutOfMemoryError: nor memory on it.
    """
    made = _placed(_dense(tensor), device, non_blocking)
    if 0 in tensor._sizes:  # arrays without elements have no strides
        _C.restride(made, tensor.stride())
    return made


def _dense(tensor: Any) -> Any:
    """The tensor; of one that repeats elements a copy, whose dimensions are in the order that its metadata says (copies
    of libraries put such dimensions elsewhere)."""
    if 0 not in tensor.stride() or 0 in tensor._sizes:
        return tensor
    strides = dense_strides(tensor.spec) or contiguous_strides(tensor._sizes)
    order = sorted(range(tensor.ndim), key=lambda d: -strides[d])
    back = [order.index(d) for d in range(tensor.ndim)]
    if tensor.device.type != "cuda":
        return _C.wrap(tensor._array.transpose(order).copy("C").transpose(back))
    with explaining(tensor.device.index), on_device(active_provider(), tensor.device.index):
        return wrap_as(tensor._array.transpose(order).copy("C").transpose(back), tensor.dtype)


def _placed(tensor: Any, device: Device, non_blocking: bool) -> Any:
    if device.type == "cpu":
        array = host_copy(tensor) if tensor.device.type == "cuda" else tensor._array.copy("K")
        return _C.wrap(array)
    index = device_index(device)
    if tensor.device.type != "cuda":
        begun_only = non_blocking and is_pinned(tensor)
        made = upload(tensor._array, tensor.dtype, index, wait=not begun_only)
        if begun_only:
            hold(tensor.storage, current_stream(index))
        return made
    provider = active_provider()
    with explaining(index), on_device(provider, index):
        array = tensor._array
        made = array.copy(order="K") if tensor.device.index == index else _to_peer(array, index)
        return wrap_as(made, tensor.dtype)


def copy_data(target: Any, source: Any, non_blocking: bool = False) -> None:
    """Write the elements of ``source`` (broadcast, converted) into ``target``; one of them at least is on a device."""
    if target.device.type != "cuda":
        if non_blocking and is_pinned(target) and target.dtype is source.dtype and _plain_pair(target, source):
            with on_device(active_provider(), source.device.index):
                source._array.get(out=target._array, blocking=False)
            hold(target.storage, current_stream(source.device))
            return
        with np.errstate(all="ignore"):
            np.copyto(target._array, converted(_real(host_copy(source), target), target._array.dtype))
        return
    index = target.device.index
    if source.device != target.device:
        source = place(source, target.device, non_blocking)
    if source.dtype is not target.dtype and (is_float8(target.dtype) or is_float8(source.dtype)):
        from lamina_prims import operator

        source = operator("convert_element_type")(source, target.dtype)
    with explaining(index), on_device(active_provider(), index):
        value = _real(source._array, target)
        if value.dtype != target._array.dtype:
            value = value.astype(stored_dtype(target.dtype))
        target._array[...] = value


def _plain_pair(target: Any, source: Any) -> bool:
    return target._sizes == source._sizes and target.is_contiguous() and source.is_contiguous()


def _real(array: Any, target: Any) -> Any:
    return array.real if array.dtype.kind == "c" and target.dtype.kind != "complex" else array


def pin(tensor: Any) -> Any:
    """A copy of a CPU tensor in pinned memory; itself when it is there.

    Raises:
        RuntimeError: it is on a device, or there is no device.
    """
    if tensor.device.type != "cpu":
        raise RuntimeError(f"cannot pin {tensor.device}: only dense CPU tensors can be pinned")
    if is_pinned(tensor):
        return tensor
    array = active_provider().pinned(tensor._sizes, tensor._array.dtype)
    np.copyto(array, tensor._array)
    made = _C.wrap(array)
    _PINNED.add(made.storage)
    return made


def is_pinned(tensor: Any) -> bool:
    """Is the tensor's memory pinned."""
    return tensor.storage in _PINNED
