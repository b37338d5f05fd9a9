"""Methods of ``Tensor`` that lead out of it: Python numbers, arrays, other dtypes and devices, DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import Device, DType, bool_, complex64, float32, int64
from lamina_prims import operator
from lamina_prims.memory_formats import in_format, order_of
from lamina_prims.modes import MODES, NeedsValues

from ._C import TensorBase
from .dtype_names import dtype_from_legacy, legacy_type_name
from .storage import is_host, on_device

__all__ = ["Conversion"]

_NO_DATA = "{}: a tensor without data ({}) has no values; they are known only when the program runs"


class Conversion:
    """Mixed into ``Tensor``."""

    __slots__ = ()

    def _values(self: Any, what: str) -> np.ndarray[Any, Any]:
        """The elements as an ndarray: the memory itself on the CPU, a copy of a GPU's."""
        if self._array is None:
            raise NeedsValues(_NO_DATA.format(what, self.spec))
        if on_device(self):
            from .cuda.transfers import host_copy

            return host_copy(self)
        return self._array

    def _host_memory(self: Any, what: str) -> np.ndarray[Any, Any]:
        if on_device(self):
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        return self._values(what)

    # -- Python ----------------------------------------------------------------------------------------

    def item(self: Any) -> Any:
        """The value of a tensor with one element, as a Python number.

        Raises:
            RuntimeError: it has several elements, or no data.
        """
        if self._array is not None and self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        value = self._values("item()").item()
        return value if type(value) in (bool, int, float, complex) else float(value)

    def tolist(self: Any) -> Any:
        """Nested lists of Python numbers."""
        array = self._values("tolist()")
        if array.dtype.kind == "V" or array.dtype.num >= 256:
            array = array.astype(np.float32)
        return array.tolist()

    def __bool__(self: Any) -> bool:
        count = self.numel()
        if count != 1:
            what = "no values" if count == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self.item())

    def __int__(self: Any) -> int:
        return int(self.item())

    def __float__(self: Any) -> float:
        return float(self.item())

    def __complex__(self: Any) -> complex:
        return complex(self.item())

    def __index__(self: Any) -> int:
        if self.dtype.kind not in ("int", "bool") or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    # -- arrays ----------------------------------------------------------------------------------------

    def numpy(self: Any, *, force: bool = False) -> np.ndarray[Any, Any]:
        """An ndarray over the same memory.

        Raises:
            RuntimeError: the tensor requires a gradient (unless ``force``), or has no data.
        """
        if self._requires_grad and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if on_device(self) and force:
            return self._values("numpy()")
        return self._host_memory("numpy()")[...]

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        from .creation import from_numpy

        return from_numpy(np.asarray(array))

    @property
    def __array_interface__(self: Any) -> Any:
        """NumPy's description of the memory."""
        return self.numpy().__array_interface__

    def __dlpack__(
        self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """A DLPack capsule over the same memory; of a CUDA tensor, in order with ``stream`` of whoever asks.

        Raises:
            BufferError: the tensor requires a gradient, or its dtype has no DLPack code.
        """
        if self._requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if on_device(self):
            from .cuda.exchange import export_dlpack

            return export_dlpack(self, stream, max_version, dl_device, copy)
        array = self._values("__dlpack__()")
        options: dict[str, Any] = {"copy": copy} if copy is not None else {}
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, **options)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        """DLPack's (device type, index): (1, 0) is the CPU, 2 a CUDA device."""
        return (2, self.device.index) if on_device(self) else (1, 0)

    @property
    def __cuda_array_interface__(self: Any) -> dict[str, Any]:
        """The description of a CUDA tensor's memory that libraries of Python share.

        Raises:
            AttributeError: it is on the CPU. RuntimeError: it requires a gradient.
        """
        from .cuda.exchange import array_interface

        return array_interface(self)

    # -- dtype and device ------------------------------------------------------------------------------

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Converted to a dtype, a device or both, or like another tensor; itself when nothing changes."""
        dtype, device, copy, non_blocking = _destination(args, kwargs)
        changed = self
        if device is not None and device != self.device and not _same_place(device, self.device):
            changed = _moved(changed, device, non_blocking)
        if dtype is not None and dtype is not changed.dtype:
            changed = operator("convert_element_type")(changed, dtype)
        changed = operator("clone")(self) if copy and changed is self else changed
        return changed if kwargs.get("memory_format") is None else in_format(changed, kwargs["memory_format"])

    def type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Name of the type (``"lamina.cuda.FloatTensor"``), or the tensor converted: to a dtype, or to a named type."""
        if dtype is None:
            return f"lamina.{'cuda.' if self.device.type == 'cuda' else ''}{legacy_type_name(self.dtype)}"
        if isinstance(dtype, str):
            return self.to(Device("cuda" if "cuda" in dtype.split(".") else "cpu"), dtype_from_legacy(dtype))
        place = getattr(dtype, "place", None)  # of a class such as LongTensor
        return self.to(dtype) if place is None else self.to(Device(place), dtype.dtype)

    def type_as(self: Any, other: Any) -> Any:
        """Converted to the dtype of ``other``, on its device."""
        return self.to(other)

    def cpu(self: Any, memory_format: Any = None) -> Any:
        """On the CPU; itself when it is there."""
        return self.to(Device("cpu"), memory_format=memory_format)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        """On a GPU; itself when it is there. ``non_blocking``: from pinned memory, the copy is only begun."""
        where = device if isinstance(device, (str, Device)) else "cuda" if device is None else f"cuda:{device}"
        return self.to(Device(where), non_blocking=non_blocking)

    def contiguous(self: Any, memory_format: Any = None) -> Any:
        """Row-major, or with the channels last as ``memory_format`` says; itself when it is so already."""
        if order_of(memory_format) is not None:
            return in_format(self, memory_format)
        if self.is_contiguous():
            return self
        return operator("clone")(self, memory_format="contiguous_format")

    is_cuda = property(lambda self: self.device.type == "cuda")
    is_cpu = property(lambda self: self.device.type == "cpu")
    is_meta = property(lambda self: self.device.type == "meta")
    is_sparse = property(lambda self: False)
    is_quantized = property(lambda self: False)
    is_nested = property(lambda self: False)
    layout = property(lambda self: "strided")

    def get_device(self: Any) -> int:
        """Index of the GPU, -1 on the CPU."""
        return -1 if self.device.type != "cuda" else self.device.index or 0

    def is_floating_point(self: Any) -> bool:
        """Is the dtype a real floating-point type."""
        return self.dtype.is_floating_point

    def is_complex(self: Any) -> bool:
        """Is the dtype complex."""
        return self.dtype.is_complex

    def is_signed(self: Any) -> bool:
        """Has the dtype negative numbers."""
        return self.dtype.is_signed

    def is_pinned(self: Any, device: Any = None) -> bool:
        """Is it in pinned memory, which a GPU reads directly."""
        if not is_host(self):
            return False
        from .cuda.transfers import is_pinned

        return is_pinned(self)

    def pin_memory(self: Any, device: Any = None) -> Any:
        """A copy in pinned memory, which a GPU reads directly; itself when it is there.

        Raises:
            RuntimeError: it is not on the CPU, or there is no GPU.
        """
        from .cuda.transfers import pin

        return pin(self)

    def record_stream(self: Any, stream: Any) -> None:
        """Hold the memory, once it is freed, until ``stream`` has done what it has to do by then.

        Raises:
            RuntimeError: the tensor is not on a GPU.
        """
        from .cuda.recorded import record_stream

        record_stream(self, stream)

    def share_memory_(self: Any) -> Any:
        """The tensor itself: memory is not moved for other processes."""
        return self


