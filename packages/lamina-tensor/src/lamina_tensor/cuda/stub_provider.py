"""A device whose memory is the host's: runs the code of CUDA tensors where there is no GPU."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .activation import window
from .device_namespace import DeviceNamespace
from .provider import DeviceProperties, GraphHandle, GraphPool, MemoryState
from .stub_array import StubArray, StubNamespace
from .stub_memory import StubDevice, StubMemory, StubOutOfMemory, StubStatistics
from .stub_namespace import make_namespace

__all__ = ["StubEvent", "StubGraph", "StubProvider", "StubStream"]


class StubStream:
    """A stream all of whose work is done at once."""

    _last = 0x1000

    def __init__(self, device: StubDevice, ptr: int | None = None) -> None:
        if ptr is None:
            StubStream._last += 0x10
        self.ptr, self.done, self.device = StubStream._last if ptr is None else ptr, True, device

    def synchronize(self) -> None:
        """Nothing is pending."""
        self.device.statistics.synchronisations += 1

    def use(self) -> None:
        """Nothing depends on it."""

    def wait_event(self, event: Any) -> None:
        """It has happened."""


class StubEvent:
    """An event that remembers when it was recorded."""

    def __init__(self) -> None:
        self.ptr, self.done, self.when = id(self), True, 0.0

    def record(self, stream: Any) -> None:
        """Now."""
        self.when = time.perf_counter()

    def synchronize(self) -> None:
        """It has happened."""


class StubGraph:
    """The calls that were made while it was captured."""

    def __init__(self, steps: list[Callable[[], None]], device: StubDevice) -> None:
        self.steps, self.device = steps, device

    def launch(self, stream: Any) -> None:
        """Do them again, over the same memory."""
        for step in self.steps:
            step()


class _Thread(threading.local):
    """Of each thread: its device."""

    device = 0


class StubProvider:
    """The provider of stub devices.

    Args:
        devices: how many.
        memory: bytes that each has.
    """

    name = "stub"
    array_type = StubArray
    out_of_memory = (StubOutOfMemory,)

    def __init__(self, devices: int = 1, memory: int = 1 << 32) -> None:
        self.devices = [StubDevice(i, memory) for i in range(devices)]
        self._thread = _Thread()
        self.namespace = DeviceNamespace(make_namespace(self))
        StubNamespace.current = staticmethod(lambda: self.devices[self._thread.device])

    def statistics(self, index: int = 0) -> StubStatistics:
        """What a device was asked to do so far."""
        return self.devices[index].statistics

    def device_count(self) -> int:
        """As many as were asked for."""
        return len(self.devices)

    def current_device(self) -> int:
        """The device on which arrays are made."""
        return self._thread.device

    def set_device(self, index: int) -> None:
        """Make arrays there."""
        self._thread.device = index

    def properties(self, index: int) -> DeviceProperties:
        """An H100's numbers, so that sizes chosen by them are ordinary ones."""
        return DeviceProperties("stub device", 9, 0, self.devices[index].limit, 132, L2_cache_size=50 << 20,
                                shared_memory_per_block_optin=227 << 10)  # fmt: skip

    def empty(self, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any], index: int) -> Any:
        """Memory filled with a pattern that no sensible program computes with."""
        strides = _row_major(shape) if strides is None else strides
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
        memory = self.devices[index].allocate(extent * dtype.itemsize)
        flat = np.empty(extent * dtype.itemsize, np.uint8)
        flat.fill(0x7B)
        memory.owner = flat
        whole = flat.view(dtype)
        steps = tuple(s * dtype.itemsize for s in strides)
        return StubArray(np.ndarray(shape, dtype, whole, 0, steps), memory)

    def from_memory(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        index: int,
        owner: Any,
    ) -> Any:
        """Over the host's memory at that address."""
        low, extent = (n * dtype.itemsize for n in window(shape, strides))
        memory = StubMemory(self.devices[index], 0)
        memory.owner = owner
        if not extent:
            return StubArray(np.empty(shape, dtype), memory)
        whole = (ctypes.c_char * extent).from_address(address + low)
        steps = tuple(s * dtype.itemsize for s in strides)
        return StubArray(np.ndarray(shape, dtype, whole, -low, steps), memory)

    def to_device(self, array: np.ndarray[Any, Any], index: int, wait: bool = True) -> Any:
        """A copy, counted and accounted."""
        device = self.devices[index]
        device.statistics.copies_to_device += 1
        memory = device.allocate(array.nbytes)
        memory.owner = array = array.copy(order="K")
        return StubArray(array, memory)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Ordinary memory."""
        return np.empty(shape, dtype)

    def synchronize(self, index: int) -> None:
        """Nothing is pending."""
        self.devices[index].statistics.synchronisations += 1

    def stream(self, index: int, ptr: int | None = None, priority: int = 0) -> StubStream:
        """A new one has a number of its own."""
        return StubStream(self.devices[index], ptr)

    def new_event(self, timing: bool, blocking: bool) -> StubEvent:
        """An event."""
        return StubEvent()

    def elapsed(self, start: Any, end: Any) -> float:
        """By the host's clock."""
        return (end.when - start.when) * 1e3

    def memory(self, index: int) -> MemoryState:
        """By the account."""
        device = self.devices[index]
        return MemoryState(device.used, device.used, device.limit - device.used, device.limit)

    def empty_cache(self, index: int) -> None:
        """Nothing is kept."""

    @contextmanager
    def capture(self, index: int, stream: Any, pool: GraphPool) -> Iterator[Callable[[], GraphHandle]]:
        """Calls are made, and noted so that they can be made again."""
        device = self.devices[index]
        if device.recording is not None:
            raise RuntimeError("a graph is being captured already")
        steps = device.recording = []
        try:
            yield lambda: StubGraph(steps, device)
        finally:
            device.recording = None


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))
