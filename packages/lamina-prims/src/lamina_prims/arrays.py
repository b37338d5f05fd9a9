"""NumPy-like arrays: which library an array belongs to, and its dtypes in both directions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from lamina_fx import DTYPES, DType, TensorSpec

__all__ = ["array_dtype", "array_namespace", "element_type", "numpy_dtype", "plain_float", "spec_of"]

_SPECIAL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
_TO_NUMPY: dict[DType, np.dtype[Any]] = {d: np.dtype(_SPECIAL.get(d.name, d.name)) for d in DTYPES}
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


def cupy_module() -> Any:
    """CuPy, which makes and holds arrays on a GPU.

    Raises:
        RuntimeError: it is not installed.
    """
    try:
        import cupy  # pyright: ignore[reportMissingImports]  # optional: only for a CUDA device
    except ImportError:
        raise RuntimeError(
            "a tensor was asked for on the device 'cuda', but there is no GPU support here (CuPy is not installed); "
            "use device 'cpu', or guard with cuda.is_available()"
        ) from None
    return cupy


def array_namespace(*values: Any) -> Any:
    """The module to compute with: CuPy when a value is a CuPy array, otherwise NumPy.

    Raises:
        TypeError: arrays of two libraries are mixed; names both.
    """
    found: Any = None
    for value in values:
        kind = type(value)
        if kind is np.ndarray or isinstance(value, np.generic):
            module: Any = np
        elif kind.__module__.partition(".")[0] == "cupy":
            import cupy  # pyright: ignore[reportMissingImports]  # optional: only where an array of it was given

            module = cupy
        else:
            continue
        if found is not None and found is not module:
            raise TypeError(f"arrays of {found.__name__} and {module.__name__} are mixed; convert one of them")
        found = module
    return np if found is None else found
