"""The stub device's memory: an account of bytes with a limit, and a recorder that stands in for graph capture."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["StubDevice", "StubMemory", "StubOutOfMemory", "StubStatistics"]


class StubOutOfMemory(MemoryError):
    """The device's memory is used up."""

    def __init__(self, asked: int) -> None:
        super().__init__(f"Out of memory allocating {asked:,} bytes")
        self.asked = asked


@dataclass
class StubStatistics:
    """What was done, for tests that count copies."""

    copies_to_device: int = 0
    copies_to_host: int = 0
    synchronisations: int = 0
    launches: int = 0


class StubMemory:
    """Bytes of one allocation; given back when nothing holds them."""

    __slots__ = ("device", "nbytes", "owner")

    def __init__(self, device: StubDevice, nbytes: int) -> None:
        self.device, self.nbytes = device, 0
        self.owner: Any = None  # what holds the bytes
        device.take(nbytes)
        self.nbytes = nbytes

    def __del__(self) -> None:
        self.device.give(self.nbytes)


class StubDevice:
    """One device: how much memory it has, what of it is taken, and the recording of a graph, if there is one."""

    def __init__(self, id: int, limit: int) -> None:
        self.id, self.limit = id, limit
        self.used = self.peak = 0
        self.statistics = StubStatistics()
        self.recording: list[Callable[[], None]] | None = None
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<stub device {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StubDevice) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def allocate(self, nbytes: int) -> StubMemory:
        """Account for bytes.

        Raises:
            StubOutOfMemory: they are not there.
        """
        return StubMemory(self, nbytes)

    def take(self, nbytes: int) -> None:
        """Count bytes."""
        with self._lock:
            if self.used + nbytes > self.limit:
                raise StubOutOfMemory(nbytes)
            self.used += nbytes
            self.peak = max(self.peak, self.used)

    def give(self, nbytes: int) -> None:
        """Count bytes back."""
        with self._lock:
            self.used -= nbytes

    def note(self, step: Callable[[], Any]) -> None:
        """Count a launch; keep it when a graph is being captured."""
        self.statistics.launches += 1
        if self.recording is not None:
            self.recording.append(step)
