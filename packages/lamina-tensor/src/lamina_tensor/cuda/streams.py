"""Streams and events, and which device and stream this thread's work goes to."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lamina_fx import Device

from .. import _C
from .activation import active_provider, cuda_device, device_index, on_device
from .synchronization import run_checks

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]


class Stream:
    """Work of a device that is done in order. ``cuda_stream`` is the driver's handle (0: the default stream)."""

    def __init__(self, device: Any = None, priority: int = 0, *, handle: Any = None) -> None:
        self.device_index, self.priority = device_index(device), priority
        self.handle = handle if handle is not None else active_provider().stream(self.device_index, None, priority)

    @property
    def device(self) -> Device:
        """Whose stream it is."""
        return cuda_device(self.device_index)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self.handle.ptr)

    def query(self) -> bool:
        """Is all its work done."""
        return bool(self.handle.done)

    def synchronize(self) -> None:
        """Wait until all its work is done; raises what the checks of a synchronisation find."""
        with on_device(active_provider(), self.device_index):
            self.handle.synchronize()
        run_checks()

    def record_event(self, event: Event | None = None) -> Event:
        """Mark the point it has come to."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Work that comes later waits for the event."""
        if event.handle is not None:
            self.handle.wait_event(event.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Work that comes later waits for what the other stream has to do now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._contexts = [*getattr(self, "_contexts", []), StreamContext(self)]
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._contexts.pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (
            other.device_index, other.cuda_stream
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<lamina.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that somebody else made, by the driver's handle."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = device_index(device)
        super().__init__(index, handle=active_provider().stream(index, stream_ptr))


class _Local(threading.local):
    """By device: the stream that this thread has set."""

    streams: Mapping[int, Stream] = MappingProxyType({})


_LOCAL = _Local()


def get_stream_from_external(data_ptr: int, device: Any = None) -> ExternalStream:
    """A stream that somebody else made, by the driver's handle."""
    return ExternalStream(data_ptr, device)


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to when no other is set."""
    index = device_index(device)
    return Stream(index, handle=active_provider().stream(index, 0))


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    index = device_index(device)
    return _LOCAL.streams.get(index) or default_stream(index)


def set_stream(stream: Stream) -> None:
    """Let this thread's work on the stream's device go to it."""
    index = stream.device_index
    with on_device(active_provider(), index):
        stream.handle.use()
    _C.set_stream(index, stream.cuda_stream)
    if stream.cuda_stream:
        _LOCAL.streams = {**_LOCAL.streams, index: stream}
    else:
        _LOCAL.streams = {i: s for i, s in _LOCAL.streams.items() if i != index}


class StreamContext:
    """Inside, the stream (None: nothing changes) and its device are the thread's."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._before = current_stream(self.stream.device_index)
            self._device = on_device(active_provider(), self.stream.device_index)
            self._device.__enter__()
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            set_stream(self._before)
            self._device.__exit__()


def stream(stream: Stream | None) -> StreamContext:
    """``with cuda.stream(s):`` work inside goes to ``s``."""
    return StreamContext(stream)


class Event:
    """A point in a stream. ``enable_timing``: ``elapsed_time`` between two is measured."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Event: interprocess=True is not supported")
        self.enable_timing, self.blocking = enable_timing, blocking
        self.handle: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the point that a stream (the current one) has come to."""
        where = current_stream() if stream is None else stream
        with on_device(active_provider(), where.device_index):
            if self.handle is None:
                self.handle = active_provider().new_event(self.enable_timing, self.blocking)
            self.handle.record(where.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream (the current one) wait for it."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Has it happened (True before it was recorded)."""
        return self.handle is None or bool(self.handle.done)

    def synchronize(self) -> None:
        """Wait until it has happened; raises what the checks of a synchronisation find."""
        if self.handle is not None:
            self.handle.synchronize()
        run_checks()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            RuntimeError: one was not recorded, or made without ``enable_timing``.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise RuntimeError("both events must be made with enable_timing=True")
        if self.handle is None or end_event.handle is None:
            raise RuntimeError("both events must be recorded before calculating elapsed time")
        return float(active_provider().elapsed(self.handle, end_event.handle))
