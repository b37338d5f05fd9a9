"""NumPy-like arrays: which library an array belongs to, and its dtypes in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from lamina_fx import CPU, DTYPES, Device, DType, TensorSpec

__all__ = [
    "array_dtype", "array_namespace", "as_device", "converted", "device_namespace", "element_type", "is_array",
    "numpy_dtype", "on_host", "plain_float", "register_arrays", "register_device", "spec_of",
]  # fmt: skip

_SPECIAL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
_TO_NUMPY: dict[DType, np.dtype[Any]] = {d: np.dtype(_SPECIAL.get(d.name, d.name)) for d in DTYPES}
_SATURATING = np.dtype(ml_dtypes.float8_e4m3fn)
_LARGEST = float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max)
_FROM_NUMPY: dict[Any, DType] = {n: d for d, n in _TO_NUMPY.items()}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of an element type (ml_dtypes' for bfloat16 and the float8 types)."""
    return _TO_NUMPY[dtype]


def array_dtype(dtype: Any) -> DType:
    """The element type of a NumPy dtype (or anything ``np.dtype`` takes).

    Raises:
        TypeError: NumPy's type has no counterpart (object, str, longdouble, ...).
    """
    try:
        return _FROM_NUMPY[dtype]
    except (KeyError, TypeError):
        converted = np.dtype(dtype)
        if converted in _FROM_NUMPY:
            return _FROM_NUMPY[converted]
        native = converted.newbyteorder("=")
        if native in _FROM_NUMPY:
            return _FROM_NUMPY[native]
        raise TypeError(f"NumPy's dtype {converted} has no counterpart among {', '.join(map(str, DTYPES))}") from None


def converted(value: Any, to: np.dtype[Any]) -> Any:
    """``value.astype(to)``, but for float8_e4m3fn as PyTorch converts.

    That type has no infinity: what is beyond its largest number, infinities too, becomes that number; NaN stays NaN.
    """
    if to == _SATURATING and value.dtype != to:
        value = value.astype(np.float32).clip(-_LARGEST, _LARGEST)
    return value.astype(to)


def element_type(value: Any) -> DType:
    """The element type of a tensor of any kind: a spec, a proxy, an eager tensor, an array."""
    dtype = value.dtype
    return dtype if type(dtype) is DType else array_dtype(dtype)


def spec_of(value: Any) -> TensorSpec:
    """The spec of a tensor of any kind: a spec, a proxy, an eager tensor, an array."""
    if type(value) is TensorSpec:
        return value
    spec = getattr(value, "spec", None)
    if spec is not None:
        return spec
    size = value.dtype.itemsize
    return TensorSpec(value.shape, array_dtype(value.dtype), [s // size for s in value.strides])


def plain_float(value: Any) -> Any:
    """A float16, bfloat16 or float8 array as float32 (the precision in which they are computed), others as is."""
    dtype = value.dtype
    if dtype.itemsize <= 2 and array_dtype(dtype).kind == "float":
        return value.astype(np.float32)
    return value


_NAMESPACES: dict[type, Any] = {np.ndarray: np}
"""Types of arrays and the modules that compute on them; a front end for a GPU adds the library it uses."""

_ON_DEVICE: list[Callable[[int | None], Any]] = []
"""What gives the namespace whose creating functions make arrays on a GPU, once somebody has said so."""

_NO_DEVICE = (
    "a tensor was asked for on the device 'cuda', but nothing here makes arrays on a GPU; use device 'cpu', or import "
    "lamina_tensor, whose extra [cuda] does"
)


def register_arrays(kind: type, namespace: Any) -> None:
    """Arrays of this type are computed on by ``namespace``, a module (or object) with NumPy's functions."""
    _NAMESPACES[kind] = namespace


def register_device(namespace_on: Callable[[int | None], Any]) -> None:
    """``namespace_on(index)`` makes arrays on a GPU (None: the current one); raises when there is none."""
    _ON_DEVICE[:] = [namespace_on]


def device_namespace(device: Device) -> Any:
    """The module whose creating functions make arrays on ``device``.

    Raises:
        RuntimeError: a GPU is asked for, and there is none or no library for it.
    """
    if device.type != "cuda":
        return np
    if not _ON_DEVICE:
        raise RuntimeError(_NO_DEVICE)
    return _ON_DEVICE[0](device.index)


def as_device(device: Any) -> Device:
    """A ``Device`` from what stands for one: None (the CPU), a string, a GPU's number, or an array's ``device``."""
    if type(device) is Device:
        return device
    if type(device) is int:
        return Device(device)
    if device is None:
        return CPU
    number = getattr(device, "id", None)  # of a CuPy array
    return Device(str(device)) if number is None else Device("cuda", number)


def is_array(value: Any) -> bool:
    """Is it an array of NumPy's or of a library that was registered (no subclass)."""
    return type(value) in _NAMESPACES


def on_host(value: Any) -> bool:
    """Is it an array in the host's memory (NumPy's own)."""
    return isinstance(value, np.ndarray)


def array_namespace(*values: Any) -> Any:
    """The module to compute with: that of the arrays among the values, otherwise NumPy. NumPy's scalars go with any.

    Raises:
        TypeError: arrays of two libraries are mixed; names both.
    """
    found: Any = None
    for value in values:
        kind = type(value)
        module = _NAMESPACES.get(kind)
        if module is None:
            if isinstance(value, np.ndarray):
                module = np
            elif kind.__module__.partition(".")[0] == "cupy" and hasattr(value, "shape"):
                import cupy  # pyright: ignore[reportMissingImports]  # optional: only where an array of it was given

                module = cupy
            else:
                continue
        if found is not None and found is not module:
            raise TypeError(f"arrays of {found.__name__} and {module.__name__} are mixed; convert one of them")
        found = module
    return np if found is None else found
