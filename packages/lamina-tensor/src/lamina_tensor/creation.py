"""Making tensors: from data, and the front end's options (``requires_grad``, ``out``, ``device``) of the creators.

>>> creator("zeros")(2, 3).shape, tensor([1, 2]).dtype
(lamina.Size([2, 3]), lamina.int64)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina_fx import CPU, Device, DType, bool_, complex64, complex128, float8_e4m3fn, float64, int64
from lamina_prims import operator
from lamina_prims.arrays import as_device, converted, numpy_dtype
from lamina_prims.modes import MODES
from lamina_prims.promotion import get_default_dtype
from lamina_prims.registry import by_name, resolve

from ._C import TensorBase, wrap
from .dispatch import slow_resolved
from .storage import is_host

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["as_tensor", "asarray", "creator", "from_numpy", "scalar_tensor", "tensor"]


_DEFAULT: list[Device] = [CPU]


def default_device() -> Device:
    """Where tensors are made from nothing when no device is given."""
    return _DEFAULT[0]


def switch_default_device(device: Device) -> Device:
    """Let ``default_device`` be another one; returns what it was.

    Raises:
        RuntimeError: ``"cuda"`` without a GPU, or ``"meta"``.
    """
    if device.type == "meta":
        raise RuntimeError("the default device cannot be 'meta'; give device='meta' to each call")
    if device.type == "cuda":
        from .cuda.activation import cuda_device, device_index

        device = cuda_device(device_index(device))
    before, _DEFAULT[0] = _DEFAULT[0], CPU if device == CPU else device
    return before


def tensor(
    data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of ``data`` (numbers, nested sequences, arrays, tensors).

    Python floats get the default dtype, ints int64, bools bool. A tensor is copied without its history.

    Raises:
        ValueError: the sequences are ragged. TypeError: a value that is no number.
    """
    if isinstance(data, TensorBase):
        made = operator("clone")(data.detach())
        made = made if dtype is None or made.dtype is dtype else operator("convert_element_type")(made, dtype)
    else:
        made = _from_device(data) if hasattr(data, "__cuda_array_interface__") else wrap(_array(data, dtype, copy=True))
        made = made if dtype is None or made.dtype is dtype else operator("convert_element_type")(made, dtype)
    made = _placed(made, _chosen(device) if not isinstance(data, TensorBase) else device)
    if pin_memory:
        made = made.pin_memory()
    if requires_grad:
        if made.dtype.kind not in ("float", "complex"):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad_()
    return made


def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Tensor:
    """A tensor of ``data``: itself when it is a tensor already, sharing memory with an array where that is possible."""
    if isinstance(data, TensorBase):
        return _placed(data if dtype is None or data.dtype is dtype else data.to(dtype), device)
    if hasattr(data, "__cuda_array_interface__"):
        from .cuda.exchange import from_interface

        made = from_interface(data)
        return _placed(made if dtype is None or made.dtype is dtype else made.to(dtype), device)
    return _placed(wrap(_array(data, dtype, copy=False)), _chosen(device))


def asarray(
    obj: Any, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """As ``as_tensor``; ``copy=True`` always copies, ``copy=False`` raises ValueError where it would have to."""
    if copy:
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    made = as_tensor(obj, dtype, device)
    if copy is False and made is not obj and not (isinstance(obj, np.ndarray) and made._array is obj):
        raise ValueError("asarray: a copy is needed, but copy=False was given")
    return made.requires_grad_() if requires_grad else made


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares memory with an ndarray.

    Raises:
        TypeError: no ndarray, or its dtype has no counterpart. ValueError: negative strides or foreign byte order.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if array.size and any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array first."
        )
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order; convert it first")
    return wrap(array)


