"""The slow paths of the launcher: inputs of unusual kinds or layouts, errors, and calls back into Python.

The launcher reads tensors and NumPy arrays by itself. Everything else lands here: values that speak DLPack or the
array interface,
arrays whose strides differ from what was compiled for, and messages for what does not fit.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lamina_fx import DType

__all__ = ["adapter", "array_at", "numpy_dtype", "with_strides"]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's type of the same elements (from ml_dtypes where NumPy has none)."""
    return np.dtype(getattr(ml_dtypes, dtype.name, dtype.name))


def array_at(address: int, dtype: DType, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """A view of the memory at ``address``; ``strides`` in elements."""
    kind = numpy_dtype(dtype)
    if math.prod(shape) == 0:
        return np.empty(shape, kind)
    reaches = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum([r for r in reaches if r < 0]) * kind.itemsize
    high = (1 + sum([r for r in reaches if r > 0])) * kind.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(shape, kind, memory, -low, [s * kind.itemsize for s in strides])


def with_strides(array: np.ndarray[Any, Any], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """A copy of ``array`` with these strides (in elements, of a dense layout)."""
    order = sorted(range(array.ndim), key=lambda d: (-strides[d], d))
    dense = np.empty([array.shape[d] for d in order], array.dtype)
    result = dense.transpose(np.argsort(order)) if array.ndim else dense
    wanted = tuple(s * array.itemsize for s in strides)
    if any(n > 1 and have != want for n, have, want in zip(array.shape, result.strides, wanted, strict=True)):
        extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
        flat = np.empty(extent, array.dtype)
        result = np.lib.stride_tricks.as_strided(flat, array.shape, wanted)
    np.copyto(result, array)
    return result


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("="))
        return array if array.flags.aligned else array.copy()
    if hasattr(value, "__dlpack__") and not hasattr(value, "__lamina_abi__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def describe(value: Any) -> str:
    """A value as messages name it: type, and dtype[shape] where it has those."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return f"{type(value).__name__} {value!r:.60}"
    return f"{dtype}[{', '.join(map(str, shape))}] ({type(value).__name__})"


def adapter(name: str, inputs: Sequence[tuple[str, DType, bool] | None]) -> Callable[..., Any]:
    """What the launcher calls for an input it cannot use: ``adapt(index, value, sizes | None, strides | None)``.

    ``inputs``: per placeholder its name, dtype and whether the program writes it.
    """

    def adapt(index: int, value: Any, sizes: tuple[int, ...] | None, strides: tuple[int, ...] | None) -> Any:
        row = inputs[index]
        assert row is not None  # the launcher asks about tensors only
        label, dtype, written = row
        where = f"{name}: input {index} ({label})"
        if sizes is None:
            found = _read(where, value, dtype)
            if written and isinstance(value, np.ndarray) and not np.may_share_memory(found, value):
                raise RuntimeError(
                    f"{where} is written by the program, so its elements must be aligned, in the machine's byte order "
                    f"and at strides that are not negative; got {describe(value)} with strides {value.strides} (bytes)."
                )
            return found
        array = _as_array(value) if not isinstance(value, np.ndarray) else value
        if array.dtype != numpy_dtype(dtype) or array.shape != sizes:
            raise RuntimeError(
                f"{where} must be {dtype}[{', '.join(map(str, sizes))}], as the graph was compiled for; got "
                f"{describe(value)}. Compile again for other shapes, or convert the argument."
            )
        if written:
            found = tuple([s // array.itemsize for s in array.strides])
            raise RuntimeError(
                f"{where} is written by the program, so it must be writeable and have the strides {strides} "
                f"(in elements) it was compiled for; got {describe(value)} with strides {found}."
            )
        return with_strides(array, strides or ())

    return adapt


def _read(where: str, value: Any, dtype: DType) -> Any:
    if isinstance(value, (str, bytes)) or value is None:
        raise TypeError(f"{where} must be a tensor or an array, got {describe(value)}")
    try:
        array = _as_array(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise TypeError(f"{where} must be a CPU tensor or an array, got {describe(value)}: {error}") from error
    if array.dtype == object or array.dtype.kind not in "biufcV":
        raise TypeError(f"{where} must be a tensor or an array of numbers, got {describe(value)}")
    return array.astype(numpy_dtype(dtype)) if array.ndim == 0 and not hasattr(value, "dtype") else array
