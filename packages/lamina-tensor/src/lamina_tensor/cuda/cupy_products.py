"""Products of matrices by cuBLAS, on CuPy's arrays and handle.

CuPy casts float16 to float32, has no stacks of bfloat16, and calls nothing of cuBLAS while a stream is captured. So
half precision goes to ``gemmEx`` and ``gemmStridedBatchedEx`` through CuPy's own binding, and every product of a
captured graph through the library itself.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]  # the extra [cuda]
import numpy as np
from cuda import pathfinder  # pyright: ignore[reportMissingImports]  # CuPy's own dependency
from cupy.cuda import cublas  # pyright: ignore[reportMissingImports]

__all__ = ["product"]

_KINDS = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
"""cudaDataType of the elements."""
_COMPUTE_32F, _COMPUTE_64F, _DEFAULT = 68, 70, -1


def product(a: Any, b: Any, capturing: bool) -> Any:
    """``a @ b``, accumulated in float32 at least. (*, m, k) (*, k, n) -> (*, m, n); vectors as in ``matmul``."""
    if a.ndim == 1 or b.ndim == 1:
        left, right = a.ndim == 1, b.ndim == 1
        value = product(a[None] if left else a, b[:, None] if right else b, capturing)
        value = value[..., 0] if right else value
        return value[..., 0, :] if left and not right else value[..., 0] if left else value
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if b.shape[-2] != k:
        raise ValueError(f"matmul: {a.shape} and {b.shape} do not fit")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not m * n * int(np.prod(batch, dtype=np.int64)) or not k:
        return cupy.zeros((*batch, m, n), a.dtype)
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:  # one product of many rows
        return product(a.reshape(-1, k), b, capturing).reshape((*batch, m, n))
    out = cupy.empty((*batch, m, n), a.dtype)
    _into(out, a, b, batch, capturing)
    return out


def _into(out: Any, a: Any, b: Any, batch: tuple[int, ...], capturing: bool) -> None:
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    a, a_varies = _stack(a, batch)
    b, b_varies = _stack(b, batch)
    a, a_turned, a_width = _layout(a)
    b, b_turned, b_width = _layout(b)
    kind = _KINDS[a.dtype.name]
    one, zero, compute = _scalars(a.dtype)
    count = int(np.prod(batch, dtype=np.int64))
    a_step, b_step = (x.strides[0] // x.itemsize if varies else 0 for x, varies in ((a, a_varies), (b, b_varies)))
    # cuBLAS counts columns first: what it sees are the transposes, so that B comes before A
    call = (
        int(b_turned), int(a_turned), n, m, k, one.ctypes.data, b.data.ptr, kind, b_width, b_step,
        a.data.ptr, kind, a_width, a_step, zero.ctypes.data, out.data.ptr, kind, n, m * n, count, compute, _DEFAULT,
    )  # fmt: skip
    handle = cupy.cuda.get_cublas_handle()
    if capturing:
        _call_directly(handle, call)
        return
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    if count > 1:
        cublas.gemmStridedBatchedEx(handle, *call)
    else:  # the same without the steps and the count
        cublas.gemmEx(handle, *call[:9], *call[10:13], *call[14:18], *call[20:])


@functools.cache
def _scalars(dtype: np.dtype[Any]) -> tuple[Any, Any, int]:
    """One and zero in the type that cuBLAS computes in, and the number of that type."""
    wide = dtype if dtype.kind == "c" or dtype == np.float64 else np.dtype(np.float32)
    double = wide in (np.dtype(np.float64), np.dtype(np.complex128))
    return np.ones((), wide), np.zeros((), wide), _COMPUTE_64F if double else _COMPUTE_32F


@functools.cache
def _library() -> Any:
    """cuBLAS itself, as CuPy has loaded it."""
    library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    pointer, number, step = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    library.cublasSetStream_v2.argtypes = [pointer, pointer]
    library.cublasSetPointerMode_v2.argtypes = [pointer, number]
    library.cublasGemmStridedBatchedEx.argtypes = [
        pointer, number, number, number, number, number, pointer, pointer, number, number, step,
        pointer, number, number, step, pointer, pointer, number, number, step, number, number, number,
    ]  # fmt: skip
    return library


def _call_directly(handle: int, call: tuple[Any, ...]) -> None:
    library = _library()
    stream = cupy.cuda.get_current_stream().ptr
    for status in (
        library.cublasSetStream_v2(handle, stream),
        library.cublasSetPointerMode_v2(handle, 0),
        library.cublasGemmStridedBatchedEx(handle, *call),
    ):
        if status:
            raise RuntimeError(f"cuBLAS gave error {status} for a product in a captured graph")


def prepare() -> None:
    """Make what may not be made while a stream is captured: the handle and the library."""
    cupy.cuda.get_cublas_handle()
    _library()


def _stack(x: Any, batch: tuple[int, ...]) -> tuple[Any, bool]:
    """Matrices as one dimension of them, and whether they differ (False: there is one for all)."""
    lead = x.shape[:-2]
    if all(n == 1 for n in lead):
        return x.reshape(1, *x.shape[-2:]), False
    if lead != batch:
        x = cupy.broadcast_to(x, (*batch, *x.shape[-2:]))
    return x.reshape(-1, *x.shape[-2:]), True


def _layout(x: Any) -> tuple[Any, bool, int]:
    """Matrices whose rows or columns are contiguous (copied where they are not), which of both, and the distance."""
    item = x.itemsize
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2] // item, x.strides[-1] // item
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return x, False, max(down if rows > 1 else columns, columns)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return x, True, max(along if columns > 1 else rows, rows)
    return cupy.ascontiguousarray(x), False, columns