def scalar_tensor(value: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor without dimensions; Python numbers get the default dtype."""
    return tensor(value, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def _from_device(data: Any) -> Any:
    """A copy of what lies in a GPU's memory, there."""
    from .cuda.exchange import from_interface

    return operator("clone")(from_interface(data))


def _chosen(device: Any) -> Any:
    return device if device is not None or _DEFAULT[0] is CPU else _DEFAULT[0]


def _placed(made: Any, device: Any) -> Any:
    return made if device is None else made.to(device)


def _array(data: Any, dtype: DType | None, copy: bool) -> np.ndarray[Any, Any]:
    want = None if dtype is None else numpy_dtype(dtype)
    if dtype is float8_e4m3fn:  # NumPy's conversion gives NaN for what is too large
        return converted(_array(data, None, copy), numpy_dtype(dtype))
    if isinstance(data, np.ndarray):
        return np.array(data, dtype=want, copy=True if copy else None, order="K")
    if isinstance(data, np.generic):
        return np.array(data, dtype=want)
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return np.array(data, dtype=want, copy=True if copy else None)
    kind = _kind(data)
    if want is None:
        if isinstance(kind, np.dtype):
            want = kind
        else:
            want = numpy_dtype(_default_of(kind))
    with np.errstate(all="ignore"):
        try:
            return np.array(_plain(data), dtype=want)
        except OverflowError as error:
            raise RuntimeError(f"tensor(): a value does not fit into {dtype or want}: {error}") from None


def _default_of(kind: type) -> DType:
    default = get_default_dtype()
    return {
        bool: bool_, int: int64, float: default, complex: complex128 if default is float64 else complex64
    }[kind]  # fmt: skip


_ORDER = (bool, int, float, complex)


def _kind(data: Any) -> Any:
    """The widest kind of number in nested sequences (float when there is none), or the dtype of arrays in them."""
    if isinstance(data, (list, tuple)):
        kinds = {_kind(item) for item in data} if data else {float}
        if len(kinds) == 1:
            return kinds.pop()
        arrays = [k for k in kinds if isinstance(k, np.dtype)]
        plain = [k for k in kinds if not isinstance(k, np.dtype)]
        return np.result_type(*arrays, *[k(0) for k in plain]) if arrays else max(plain, key=_ORDER.index)
    if isinstance(data, TensorBase):
        return numpy_dtype(data.dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        return data.dtype
    for kind in _ORDER:
        if isinstance(data, kind):
            return kind
    if hasattr(data, "__index__"):
        return int
    if hasattr(data, "__float__"):
        return float
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'")


def _plain(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    return data._values("tensor()") if isinstance(data, TensorBase) else data


def creator(name: str) -> Callable[..., Any]:
    """The front end's function for a creating operator: ``size`` may be separate arguments, and it takes
    ``requires_grad``, ``out``, ``layout``, ``pin_memory`` and ``memory_format``.
    """
    takes_size = any(op.schema.parameters and op.schema.parameters[0].name == "size" for op in by_name(name))
    plain = _PLAIN.get(name)
    like = name.endswith("_like") or name.startswith("Tensor.new_")

    def create(*args: Any, requires_grad: bool = False, out: Any = None, **options: Any) -> Any:
        if (
            plain is not None
            and out is None
            and not options
            and _DEFAULT[0] is CPU
            and MODES.creator is None
            and not MODES.stack
        ):
            made = _made_plainly(plain, args, takes_size)
            if made is not None:
                return made.requires_grad_() if requires_grad else made
        if options and options.pop("pin_memory", False):
            return create(*args, out=out, **options).pin_memory().requires_grad_(requires_grad)
        for ignored in ("layout", "memory_format", "names"):
            options.pop(ignored, None)
        dtype = options.get("dtype")
        if type(dtype) is type:
            options["dtype"] = _default_of(dtype)
        if options.get("device") is not None:
            options["device"] = as_device(options["device"])
        elif _DEFAULT[0] is not CPU and not like:
            options["device"] = _DEFAULT[0]
        if takes_size and args and not isinstance(args[0], (tuple, list)):
            args = (args,)
        op = resolve(name, args, options)
        made = slow_resolved(op, args, options)
        if out is not None:
            from .inplace import write_out

            return write_out(made, out)
        return made.requires_grad_() if requires_grad else made

    create.__name__ = create.__qualname__ = name
    create.__doc__ = by_name(name)[0].__doc__
    return create


_PLAIN: dict[str, Callable[..., Any]] = {
    "zeros": np.zeros,
    "ones": np.ones,
    "empty": np.empty,
    "zeros_like": np.zeros,
    "ones_like": np.ones,
    "empty_like": np.empty,
}
"""Creators that need no operator for ordinary tensors: half of a training step's small calls are these."""


def _made_plainly(make: Callable[..., Any], args: tuple[Any, ...], takes_size: bool) -> Any:
    """A tensor by NumPy alone; None for what the operator must look at."""
    if not takes_size:
        array = args[0]._array if len(args) == 1 and isinstance(args[0], TensorBase) and is_host(args[0]) else None
        return None if array is None else wrap(make(array.shape, array.dtype))
    size = args[0] if len(args) == 1 and type(args[0]) in (tuple, list) else args
    for n in size:
        if type(n) is not int or n < 0:
            return None
    return wrap(make(tuple(size), numpy_dtype(get_default_dtype())))


def legacy_tensor(data: tuple[Any, ...], device: Any = None) -> Any:
    """What ``Tensor(...)`` makes: uninitialised of the given sizes, or a copy of data in the default dtype."""
    if len(data) == 1 and isinstance(data[0], TensorBase):
        return data[0].detach()
    if len(data) == 1 and not isinstance(data[0], int):
        if isinstance(data[0], tuple) and type(data[0]) is not tuple:  # a Size
            return operator("empty")(tuple(data[0]), dtype=get_default_dtype())
        return tensor(data[0], dtype=get_default_dtype(), device=device)
    return slow_resolved(operator("empty"), (tuple(data) if data else (0,),), {"dtype": get_default_dtype()})
