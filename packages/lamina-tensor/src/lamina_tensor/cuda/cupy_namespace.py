"""CuPy's functions, with products of half precision through cuBLAS and errors of factorisations raised."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]  # the extra [cuda]
import numpy as np
from cupyx import errstate  # pyright: ignore[reportMissingImports]

from .cupy_products import product
from .device_namespace import DeviceNamespace, Linalg

__all__ = ["CupyNamespace"]


class CupyNamespace(DeviceNamespace):
    """The array namespace over CuPy."""

    def __init__(self, library: Any) -> None:
        super().__init__(library)
        self.linalg = _Linalg(library)

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
        return product(a, b, self.capturing)

    def matmul(self, a: Any, b: Any) -> Any:
        """CuPy's, but while a graph is captured, which CuPy's calls of cuBLAS refuse."""
        if self.capturing and a.dtype.kind in "fc":
            return product(a, b, True)
        return cupy.matmul(a, b)


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


class _Linalg(Linalg):
    """``cupy.linalg`` that raises LinAlgError as NumPy does."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return _raising(found) if callable(found) and not isinstance(found, type) else found

    def _solved(self, a: Any, b: Any) -> Any:
        return _raising(self._module.solve)(a, b)


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with errstate(linalg="raise"):
            return function(*args, **kwargs)

    return call
