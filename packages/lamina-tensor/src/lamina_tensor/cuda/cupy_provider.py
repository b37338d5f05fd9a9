"""CuPy as the device library. Imported only when a device is used; all calls are about the thread's current stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy  # pyright: ignore[reportMissingImports]  # the extra [cuda]
import numpy as np
from cupy.cuda import runtime  # pyright: ignore[reportMissingImports]

from .activation import dense_order, row_major, window
from .cupy_namespace import CupyNamespace
from .cupy_products import prepare
from .provider import DeviceProperties, GraphHandle, GraphPool, MemoryState

__all__ = ["CupyProvider"]


_PINNED = 1
"""cudaMemoryTypeHost."""


class CupyProvider:
    """See ``Provider``. Memory comes from CuPy's pool, which keeps what is given back, by stream."""

    name = "cupy"
    array_type = cupy.ndarray
    out_of_memory = (cupy.cuda.memory.OutOfMemoryError,)

    def __init__(self) -> None:
        self.namespace = CupyNamespace(cupy)
        self._count = runtime.getDeviceCount()

    def device_count(self) -> int:
        """By the driver, once."""
        return self._count

    def current_device(self) -> int:
        """The thread's."""
        return runtime.getDevice()

    def set_device(self, index: int) -> None:
        """As CuPy's own."""
        cupy.cuda.Device(index).use()

    def properties(self, index: int) -> DeviceProperties:
        """By the runtime."""
        found = runtime.getDeviceProperties(index)
        name = found["name"]
        return DeviceProperties(
            name.decode() if isinstance(name, bytes) else str(name),
            found["major"],
            found["minor"],
            found["totalGlobalMem"],
            found["multiProcessorCount"],
            found["warpSize"],
            found["maxThreadsPerMultiProcessor"],
            found["l2CacheSize"],
            found["sharedMemPerBlockOptin"],
        )

    def empty(self, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any], index: int) -> Any:
        """From the pool."""
        if strides is None or strides == row_major(shape):
            if runtime.getDevice() == index:
                return cupy.ndarray(shape, dtype)
            with cupy.cuda.Device(index):
                return cupy.ndarray(shape, dtype)
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
        with cupy.cuda.Device(index):
            memory = cupy.cuda.alloc(extent * dtype.itemsize)
            return cupy.ndarray(shape, dtype, memory, tuple(s * dtype.itemsize for s in strides))

    def from_memory(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        index: int,
        owner: Any,
    ) -> Any:
        """Over memory of somebody else."""
        low, extent = (n * dtype.itemsize for n in window(shape, strides))
        memory = cupy.cuda.UnownedMemory(address + low, extent, owner, index)
        steps = tuple(s * dtype.itemsize for s in strides)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, -low), steps)

    def to_device(self, array: np.ndarray[Any, Any], index: int, wait: bool = True) -> Any:
        """On the current stream. Dense arrays keep the order of their dimensions."""
        order = dense_order(array)
        turned = array if order is None else array.transpose(order)
        source = turned if turned.flags.c_contiguous else np.ascontiguousarray(turned)
        made = self.empty(turned.shape, None, source.dtype, index)
        if source.size:
            start = source.__array_interface__["data"][0]
            stream = cupy.cuda.get_current_stream()
            made.data.copy_from_host_async(start, source.nbytes, stream)
            # what is not pinned has been read when the call returns; what is may be written by the host at once
            if wait and _maybe_pinned(start):
                stream.synchronize()
        return made if order is None else made.transpose(tuple(int(d) for d in np.argsort(order)))

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """From CuPy's pool of pinned memory."""
        count = 1
        for n in shape:
            count *= n
        if not count:
            return np.empty(shape, dtype)
        memory = cupy.cuda.alloc_pinned_memory(count * dtype.itemsize)
        return np.frombuffer(memory, np.uint8, count * dtype.itemsize).view(dtype).reshape(shape)

    def synchronize(self, index: int) -> None:
        """The whole device."""
        with cupy.cuda.Device(index) as device:
            device.synchronize()

    def stream(self, index: int, ptr: int | None = None, priority: int = 0) -> Any:
        """New streams do not wait for the default one, which is the legacy one; others' are not destroyed with this."""
        if ptr is None:
            with cupy.cuda.Device(index):
                return cupy.cuda.Stream(non_blocking=True, priority=priority)
        return cupy.cuda.ExternalStream(ptr, index) if ptr else cupy.cuda.Stream.null

    def new_event(self, timing: bool, blocking: bool) -> Any:
        """CuPy's event."""
        return cupy.cuda.Event(block=blocking, disable_timing=not timing)

    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds."""
        return cupy.cuda.get_elapsed_time(start, end)

    def memory(self, index: int) -> MemoryState:
        """Of CuPy's pool, and of the driver."""
        with cupy.cuda.Device(index):
            pool = cupy.get_default_memory_pool()
            free, total = runtime.memGetInfo()
            return MemoryState(pool.used_bytes(), pool.total_bytes(), free, total)

    def empty_cache(self, index: int) -> None:
        """Both pools."""
        with cupy.cuda.Device(index):
            cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    @contextmanager
    def capture(self, index: int, stream: Any, pool: GraphPool) -> Iterator[Callable[[], GraphHandle]]:
        """Memory comes from a pool of graphs: nothing else may get its blocks while they can be launched."""
        prepare()
        memory = pool.memory = pool.memory or cupy.cuda.MemoryPool()
        captured: list[Any] = []
        with cupy.cuda.using_allocator(memory.malloc):
            stream.begin_capture()
            try:
                yield lambda: _Captured(captured[0], memory)
            finally:
                captured.append(stream.end_capture())


class _Captured:
    """A graph and the memory it works on."""

    def __init__(self, graph: Any, pool: Any) -> None:
        self.graph, self.pool = graph, pool

    def launch(self, stream: Any) -> None:
        """On a stream."""
        self.graph.launch(stream)


def _maybe_pinned(address: int) -> bool:
    try:
        return runtime.pointerGetAttributes(address).type == _PINNED
    except runtime.CUDARuntimeError:  # the driver does not know the memory: then it is not its own
        return False