def _same_place(device: Device, other: Device) -> bool:
    """Is it one device; ``"cuda"`` without a number is the current one."""
    if device.type != other.type:
        return False
    if device.type == "cuda" and device.index is None:
        from .cuda.activation import device_index

        return device_index(device) == (other.index or 0)
    return (device.index or 0) == (other.index or 0)


def _moved(tensor: Any, device: Device, non_blocking: bool) -> Any:
    if device.type == "cuda":
        from .cuda.activation import cuda_device, device_index

        device = cuda_device(device_index(device)) if tensor._array is not None else device
    if non_blocking and is_host(tensor) and not tensor._requires_grad and not MODES.stack:
        from .cuda.transfers import place

        return place(tensor, device, True) if device.type == "cuda" else operator("device_put")(tensor, device)
    return operator("device_put")(tensor, device)


def _destination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DType | None, Device | None, bool, bool]:
    dtype, device, copy = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
    non_blocking = bool(kwargs.get("non_blocking", False))
    known = {"dtype", "device", "copy", "non_blocking", "memory_format", "other"}
    if unknown := set(kwargs) - known:
        raise TypeError(f"to() got an unexpected keyword argument {unknown.pop()!r}")
    if "other" in kwargs:
        args = (kwargs["other"], *args)
    flags = 0
    for value in args:
        if type(value) is DType:
            dtype = value
        elif isinstance(value, TensorBase):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (str, Device)):
            device = value
        elif type(value) is int:
            device = f"cuda:{value}"
        elif isinstance(value, bool):
            flags += 1
            copy, non_blocking = (value, non_blocking) if flags == 2 else (copy, value)
        elif value in _PYTHON_TYPES:
            dtype = _PYTHON_TYPES[value]
        elif value is not None:
            raise TypeError(f"to(): expected a dtype, a device or a tensor, got {type(value).__name__}")
    if dtype is not None and type(dtype) is not DType:
        if dtype not in _PYTHON_TYPES:
            raise TypeError(f"to(): dtype must be a lamina dtype, not {dtype!r}")
        dtype = _PYTHON_TYPES[dtype]
    if isinstance(device, int):
        device = f"cuda:{device}"
    return dtype, None if device is None else device if type(device) is Device else Device(device), copy, non_blocking


_PYTHON_TYPES: dict[Any, DType] = {bool: bool_, int: int64, float: float32, complex: complex64}


def from_dlpack(value: Any) -> Any:
    """A tensor over the memory of any object that speaks DLPack (``value.__dlpack__``), on the CPU or a GPU."""
    from .creation import from_numpy

    where = getattr(value, "__dlpack_device__", None)
    if where is not None and where()[0] == 2:
        from .cuda.exchange import import_dlpack

        return import_dlpack(value)
    return from_numpy(np.from_dlpack(value))
