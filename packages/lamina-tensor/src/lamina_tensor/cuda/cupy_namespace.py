"""CuPy's functions, with products of half precision through cuBLAS and errors of factorisations raised."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]  # the extra [cuda]
import numpy as np
from cupy.cuda import cublas  # pyright: ignore[reportMissingImports]
from cupyx import errstate  # pyright: ignore[reportMissingImports]

from .device_namespace import DeviceNamespace

__all__ = ["CupyNamespace"]

_HALF, _BFLOAT16, _COMPUTE_FLOAT, _DEFAULT = 2, 14, 68, -1
"""CUDA_R_16F, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT."""
_ONE, _ZERO = np.ones((), np.float32), np.zeros((), np.float32)


class CupyNamespace(DeviceNamespace):
    """The array namespace over CuPy."""

    def __init__(self, library: Any) -> None:
        super().__init__(library)
        self.linalg = _Linalg(library.linalg)

    def memory_room(self, array: Any) -> tuple[int, int]:
        """By the block of the pool that it lies in."""
        block = array.data.mem
        before = array.data.ptr - block.ptr
        return before // array.itemsize, (block.size - before) // array.itemsize

    def philox(self, state: Any, shape: tuple[int, ...]) -> Any:
        """Philox 4x32-10 as one kernel, which reads the state on the device. See lamina_prims' ``philox``."""
        count = int(np.prod(shape, dtype=np.int64))
        blocks = (count + 3) // 4
        words = cupy.empty(blocks * 4, np.uint32)
        if blocks:
            _philox()(cupy.ascontiguousarray(state), words, size=blocks)
        return words[:count].reshape(shape)

    def half_matmul(self, a: Any, b: Any) -> Any:
        """``a @ b`` of float16 or bfloat16, accumulated in float32. (*, m, k) (*, k, n) -> (*, m, n)."""
        if a.ndim == 1 or b.ndim == 1:
            left, right = a.ndim == 1, b.ndim == 1
            value = self.half_matmul(a[None] if left else a, b[:, None] if right else b)
            value = value[..., 0] if right else value
            return value[..., 0, :] if left and not right else value[..., 0] if left else value
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        if b.shape[-2] != k:
            raise ValueError(f"matmul: {a.shape} and {b.shape} do not fit")
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if not m * n * int(np.prod(batch, dtype=np.int64)) or not k:
            return cupy.zeros((*batch, m, n), a.dtype)
        if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:  # one product of many rows
            return self.half_matmul(a.reshape(-1, k), b).reshape((*batch, m, n))
        out = cupy.empty((*batch, m, n), a.dtype)
        _products(a, b, out, batch)
        return out


def _products(a: Any, b: Any, out: Any, batch: tuple[int, ...]) -> None:
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    a, a_step = _stack(a, batch)
    b, b_step = _stack(b, batch)
    a, a_transposed, a_width = _layout(a)
    b, b_transposed, b_width = _layout(b)
    count, kind = int(np.prod(batch, dtype=np.int64)), _HALF if a.dtype == np.float16 else _BFLOAT16
    handle = cupy.cuda.get_cublas_handle()
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    # cuBLAS counts columns first: what it sees are the transposes, so that B comes before A
    head = (handle, int(b_transposed), int(a_transposed), n, m, k, _ONE.ctypes.data)
    if count == 1:
        cublas.gemmEx(
            *head, b.data.ptr, kind, b_width, a.data.ptr, kind, a_width, _ZERO.ctypes.data, out.data.ptr, kind, n,
            _COMPUTE_FLOAT, _DEFAULT,
        )  # fmt: skip
        return
    a_step, b_step = (x.strides[0] // x.itemsize if step else 0 for x, step in ((a, a_step), (b, b_step)))
    cublas.gemmStridedBatchedEx(
        *head, b.data.ptr, kind, b_width, b_step, a.data.ptr, kind, a_width, a_step, _ZERO.ctypes.data, out.data.ptr,
        kind, n, m * n, count, _COMPUTE_FLOAT, _DEFAULT,
    )  # fmt: skip


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


@functools.cache
def _philox() -> Any:
    return cupy.ElementwiseKernel(
        "raw int64 state",
        "raw uint32 words",
        """
        unsigned long long start = (unsigned long long)state[1], counter = start + (unsigned long long)i;
        unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)(counter >> 32), c2 = counter < start, c3 = 0;
        unsigned int k0 = (unsigned int)state[0], k1 = (unsigned int)((unsigned long long)state[0] >> 32);
        for (int round = 0; round < 10; round++) {
            unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
            c0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
            c1 = (unsigned int)p1;
            c2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
            c3 = (unsigned int)p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        words[4 * i] = c0;
        words[4 * i + 1] = c1;
        words[4 * i + 2] = c2;
        words[4 * i + 3] = c3;
        """,
        "lamina_philox",
    )


class _Linalg:
    """``cupy.linalg`` that raises LinAlgError as NumPy does."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return _raising(found) if callable(found) and not isinstance(found, type) else found


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with errstate(linalg="raise"):
            return function(*args, **kwargs)

    return call
