"""What a device library must do for tensors on a GPU: the protocol that hides it.

``CupyProvider`` is the real one. ``StubProvider`` is a device whose memory is the host's: it runs the same code in
tests on a machine without a GPU. Arrays of a provider have CuPy's (so, nearly, NumPy's) methods, among them ``data``
(``ptr``, ``device_id``), ``get(out=, blocking=)`` and ``__dlpack__``; ``namespace`` has NumPy's functions and
``from_dlpack``. What can be said with these (copies to the host and to other devices, exchange) is no method of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["DeviceProperties", "EventHandle", "GraphHandle", "GraphPool", "MemoryState", "Provider", "StreamHandle"]


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What a device is: PyTorch's names where it has them."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    L2_cache_size: int = 0
    shared_memory_per_block_optin: int = 0


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Bytes of a device: in the pool (used by somebody, and kept in all), free and total by the driver's count."""

    used: int
    reserved: int
    free: int
    total: int


class EventHandle(Protocol):
    """An event: a point in a stream."""

    ptr: int
    done: bool

    def record(self, stream: Any) -> None:
        """Mark the point that the stream has come to."""

    def synchronize(self) -> None:
        """Wait until it is reached."""


class StreamHandle(Protocol):
    """A stream: work that is done in order."""

    ptr: int
    done: bool

    def use(self) -> None:
        """Make it the thread's on its device, which is the thread's now."""

    def synchronize(self) -> None:
        """Wait until all its work is done."""

    def wait_event(self, event: Any) -> None:
        """Work that comes later waits for the event."""


class GraphHandle(Protocol):
    """A captured graph of work."""

    def launch(self, stream: Any) -> None:
        """Do it again."""


class GraphPool:
    """Memory of graphs: ``memory`` is the provider's, made when a graph is captured into it."""

    memory: Any = None


class Provider(Protocol):
    """A device library: memory, streams, and what they are asked. Indices are devices' numbers."""

    name: str
    array_type: type
    namespace: Any
    out_of_memory: tuple[type[BaseException], ...]

    def device_count(self) -> int:
        """How many devices there are; 0 without a driver."""
        ...

    def current_device(self) -> int:
        """The thread's device."""
        ...

    def set_device(self, index: int) -> None:
        """Make a device the thread's."""
        ...

    def properties(self, index: int) -> DeviceProperties:
        """What a device is."""
        ...

    def empty(self, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any], index: int) -> Any:
        """A new array; strides in elements, None: row-major."""
        ...

    def from_memory(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        index: int,
        owner: Any,
    ) -> Any:
        """An array over memory that ``owner`` keeps alive; strides in elements."""
        ...

    def to_device(self, array: np.ndarray[Any, Any], index: int, wait: bool = True) -> Any:
        """A copy of a host's array on a device; without ``wait`` (from pinned memory) it is only begun."""
        ...

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An array of the host whose pages the device can read directly."""
        ...

    def synchronize(self, index: int) -> None:
        """Wait until all work of a device is done."""
        ...

    def stream(self, index: int, ptr: int | None = None, priority: int = 0) -> StreamHandle:
        """A stream of a device: a new one (more urgent with a smaller priority), the default one (0), or one that
        somebody else made, by the driver's handle."""
        ...

    def new_event(self, timing: bool, blocking: bool) -> EventHandle:
        """An event on the thread's device."""
        ...

    def elapsed(self, start: EventHandle, end: EventHandle) -> float:
        """Milliseconds between two events."""
        ...

    def memory(self, index: int) -> MemoryState:
        """How much memory is used and free."""
        ...

    def empty_cache(self, index: int) -> None:
        """Give memory of a device that nobody uses back to the driver; pinned memory, too."""
        ...

    def capture(
        self, index: int, stream: StreamHandle | None, pool: GraphPool
    ) -> AbstractContextManager[Callable[[], GraphHandle]]:
        """While the block runs, work is noted instead of done; what it gives is asked for the graph afterwards."""
        ...
